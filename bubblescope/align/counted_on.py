"""Micro-batches of labels that count on from step to step, counted from 0 in each.

Some loops number micro-batches through the whole run. Then the numbers of each step follow those of the step before, on
all ranks together, and no two steps share one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from bubblescope.model.columns import Ints, Times
from bubblescope.model.timeline import RankTimeline

__all__ = ["counted_anew"]

Timelines = Mapping[int, RankTimeline]


def counted_anew(timelines: Timelines) -> Timelines:
    """The timelines with micro-batches that count on from step to step counted from 0 in each."""
    acting = [t for t in timelines.values() if len(t.actions)]
    if any(t.reconstruction not in {"labels", "table"} for t in acting):
        return timelines
    named = _named(acting)
    ordered = [named[number] for number in sorted(named)]
    if len(ordered) < 2 or any(low <= high for (_, high), (low, _) in pairwise(ordered)):
        return timelines
    return {rank: _lowered(t, {number: low for number, (low, _) in named.items()}) for rank, t in timelines.items()}


def _named(timelines: list[RankTimeline]) -> dict[int, tuple[int, int]]:
    """The lowest and the highest micro-batch of each step, over all ranks."""
    found: dict[int, tuple[int, int]] = {}
    for timeline in timelines:
        named = timeline.actions.take(timeline.actions.microbatch >= 0)
        for row in np.unique(named.step).tolist():
            mine, number = named.microbatch[named.step == row], int(timeline.steps.number[row])
            low, high = found.get(number, (int(mine.min()), int(mine.max())))
            found[number] = min(low, int(mine.min())), max(high, int(mine.max()))
    return found


def _lowered(timeline: RankTimeline, lowest: Mapping[int, int]) -> RankTimeline:
    """A timeline with so much less in each step, where it names a micro-batch."""
    less: Times = np.array([lowest.get(n, 0) for n in timeline.steps.number.tolist()] + [0], np.int64)  # NONE maps to 0

    def moved(microbatch: Ints, step: Ints) -> Ints:
        return np.where(microbatch >= 0, microbatch - less[step], microbatch)

    actions, messages = timeline.actions, timeline.messages
    return dataclasses.replace(
        timeline,
        actions=actions.replace(microbatch=moved(actions.microbatch, actions.step)),
        messages=messages.replace(microbatch=moved(messages.microbatch, messages.step).clip(-1)),
    )
