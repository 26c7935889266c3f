"""From a report to the few kB that gates and comparisons take."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.report import Report

__all__ = ["condense", "kept"]

_KEPT = frozenset({None, "cause", "stage", "group"})
"""Parts that a baseline keeps. Ranks and replicas are many, and none of them is the same one in the next run."""


def kept(numbers: Baseline) -> Baseline:
    """The same without the numbers of single ranks and pipelines."""
    return replace(numbers, metrics=tuple(each for each in numbers.metrics if each.by in _KEPT))


def condense(report: Report, *, whole: bool = False) -> Baseline:
    """What a baseline holds of a report; with `whole` also the numbers of single ranks and pipelines."""
    made = Baseline(
        tool=report.tool,
        fingerprint=_fingerprint(report),
        doubts={each.number: each.reasons for each in report.quality.numbers if each.verdict != "ok"},
        metrics=report.metrics,
    )
    return made if whole else kept(made)


def _fingerprint(report: Report) -> Fingerprint:
    layout, schedule = report.layout, report.schedule
    return Fingerprint(
        schedule=schedule.name,
        also=schedule.also,
        pp=layout.pp,
        tp=layout.tp,
        dp=layout.dp,
        cp=layout.cp,
        ep=layout.ep,
        virtual=layout.virtual,
        microbatches=schedule.microbatches,
        world_size=layout.world_size,
        recorded=len(report.ranks),
        devices=tuple(sorted({each.device for each in report.inputs if each.device is not None})),
        formats=tuple(sorted({each.format for each in report.inputs})),
        reconstruction=schedule.reconstruction,
        attribution=report.bubble.attribution,
        steps=sum(step.used for step in report.steps),
    )
