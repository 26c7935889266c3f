"""A common axis for steps that each begin their clock anew: laid one after the other, every step on all ranks alike.

Totals differ from rank to rank, so that each rank's own laying of its steps drifts away from those of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubblescope.model.columns import Times
from bubblescope.model.timeline import RankTimeline

__all__ = ["laid_out"]


def laid_out(timelines: Mapping[int, RankTimeline]) -> dict[int, RankTimeline]:
    """The timelines with the origin of each step at the same moment on every rank whose clock restarts.

    Each step takes as long as on the rank where it took longest, with what lies before its origin.
    """
    restarting = {rank: t for rank, t in timelines.items() if t.restarts and len(t.steps)}
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for timeline in restarting.values():
        steps = timeline.steps
        ended = np.append(0, steps.end[:-1])
        for number, early, late in zip(
            steps.number.tolist(), (steps.start - ended).tolist(), (steps.end - steps.start).tolist(), strict=True
        ):
            before[number] = max(before.get(number, 0), early)
            after[number] = max(after.get(number, 0), late)
    origin, at = {}, 0
    for number in sorted(after):
        origin[number] = at + before[number]
        at = origin[number] + after[number]
    return {rank: _placed(t, origin) if rank in restarting else t for rank, t in timelines.items()}


def _placed(timeline: RankTimeline, origin: Mapping[int, int]) -> RankTimeline:
    """The timeline with each step moved to its origin; what lies behind the end of a step is of the next one."""
    steps = timeline.steps
    ended = np.append(np.iinfo(np.int64).min, steps.end[:-1])
    shift = np.array([origin[number] for number in steps.number.tolist()], np.int64) - steps.start

    def move(times: Times) -> Times:
        found: Times = times + shift[(np.searchsorted(ended, times, "left") - 1).clip(0)]
        return found

    return timeline.moved(move)
