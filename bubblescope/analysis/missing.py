"""The bubble as an interval, where stages were not recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bubblescope.align.layout import ASSUMED
from bubblescope.align.sizes import states_size
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.job import Job

__all__ = ["assumptions", "interval"]

LIGHTEST, HEAVIEST = 0.9, 1.1

_Range = tuple[float, float]


def interval(job: Job, steps: Sequence[PipelineStep]) -> tuple[float | None, float | None]:
    """Mean lower and upper bound of the bubble over steps, under `assumptions`; None without any step.

    None, too, where the number of stages is assumed although ranks were recorded: those of which no action is told may
    be of other pipelines.
    """
    bounds = [_bounds(job, step) for step in steps]
    untold = any(len(t.messages) and not len(t.actions) for t in job.timelines.values())
    if not bounds or (untold and job.plan.source == ASSUMED):
        return None, None
    return fmean(low for low, _ in bounds), fmean(high for _, high in bounds)


def assumptions(job: Job, steps: Sequence[PipelineStep]) -> tuple[str, ...]:
    """What the interval over these steps rests on; nothing without any step."""
    if not steps:
        return ()
    ends = {step.window_bounds[1] is None for step in steps}
    upper = " or ".join(
        text
        for text, holds in (
            ("inside the longest window that the step leaves", False in ends),
            ("open where no recorded rank tells how long the step is", True in ends),
        )
        if holds
    )
    usual = (
        f"an unseen stage is assumed to work between {LIGHTEST} times the lightest and {HEAVIEST} times the "
        f"heaviest seen one: the lower bound inside the seen ranks' own span, the upper {upper}"
    )
    untold = "nothing states the number of ranks, so the last stage may do any work"
    return (usual, untold) if _is_untold(job) else (usual,)


def _bounds(job: Job, step: PipelineStep) -> tuple[float, float]:
    seen, (span, longest) = step.useful_by_position, step.window_bounds
    usual = LIGHTEST * min(seen.values()), min(HEAVIEST * max(seen.values()), span)
    light, heavy = _mean_useful(job, seen, usual, (0.0, span))
    return max(0.0, 1 - heavy / span), 1.0 if longest is None else 1 - light / longest


def _mean_useful(job: Job, seen: Mapping[int, float], usual: _Range, anything: _Range) -> _Range:
    """The least and the most that the positions of a step may have worked, in the mean.

    An unseen one does what is usual. Where ranks alone show which is the last, it is like no other: it may do
    anything, and where it alone was seen, so may the others.
    """
    total, p = sum(seen.values()), job.plan.pp
    if not job.plan.sized:  # of any number of ranks: the more of one kind are unseen, the nearer is the mean to theirs
        if len(seen) == 1 and 0 not in seen:  # which may be the last
            return anything
        light, heavy = ((total + each) / (len(seen) + 1) for each in anything)
        return min(usual[0], light), max(usual[1], heavy)
    apart = _is_untold(job)
    inner = anything if apart and set(seen) == {p - 1} else usual
    unseen = [anything if apart and at == p - 1 else inner for at in range(p) if at not in seen]
    light, heavy = ((total + sum(each[end] for each in unseen)) / p for end in (0, 1))
    return light, heavy


def _is_untold(job: Job) -> bool:
    """Whether timelines state no number of ranks, so that only what the ranks do tells it."""
    tables = all(t.reconstruction == "table" for t in job.timelines.values())
    return tables and job.plan.source != "stated" and not states_size(job.timelines)
