"""How long a step of the job takes: what a trainer's log shows, and what throughput is counted by."""

from __future__ import annotations

from statistics import fmean

from bubblescope.analysis.study import Study
from bubblescope.model.trace import Finding

__all__ = ["staggered", "step_times", "unlike"]

UNLIKE = 1.5
"""How much longer the same steps last on one rank than on another where they cannot be the same: ranks wait for each
other at least once a step."""


def step_times(found: Study) -> dict[int, int]:
    """Nanoseconds of each used step, by its number.

    From a rank's start of the step to its start of the next one, the mean over the ranks that recorded both: so no two
    clocks are compared, and what lies between two steps counts. Of ranks that begin it staggered the longest tells, or
    the pipeline if that is longer. Where no next step was recorded, as long as on the rank where it lasts longest by
    itself, or as its pipeline if that is longer: ranks that start a step one after the other make it no longer. So it
    is too for all steps where most of those before the last have no next one: then somebody picked steps out of a
    longer run, and what lies between two of them need not be part of either. A step of which no recorded rank tells how
    long it is, while others are missing, has no time.
    """
    used = found.used
    followed = {number: ns for number in used if (ns := _until_next(found, number)) is not None}
    if 2 * len(followed) < len(used) - 1:
        followed = {}
    return {number: followed.get(number) or _by_itself(found, number) for number in used if not _open(found, number)}


def staggered(found: Study, number: int) -> bool:
    """Whether the ranks begin a step further apart, or closer, than they end it, as it follows one of another kind.

    Ranks that fill and drain alike in all steps are as far apart at the end of each as at its beginning, and each of
    them tells the time of a step. An evaluation does not drain: where it goes before a training, the first rank begins
    that while others still evaluate, and those begin it later than a training behind a training.
    """
    held = {use.number: use.content for use in found.uses}
    before, own = held.get(number - 1), held.get(number)
    return before is not None and own is not None and before.kind != own.kind


def _open(found: Study, number: int) -> bool:
    """Whether a step may be longer than any recorded rank tells."""
    here = [step for step in found.steps if step.step == number]
    return bool(here) and all(step.window_bounds[1] is None for step in here)


def _until_next(found: Study, number: int) -> int | None:
    following = [ns for view in found.views.values() if (ns := view.until_next(number)) is not None]
    if following and staggered(found, number):
        return max(following + _windows(found, number))
    return round(fmean(following)) if following else None


def _by_itself(found: Study, number: int) -> int:
    spans = [view.steps[number].end - view.steps[number].start for view in found.views.values() if number in view.steps]
    return max(spans + _windows(found, number))


def _windows(found: Study, number: int) -> list[int]:
    return [step.window.length for step in found.whole if step.step == number]


def unlike(found: Study) -> tuple[Finding, ...]:
    """A warning where used steps, two at least, last much longer on one rank than on another, as none staggered need.

    Then the ranks were not cut into the same steps: some were told of parts of steps, or of several as one.
    """
    each = [
        {rank: ns for rank, view in found.views.items() if (ns := view.until_next(n)) is not None}
        for n in found.used
        if not staggered(found, n)
    ]
    each = [lasting for lasting in each if len(lasting) > 1]
    ranks = set.intersection(*({*lasting} for lasting in each)) if len(each) > 1 else set[int]()
    total = {rank: sum(lasting[rank] for lasting in each) for rank in sorted(ranks)}
    if len(total) < 2:
        return ()
    (least, short), (most, long) = (pick((ns / len(each), rank) for rank, ns in total.items()) for pick in (min, max))
    if most <= UNLIKE * least:
        return ()
    message = (
        f"some steps last {most / 1e6:.4g} ms on rank {long} and {least / 1e6:.4g} on rank {short}: they are not "
        "marked, or not told, alike on all ranks. Call step() of the profiler once a step, on every rank"
    )
    return (Finding("steps-assumed", "warning", message),)
