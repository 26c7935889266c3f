"""The files taken as one job: which ranks and steps there are, and what `bubblescope analyze` can answer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import study
from bubblescope.errors import BubblescopeError
from bubblescope.model.info import JobInfo, Need
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding
from bubblescope.model.writing import ranks_named
from bubblescope.reduction import join

__all__ = ["together"]

Answer = Literal["bubble", "interval", "time", "nothing"]


def together(
    timelines: Sequence[RankTimeline], findings: Sequence[Finding], named: Sequence[str], options: Options
) -> JobInfo:
    """What the files are as one job.

    Args:
        timelines: all that any of them tells, in the order of the files.
        findings: what was said of files that are no trace.
        named: what the user named, for the next command.
        options: as for an analysis.
    """
    try:
        if timelines:
            job = join(timelines, options)
            return _told(job, assemble(study(job, options), options), findings, named)
        problem = "no file holds work of a rank"
    except BubblescopeError as error:
        problem = error.message if error.hint is None else f"{error.message}; {error.hint}"
    ranks = sorted({timeline.rank for timeline in timelines if timeline.rank >= 0})
    return JobInfo(
        world_size=None, ranks=tuple(ranks), missing_ranks=(), common_steps=(), complete_steps=(), answer="nothing",
        verdict="unusable", problem=problem, command=None, needs=(), findings=tuple(findings),
    )  # fmt: skip


def _told(job: Job, report: Report, findings: Sequence[Finding], named: Sequence[str]) -> JobInfo:
    answer, problem = _answer(report)
    known = [frozenset(t.steps.number.tolist()) for t in job.timelines.values()]
    own = {finding for timeline in job.timelines.values() for finding in timeline.findings}
    return JobInfo(
        world_size=report.layout.world_size,
        ranks=tuple(sorted(job.timelines)),
        missing_ranks=report.layout.missing_ranks,
        common_steps=tuple(sorted(frozenset.intersection(*known))),
        complete_steps=tuple(step.step for step in report.steps if step.complete),
        answer=answer,
        verdict=report.quality.verdict,
        problem=problem,
        command=None if answer == "nothing" else shlex.join(["bubblescope", "analyze", *named]),
        needs=_needs(report),
        findings=(*findings, *(f for f in report.quality.findings if f not in own and f not in findings)),
    )


def _answer(report: Report) -> tuple[Answer, str | None]:
    """What an analysis answers, and why not more."""
    bubble, missing = report.bubble, report.layout.missing_ranks
    if report.schedule.name == "none":
        why = "no pipeline could be identified" if report.undecided else "no pipeline is in sight"
        return ("time" if any(rank.window_ns for rank in report.ranks) else "nothing"), why
    if bubble.measured is not None:
        return "bubble", None
    why = f"no trace of {ranks_named(missing)}" if missing else "no step is complete on every rank"
    if not report.stages:
        why = "forwards and backwards are not told"
    return ("time" if bubble.lower is None else "interval"), why


def _needs(report: Report) -> tuple[Need, ...]:
    missing = report.layout.missing_ranks
    if not missing or report.bubble.measured is not None:
        return ()
    lacks = f"no trace of {ranks_named(missing)}: the bubble is known only when each stage is seen"
    return (Need(code="ranks", lacks=lacks, add=f"the files of {ranks_named(missing)}"),)
