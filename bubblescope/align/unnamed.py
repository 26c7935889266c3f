"""Which ranks form a pipeline, where messages name no peer and no group is described (gloo, old NCCL).

Counting tells how many pipelines there are: in a pipeline of one chunk a rank, an inner rank sends
and receives four messages a micro-batch, the two ends two each. So the messages that are short of
four a forward are four a micro-batch and pipeline.

Which ranks they are, time tells: the first forward of a stage starts after that of the stage before.
Frameworks put the stages of a pipeline either far apart (Megatron, DeepSpeed, torchtitan: rank s·d+k
is stage s of pipeline k) or side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.job import Pipeline
from bubblescope.model.timeline import RankTimeline

__all__ = ["by_counting", "chunks"]


def by_counting(timelines: Mapping[int, RankTimeline], world: int) -> tuple[Pipeline, ...] | None:
    """The pipelines of a job of `world` ranks; None where the counts fit none.

    Ranks that were not recorded leave one pipeline over all ranks as the only guess.
    """
    if world < 2 or len(timelines) < world:
        return (_line(range(world)),) if world > 1 else ()
    count = _pipelines(timelines)
    if count is None or world % count or world // count < 2:
        return None
    depth = world // count
    apart = tuple(_line(range(k, world, count)) for k in range(count))
    beside = tuple(_line(range(k * depth, (k + 1) * depth)) for k in range(count))
    return max((apart, beside), key=lambda layout: _fit(timelines, layout))


def chunks(timelines: Mapping[int, RankTimeline], pipelines: int) -> int | None:
    """How many chunks a rank holds, by the same count, as the ends are short of four messages a micro-batch.

    None where messages are not all there, or add up to no whole number.
    """
    forwards = [int(np.sum(t.actions.kind == Kind.F)) for t in timelines.values()]
    short = 4 * sum(forwards) - sum(len(t.messages) for t in timelines.values())
    if short <= 0 or not pipelines:
        return None
    count = 4 * float(np.median(forwards)) * pipelines / short
    return round(count) if count >= 1 and abs(count - round(count)) < 0.1 else None


def _line(ranks: Sequence[int]) -> Pipeline:
    return tuple((rank,) for rank in ranks)


def _pipelines(timelines: Mapping[int, RankTimeline]) -> int | None:
    """The number of pipelines that the messages of all ranks add up to, if they do."""
    forwards = {rank: int(np.sum(t.actions.kind == Kind.F)) for rank, t in timelines.items()}
    short = sum(4 * forwards[rank] - len(t.messages) for rank, t in timelines.items())
    usual = int(np.median(list(forwards.values())))
    count = short / (4 * usual) if usual else 0.0
    return round(count) if count >= 1 and abs(count - round(count)) < 0.1 else None


def _fit(timelines: Mapping[int, RankTimeline], layout: Sequence[Pipeline]) -> int:
    """How many neighbours in these pipelines start their first forwards one after the other."""
    first = {rank: _first_forwards(t) for rank, t in timelines.items()}
    pairs = [(a[0], b[0]) for line in layout for a, b in pairwise(line)]
    return sum(int(np.sum(first[a][: len(first[b])] < first[b][: len(first[a])])) for a, b in pairs)


def _first_forwards(timeline: RankTimeline) -> np.ndarray:
    """Start of the first forward of each step."""
    forward = timeline.actions.take(timeline.actions.kind == Kind.F)
    _, rows = np.unique(forward.step, return_index=True)
    return forward.start[rows]
