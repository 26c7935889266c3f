"""How long a step of the job takes: what a trainer's log shows, and what throughput is counted by."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.study import Study

__all__ = ["step_times", "until_next"]


def step_times(found: Study) -> dict[int, int]:
    """Nanoseconds of each used step, by its number.

    From a rank's start of the step to its start of the next one, the mean over the ranks that recorded both: so no two
    clocks are compared, and what lies between two steps counts. Where no next step was recorded, or the steps of a file
    begin their clocks anew, from the first rank's start to the last rank's end; where clocks cannot be compared, as
    long as on the rank where it lasted longest.
    """
    tied = found.job.clock.ties(found.views)
    return {number: _length(list(found.views.values()), number, tied=tied) for number in found.used}


def until_next(view: RankView, number: int) -> int | None:
    """Nanoseconds from a rank's start of a step to its start of the next one; None where that was not recorded."""
    if view.timeline.restarts or not {number, number + 1} <= view.steps.keys():
        return None
    return view.steps[number + 1].start - view.steps[number].start


def _length(views: Sequence[RankView], number: int, *, tied: bool) -> int:
    following = [time for view in views if (time := until_next(view, number)) is not None]
    if following:
        return round(fmean(following))
    here = [view.steps[number] for view in views if number in view.steps]
    if tied:
        return max(step.end for step in here) - min(step.start for step in here)
    return max(step.end - step.start for step in here)
