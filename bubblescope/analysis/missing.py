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
    "the lower bound inside the seen ranks' own span, the upper inside the longest window that the step leaves"
)


def interval(job: Job, steps: Sequence[PipelineStep]) -> tuple[float | None, float | None]:
    """Mean lower and upper bound of the bubble over steps, under ASSUMPTION; None without any step."""
    bounds = [_bounds(job, step) for step in steps]
    if not bounds:
        return None, None
    return fmean(low for low, _ in bounds), fmean(high for _, high in bounds)


def _bounds(job: Job, step: PipelineStep) -> tuple[float, float]:
    seen = list(step.useful_by_position.values())
    unseen = job.plan.pp - len(seen)
    span, longest = step.window_bounds
    heavy = (sum(seen) + unseen * min(HEAVIEST * max(seen), span)) / job.plan.pp
    light = (sum(seen) + unseen * LIGHTEST * min(seen)) / job.plan.pp
    return max(0.0, 1 - heavy / span), 1 - light / longest
