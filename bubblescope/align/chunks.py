"""Stages of chunks: labels that count the stages of their own rank, and the way in which these lie over the ranks.

Chunk 1 of a rank is another stage where the chunks go round the ranks than where they fold back. The messages tell:
where a stage and the next one share a rank none passes between them, and others go to another peer. So do orders that
are those of schedules of one way alone, and how soon the last position goes on with what it has just run. No clock has
a part in any of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bubblescope.align.guess import ends
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.job import Plan
from bubblescope.model.options import Options
from bubblescope.model.placement import Placement, loop, vee
from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.schedules.detect import detect
from bubblescope.schedules.family import Shape

__all__ = ["Chunks", "chunked"]

Timelines = Mapping[int, RankTimeline]
_USUAL = 0.9
"""Share of the sends that must go where a way has the stage they go to; some belong to an earlier action."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """The stages of each position by chunk, and whether anything tells them; `v` is the number of chunks."""

    held: Placement
    v: int
    told: bool


def chunked(timelines: Timelines, plan: Plan, options: Options) -> Chunks:
    """How chunks that labels name lie over the ranks; one stage a position where none does."""
    named = max((int(chunk.max()) for t in timelines.values() for chunk in _named(t) if len(chunk)), default=-1) + 1
    v = max(named, options.virtual or 1) if named else 1
    ways = [loop(plan.pp, v), vee(plan.pp, v)]
    if v == 1 or plan.pp == 1 or not plan.pipelines:
        return Chunks(ways[0], v, told=True)
    place = {rank: at for rank, (_, at) in plan.place_of().items()}
    ranks = {rank: t for rank, t in timelines.items() if rank in place and np.any(t.actions.chunk >= 0)}
    for fits in _EVIDENCE:
        fitting = [way for way in ways if fits(ranks, place, way)]
        if len(fitting) == 1:
            return Chunks(fitting[0], v, told=True)
    return Chunks(ways[0], v, told=not ranks)


def _named(timeline: RankTimeline) -> tuple[np.ndarray, ...]:
    return timeline.actions.chunk, timeline.messages.chunk


def _as_many(ranks: Timelines, place: Mapping[int, int], way: Placement) -> bool:
    """Whether every rank sends and receives in its usual step as often as the way of its chunks asks for."""
    return all(
        _usual_messages(timeline) == sum(map(sum, ends(_usual_order(timeline, way[place[rank]]), way)))
        for rank, timeline in ranks.items()
    )


def _to_whom(ranks: Timelines, place: Mapping[int, int], way: Placement) -> bool:
    """Whether sends go to the position of the next stage, as far as peers are named."""
    at = {stage: position for position, stages in enumerate(way) for stage in stages}
    right = [
        at.get(way[place[rank]][chunk] + (1 if kind == Kind.F else -1)) == place.get(peer)
        for rank, timeline in ranks.items()
        for kind, chunk, peer in _sends(timeline)
    ]
    return bool(right) and float(np.mean(right)) >= _USUAL


def _sends(timeline: RankTimeline) -> Iterator[tuple[int, int, int]]:
    """Kind and chunk of the action behind which each send was posted, and its peer, where both are known."""
    a, m = timeline.actions, timeline.messages
    sends = m.take((m.direction == Messages.SEND) & (m.after >= 0) & (m.peer >= 0))
    yield from zip(a.kind[sends.after].tolist(), a.chunk[sends.after].tolist(), sends.peer.tolist(), strict=True)


def _in_order(ranks: Timelines, place: Mapping[int, int], way: Placement) -> bool:
    """Whether the ranks run the order of a schedule whose chunks lie in this way."""
    found = {place[rank]: _usual_order(timeline, way[place[rank]]) for rank, timeline in ranks.items()}
    forwards = Counter(a.stage for order in found.values() for a in set(order) if a.kind == Kind.F)
    verdict = detect(found, Shape(len(way), max(forwards.values(), default=1), len(way[0])))
    best = verdict.best
    return best is not None and best.confidence == 1


def _sooner(ranks: Timelines, place: Mapping[int, int], way: Placement) -> bool:
    """Whether the last position runs fewer forwards of chunk 0 before its first of chunk 1, where chunks fold back.

    There it goes on with what it has just run, and the first position waits until that is back; where chunks go round
    the ranks, all run as many.
    """
    first, last = ([t for r, t in ranks.items() if place[r] == at] for at in (0, len(way) - 1))
    folded = 0
    for one, other in zip(first, last, strict=False):
        before, behind = _before_second(one), _before_second(other)
        folded += sum(1 if behind[step] < before[step] else -1 for step in before.keys() & behind.keys())
    return folded > 0 if way == vee(len(way), len(way[0])) else folded < 0


_EVIDENCE: tuple[Callable[[Timelines, Mapping[int, int], Placement], bool], ...] = (
    _as_many,
    _to_whom,
    _in_order,
    _sooner,
)
"""What tells one way from the other, the strongest first; what fits both or neither says nothing."""


def _usual_messages(timeline: RankTimeline) -> int:
    """How many messages a rank has in most of its steps."""
    steps = timeline.messages.step
    counts = Counter(int(np.sum(steps == k)) for k in range(len(timeline.steps)))
    return counts.most_common(1)[0][0] if counts else 0


def _usual_order(timeline: RankTimeline, held: tuple[int, ...]) -> Order:
    """What a rank runs in most of its steps, if its chunks are these stages."""
    a = timeline.actions
    steps: Counter[Order] = Counter()
    for k in range(len(timeline.steps)):
        rows = np.flatnonzero(a.step == k)
        each = zip(a.chunk[rows].tolist(), a.kind[rows].tolist(), a.microbatch[rows].tolist(), strict=True)
        steps[tuple(Action(held[max(chunk, 0)], Kind(kind), number) for chunk, kind, number in each)] += 1
    return max(steps, key=lambda order: (steps[order], len(order)), default=())


def _before_second(timeline: RankTimeline) -> dict[int, int]:
    """For each step, by its number, the forwards of chunk 0 before the first forward of chunk 1."""
    a = timeline.actions
    found: dict[int, int] = {}
    for step in np.unique(a.step).tolist():
        chunk = a.chunk[(a.step == step) & (a.kind == Kind.F)]
        later = np.flatnonzero(chunk == 1)
        if len(later):
            found[int(timeline.steps.number[step])] = int(np.sum(chunk[: later[0]] == 0))
    return found
