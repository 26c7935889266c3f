"""What a gate found, `bubblescope.gate/1`: a verdict, every rule with its outcome, and what was compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.metrics import Part, Unit
from bubblescope.model.report import Tool
from bubblescope.model.writing import duration, percent

__all__ = ["Check", "Difference", "Gate", "Level", "Outcome", "Verdict", "Worst"]

Level = Literal["error", "warn", "off"]
Outcome = Literal["pass", "fail", "inconclusive", "skipped"]
Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where the fingerprints of a run and its baseline differ.

    `effect`: the two cannot be compared (`refused`), wall clock only warns (`wall-clock`), or it is told (`note`).
    """

    what: str
    baseline: str
    found: str
    effect: Literal["refused", "wall-clock", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule, applied to the whole job or to one part of it.

    Attributes:
        rule: as it is written: `bubble@stage=3 > 25%`, `bubble:+2pp`.
        level: what it is for the verdict. `softened` says that it was an error and the machines differ.
        origin: who asked for it: `preset default`, `pyproject.toml`, `--fail-on`.
        outcome: `skipped` where it is off, or its baseline may be missing.
        unit: of the values; a change by `%` is relative, and then `limit` and `change` are fractions of the baseline.
        limit: the largest value, or the largest change, that is fine; the smallest where the rule asks for less.
        found, baseline, change: as measured; None where unknown.
        noise: what the change must exceed to be more than noise, in the unit of `change`; None where nothing tells it.
        chance: how likely so much change is by the noise of the steps alone; None where nothing tells it.
        reason: why it is inconclusive or skipped, or what to know about it; empty where there is nothing.
    """

    rule: str
    level: Level
    softened: bool = False
    origin: str
    outcome: Outcome
    metric: str
    by: Part | None = None
    of: str | None = None
    unit: Unit
    relative: bool
    against: Literal["limit", "baseline"]
    side: Literal["above", "below"]
    limit: float
    found: float | None
    baseline: float | None = None
    change: float | None = None
    noise: float | None = None
    chance: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A part of the job to look at: the stage that idles most, the cause that grew most, or the heaviest stage."""

    metric: str
    by: Part
    of: str
    ranks: tuple[int, ...]
    value: float
    baseline: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All that a gate found.

    Attributes:
        verdict: `fail` if a rule of level error failed; else `inconclusive` if one of them could not be decided or
            nothing was decided at all; else `pass`.
        inputs: what was gated, as it was named.
        baseline: the file that it was compared with, None where none was asked for; `baseline_missing` if it is not
            there.
        run: what was measured. `reference` is the fingerprint of the baseline.
        look: the command that looks closer, empty where nobody can tell.
        accept: the command that makes the run the baseline, and the limits to change, if these would be accepted.
    """

    schema: Literal["bubblescope.gate/1"] = "bubblescope.gate/1"
    tool: Tool
    verdict: Verdict
    checks: tuple[Check, ...]
    inputs: tuple[str, ...]
    baseline: str | None
    baseline_missing: bool = False
    differences: tuple[Difference, ...] = ()
    warnings: tuple[str, ...] = ()
    worst: tuple[Worst, ...] = ()
    look: str = ""
    accept: tuple[str, ...] = ()
    run: Baseline
    reference: Fingerprint | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing stands against a merge."""
        return self.verdict == "pass"

    def __bool__(self) -> bool:
        """The same, so that a test can assert the gate itself."""
        return self.passed

    def __str__(self) -> str:
        """The verdict and what stands against it in a line, as for the message of an assertion."""
        against = [
            check for check in self.checks if check.level == "error" and check.outcome in {"fail", "inconclusive"}
        ]
        return "; ".join((self.verdict, *map(_told, against)))

    def at(self, level: Level, outcome: Outcome) -> tuple[Check, ...]:
        """The checks of that level with that outcome."""
        return tuple(check for check in self.checks if (check.level, check.outcome) == (level, outcome))


def _told(check: Check) -> str:
    where = "" if check.of is None or f"={check.of}" in check.rule else f" ({check.by} {check.of})"
    then = "" if check.baseline is None else f", {_value(check.baseline, check.unit)} in the baseline"
    found = "unknown" if check.found is None else _value(check.found, check.unit)
    return f"{check.rule}{where} {check.outcome}: {check.reason or f'found {found}{then}'}"


def _value(value: float, unit: Unit) -> str:
    return percent(value, 2) if unit == "share" else duration(value) if unit == "ns" else f"{value:.4g}"
