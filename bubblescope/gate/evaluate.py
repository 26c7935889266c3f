"""A gate in one call: a run, a baseline and rules to a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bubblescope.engine import Progress
from bubblescope.gate.commands import advised
from bubblescope.gate.condense import condense, kept
from bubblescope.gate.files import reference
from bubblescope.gate.judge import UNNAMED, Reference, judge
from bubblescope.gate.policy import Policy, policy
from bubblescope.gate.take import Run, Source, check_use, taken
from bubblescope.model.analysis import Analysis
from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Gate, Level
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.model.settings import OnMissing

__all__ = ["baseline", "decide", "evaluate"]


def evaluate(  # noqa: PLR0913  what the command's options say, by the same names
    traces: Source,
    *,
    baseline: str | Path | Baseline | Report | Analysis | None = None,
    fail_on: str | Sequence[str] = (),
    warn_on: str | Sequence[str] = (),
    preset: str | None = None,
    off: str | Sequence[str] = (),
    on_missing_baseline: OnMissing = "fail",
    allow_mismatch: bool = False,
    allow_degraded: bool = False,
    options: Options = Options(),  # noqa: B008 - frozen
) -> Gate:
    """Hold a run against rules, as `bubblescope gate` does; no file of settings and no variable is read.

    Args:
        traces: those of all ranks of one run, a report or a baseline, as files or as values.
        baseline: what relative rules compare with: a file or a value. A file need not exist.
        fail_on: rules, as `bubble > 18%` or `bubble:+2pp`.
        warn_on: the same, which only warn.
        preset: a set of rules beside these; without any rule it is `default`.
        off: rules or numbers of the preset that are not asked for.
        on_missing_baseline: what becomes of a rule whose baseline is missing or cannot be compared.
        allow_mismatch: compare runs of different shapes.
        allow_degraded: take numbers that are degraded as they are.
        options: what the traces cannot tell.

    Returns:
        The verdict with every rule; `gate.passed` is what a test asserts.

    Raises:
        UsageError: a rule cannot be read, or there is none.
        InputError: a file is missing, unreadable or unusable.
    """
    stated: list[tuple[str, Level, str]] = [(text, "error", "fail_on") for text in _texts(fail_on)]
    stated += [(text, "warn", "warn_on") for text in _texts(warn_on)]
    asked = replace(
        policy(stated, preset=preset, off=_texts(off), compared=baseline is not None),
        on_missing_baseline=on_missing_baseline,
        allow_mismatch=allow_mismatch,
        allow_degraded=allow_degraded,
    )
    return decide(traces, _reference(baseline), asked, options)


def _texts(given: str | Sequence[str] | None) -> Sequence[str]:
    return [given] if isinstance(given, str) else given or ()


def decide(
    traces: Source,
    against: Reference | None,
    asked: Policy,
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Gate:
    """Hold a run against a policy that is made already, and say what to run next."""
    return advised(judge(_run(traces, options, progress), against, asked), options)


def baseline(
    traces: Source,
    *,
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Baseline:
    """What `bubblescope baseline save` writes of a run; raises as `evaluate` does."""
    return kept(_run(traces, options, progress).numbers)


def _run(traces: Source, options: Options, progress: Progress | None) -> Run:
    run = taken(traces, options, progress)
    check_use(options, run)
    return run


def _reference(source: str | Path | Baseline | Report | Analysis | None) -> Reference | None:
    if source is None:
        return None
    if isinstance(source, str | Path):
        return Reference(str(source), reference(str(source)))
    if isinstance(source, Analysis):
        source = source.report
    return Reference(UNNAMED, condense(source) if isinstance(source, Report) else source)
