"""How long a step of the job takes: what a trainer's log shows, and what throughput is counted by."""

from __future__ import annotations

from statistics import fmean

from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.study import Study

__all__ = ["step_times", "until_next"]


def step_times(found: Study) -> dict[int, int]:
    """Nanoseconds of each used step, by its number.

    From a rank's start of the step to its start of the next one, the mean over the ranks that recorded both: so no two
    clocks are compared, and what lies between two steps counts. Where no next step was recorded, as long as on the rank
    where it lasts longest by itself, or as its pipeline if that is longer: ranks that start a step one after the other
    make it no longer. So it is too for all steps where most of those before the last have no next one: then somebody
    picked steps out of a longer run, and what lies between two of them need not be part of either.
    """
    used = found.used
    followed = {number: ns for number in used if (ns := _until_next(found, number)) is not None}
    if 2 * len(followed) < len(used) - 1:
        followed = {}
    return {number: followed.get(number) or _by_itself(found, number) for number in used}


def until_next(view: RankView, number: int) -> int | None:
    """Nanoseconds from a rank's start of a step to its start of the next one; None where that was not recorded."""
    if view.timeline.restarts or number + 1 in view.timeline.resumed or not {number, number + 1} <= view.steps.keys():
        return None
    return view.steps[number + 1].start - view.steps[number].start


def _until_next(found: Study, number: int) -> int | None:
    following = [ns for view in found.views.values() if (ns := until_next(view, number)) is not None]
    return round(fmean(following)) if following else None


def _by_itself(found: Study, number: int) -> int:
    spans = [view.steps[number].end - view.steps[number].start for view in found.views.values() if number in view.steps]
    return max([*spans, *(step.window.length for step in found.whole if step.step == number)])
