"""The verdict on each number of a report: whether it stands, and what speaks against it.

A finding about the data speaks against some numbers and not against others; the table here says which. A number that
is not there is unusable, and why is a word of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bubblescope.model.quality import Number, NumberVerdict, Quality, Verdict
from bubblescope.model.report import Report

__all__ = ["AFFECTED", "WORDS", "judged"]

PAIRED = 0.9
"""Share of the messages with a partner below which what is told of them is degraded (docs/definitions.md)."""

WORDS = {
    "no-step": "no step is complete on every rank that was recorded",
    "no-training": "no step that trains was asked for, or none is complete",
    "no-actions": "no forwards and backwards were told",
    "no-work": "no time of any rank was told",
    "no-schedule": "no known schedule has the order that was found",
    "no-formula": "the schedule has no formula for this shape",
    "unseen-window": "ranks that may hold an end of a pipeline's window were not recorded",
    "residual": "the causes leave more than 5 % of the window unexplained, or the bubble itself is in doubt",
}
"""Reasons that are no findings."""

_PIPELINE: frozenset[Number] = frozenset({"bubble", "causes", "stages", "imbalance"})
_TIMES: frozenset[Number] = _PIPELINE | {"ranks", "communication"}

AFFECTED: Mapping[str, frozenset[Number]] = {
    "missing-ranks": frozenset({"bubble", "causes", "communication", "imbalance"}),
    "unexplained-work": _PIPELINE | {"ranks"},
    "unlabelled": _PIPELINE | {"schedule", "formula", "ranks"},
    "told-by-kernels": _PIPELINE | {"schedule", "formula", "ranks"},
    "lost-kernels": _TIMES,
    "lost-events": _TIMES,
    "hidden-kernels": _TIMES,
    "repaired": _TIMES,
    "truncated": _TIMES,
    "implausible-times": _TIMES,
    "layout-assumed": frozenset({"bubble", "causes", "schedule", "formula", "imbalance"}),
    "steps-assumed": frozenset({"bubble", "causes", "throughput", "ranks"}),
    "repeated-actions": _PIPELINE | {"schedule", "formula"},
    "untold-chunks": frozenset({"causes", "stages", "schedule", "formula", "imbalance"}),
    "clock-uncertain": frozenset({"bubble", "causes", "stages", "ranks", "communication"}),
    "contradiction": _TIMES | {"schedule", "formula"},
    "unpaired-p2p": frozenset({"causes", "communication"}),
    "unnamed-communication": frozenset({"bubble", "causes", "ranks", "imbalance"}),
}
"""The numbers that a finding speaks against, unless it is for information; those of other findings stand."""


def judged(report: Report) -> Quality:
    """The quality of a report with a verdict on each of its numbers; unusable as a whole where all of them are."""
    numbers = tuple(_verdict(report, number) for number, applies in _APPLIES.items() if applies(report))
    verdict = "unusable" if all(each.verdict == "unusable" for each in numbers) else report.quality.verdict
    return replace(report.quality, verdict=verdict, numbers=numbers)


def _verdict(report: Report, number: Number) -> NumberVerdict:
    serious = [finding.code for finding in report.quality.findings if finding.severity != "info"]
    reasons = [code for code in serious if number in AFFECTED.get(code, ())]
    absent = _ABSENT[number](report)
    reasons += filter(None, (absent, *(_doubts(report, number) if absent is None else ())))
    verdict: Verdict = "ok" if not reasons else "degraded"
    return NumberVerdict(
        number=number, verdict=verdict if absent is None else "unusable", reasons=tuple(dict.fromkeys(reasons))
    )


def _doubts(report: Report, number: Number) -> tuple[str, ...]:
    """What speaks against a number beside findings."""
    covered = report.quality.coverage
    unpaired = covered is not None and covered.paired is not None and covered.paired < PAIRED
    doubts: tuple[tuple[Number, str, bool], ...] = (
        ("causes", "residual", not report.bubble.trusted),
        ("causes", "unpaired-p2p", unpaired),
        ("ranks", "unseen-window", any(rank.stages and rank.bubble is None for rank in report.ranks)),
        ("stages", "unseen-window", any(stage.bubble is None for stage in report.stages)),
        ("communication", "unpaired-p2p", unpaired),
    )
    return tuple(reason for doubted, reason, holds in doubts if doubted == number and holds)


def _piped(report: Report) -> bool:
    return report.schedule.name != "none" or report.undecided


_APPLIES: dict[Number, Callable[[Report], bool]] = {
    "bubble": _piped,
    "schedule": _piped,
    "formula": _piped,
    "causes": _piped,
    "stages": _piped,
    "ranks": lambda _: True,
    "communication": lambda report: bool(report.communication),
    "imbalance": _piped,
    "throughput": lambda _: True,
}
"""The numbers in the order of the report, and whether one can be asked for."""


def _no_step(report: Report) -> str:
    """Why nothing of a used step is there."""
    if not any(step.used for step in report.steps) and any(step.left_out == "evaluation" for step in report.steps):
        return "no-training"
    if not report.stages and not any(step.window_ns for step in report.steps):
        return "no-actions" if any(step.complete for step in report.steps) else "no-step"
    return "no-step" if not any(step.used for step in report.steps) else "missing-ranks"


def _no_formula(report: Report) -> str:
    """Why nothing tells what the schedule owes: it has no name, or its order was not seen whole, or it is silent."""
    if report.schedule.name == "unknown":
        return "no-schedule"
    return "missing-ranks" if report.layout.missing_ranks and report.bubble.measured is None else "no-formula"


_ABSENT: dict[Number, Callable[[Report], str | None]] = {
    "bubble": lambda report: _no_step(report) if report.bubble.lower is None else None,
    "schedule": lambda report: "no-schedule" if report.schedule.name == "unknown" else None,
    "formula": lambda report: _no_formula(report) if report.bubble.formula is None else None,
    "causes": lambda report: None if report.bubble.causes else _no_step(report),
    "stages": lambda report: None if report.stages else _no_step(report),
    "ranks": lambda report: None if any(rank.window_ns for rank in report.ranks) else "no-work",
    "communication": lambda _: None,
    "imbalance": lambda report: _no_step(report) if report.imbalance.stage_ratio is None else None,
    "throughput": lambda report: None if report.throughput else "missing-ranks" if report.stages else _no_step(report),
}
"""Why a number is not there; None where it is."""
