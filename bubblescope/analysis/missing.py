"""The bubble as an interval, where stages were not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.job import Job

__all__ = ["ASSUMPTION", "interval"]

LIGHTEST, HEAVIEST = 0.9, 1.1
ASSUMPTION = (
    "an unseen stage is assumed to work between 0.9 times the lightest and 1.1 times the heaviest seen one: "
    "the lower bound inside the seen ranks' own span, the upper inside the longest window that the step leaves, and "
    "open where no recorded rank tells how long the step is"
)


def interval(job: Job, steps: Sequence[PipelineStep]) -> tuple[float | None, float | None]:
    """Mean lower and upper bound of the bubble over steps, under ASSUMPTION; None without any step."""
    bounds = [_bounds(job, step) for step in steps]
    if not bounds:
        return None, None
    return fmean(low for low, _ in bounds), fmean(high for _, high in bounds)


def _bounds(job: Job, step: PipelineStep) -> tuple[float, float]:
    seen = list(step.useful_by_position.values())
    span, longest = step.window_bounds
    heaviest, lightest = min(HEAVIEST * max(seen), span), LIGHTEST * min(seen)
    if job.plan.sized:
        heavy, light = ((sum(seen) + (job.plan.pp - len(seen)) * each) / job.plan.pp for each in (heaviest, lightest))
    else:  # of any number of ranks: the more of one kind are unseen, the nearer is the mean to theirs
        heavy, light = heaviest, lightest
    return max(0.0, 1 - heavy / span), 1.0 if longest is None else 1 - light / longest
