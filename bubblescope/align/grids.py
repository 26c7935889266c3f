"""Which ranks form a pipeline where nothing names one: regular grids, and how well all that ranks show fits each.

Frameworks number ranks axis by axis, so that the ranks of a pipeline lie a stride apart: far apart (Megatron,
DeepSpeed, torchtitan), side by side, or with the ranks between them that share a stage. The ranks that are short of
messages are the ends of the pipelines; a grid that has others there is none, nor is one that parts the partners of a
known group. Of those that remain each is asked what else fits: who sends first, how many forwards ranks run ahead,
whether those of one position do the same, whether the messages of neighbours end together, and when the first forwards
start. What others than pipelines may show, or clocks that disagree, counts half. Two that fit as well leave it open,
unless it makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bubblescope.align.ends import ahead
from bubblescope.align.unnamed import END, chunks, first_forwards, line, opens_with, shortages
from bubblescope.model.columns import Times
from bubblescope.model.groups import serves
from bubblescope.model.job import Pipeline
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["Counted", "by_counting", "grids"]

Timelines = Mapping[int, RankTimeline]
Lanes = tuple[Pipeline, ...]
Shown = Mapping[int, "_Shown"]
LEVEL = 0.02
"""Difference of two scores that is none; each kind of evidence counts up to 1."""
AT_ONCE_NS = 20_000
"""By how much the two halves of a message may seem to end at different times, the offset of the clocks taken out."""
FEW = 64
"""Messages of a rank that are compared with those of another."""


def grids(world: int, depth: int) -> Iterator[Lanes]:
    """The ways to lay pipelines of `depth` positions over all ranks: stages far apart, side by side, and in between.

    Each has a stride from stage to stage; so many pipelines lie within each other, one block behind the other.
    """
    count = world // depth
    strides = [stride for stride in range(1, count + 1) if count % stride == 0]
    for stride in dict.fromkeys((count, *strides)):
        blocks = range(0, world, depth * stride)
        yield tuple(line(range(b + k, b + depth * stride, stride)) for b in blocks for k in range(stride))


@dataclass(frozen=True, slots=True)
class Counted:
    """Pipelines of one rank a position by what their ranks show; `level` are others that fit as well."""

    lanes: Lanes
    level: Lanes = ()


def by_counting(timelines: Timelines, world: int) -> Counted | None:
    """The pipelines of a job of `world` ranks; None where ranks are missing or the counts fit none."""
    if len(timelines) < world or world < 2 or chunks(timelines) is None:
        return None
    short = frozenset(rank for rank, lacks in shortages(timelines).items() if lacks > END)
    if not short or len(short) % 2 or world % (len(short) // 2) or (depth := world // (len(short) // 2)) < 2:
        return None
    shown = {rank: _Shown(timeline) for rank, timeline in timelines.items()}
    partners = _partners(timelines)
    fitting = {
        frozenset(lanes): lanes
        for lanes in _candidates(world, depth, shown)
        if {lane[end][0] for lane in lanes for end in (0, -1)} == short and _share(lanes, partners)
    }
    scored = sorted(((_score(lanes, shown), lanes) for lanes in fitting.values()), key=lambda found: -found[0])
    if not scored:
        return None
    top, best = scored[0]
    level = (lanes for score, lanes in scored[1:] if top - score < LEVEL and _differ(lanes, best, shown))
    return Counted(best, next(level, ()))


def _partners(timelines: Timelines) -> set[tuple[int, ...]]:
    """Ranks that hold one position of their pipelines: those of a group for anything but pipelines."""
    return {call.ranks for t in timelines.values() for call in t.calls if serves(call) not in {None, "pp"}} - {()}


def _share(lanes: Lanes, partners: Collection[tuple[int, ...]]) -> bool:
    """Whether partners hold one position."""
    place = {rank: at for lane in lanes for at, (rank,) in enumerate(lane)}
    return all(len({place[rank] for rank in ranks if rank in place}) < 2 for ranks in partners)


def _differ(one: Lanes, other: Lanes, shown: Shown) -> bool:
    """Whether two grids have other pipelines, or what a position does depends on which of them it is."""
    this, that = (
        (
            sorted(sorted(rank for (rank,) in lane) for lane in lanes),
            sorted(tuple(shown[rank].order for (rank,) in lane) for lane in lanes),
        )
        for lanes in (one, other)
    )
    return this != that


class _Shown:
    """What a rank shows by itself."""

    def __init__(self, timeline: RankTimeline) -> None:
        self.timeline = timeline

    @cached_property
    def opens(self) -> int | None:
        """The direction of its first message."""
        return opens_with(self.timeline)

    @cached_property
    def ahead(self) -> int:
        """Forwards before its first backward."""
        return ahead(self.timeline)

    @cached_property
    def starts(self) -> dict[int, int]:
        """When its first forward of each step starts, by the number of the step."""
        return first_forwards(self.timeline)

    @cached_property
    def ends(self) -> Times:
        """When its first messages end, those that end at once taken for one."""
        ends = np.sort(self.timeline.messages.end)
        return ends[np.diff(ends, prepend=ends[:1] - 2 * AT_ONCE_NS) > AT_ONCE_NS][:FEW]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The kinds of its actions as they mostly run in a step."""
        a = self.timeline.actions
        orders = Counter(tuple(a.kind[a.step == step].tolist()) for step in np.unique(a.step).tolist())
        return max(orders, key=lambda order: (orders[order], len(order)), default=())


def _candidates(world: int, depth: int, shown: Shown) -> Iterator[Lanes]:
    """Regular grids, from either end; and with positions in an order that the numbers of their ranks do not tell."""
    for lanes in grids(world, depth):
        yield lanes
        yield tuple(lane[::-1] for lane in lanes)
        positions = [[lane[at][0] for lane in lanes] for at in range(depth)]
        for key in (_mean_start, _mean_ahead):
            order = sorted(range(depth), key=lambda at: (key(positions[at], shown), at))
            yield tuple(tuple(lane[at] for at in order) for lane in lanes)


def _mean_start(ranks: Sequence[int], shown: Shown) -> float:
    starts = [start for rank in ranks for start in shown[rank].starts.values()]
    return float(np.mean(starts)) if starts else 0.0


def _mean_ahead(ranks: Sequence[int], shown: Shown) -> float:
    return -float(np.mean([shown[rank].ahead for rank in ranks]))


def _score(lanes: Lanes, shown: Shown) -> float:
    """How well a grid fits what its ranks show; each kind of evidence counts by the share that fits."""
    return sum(weight * float(np.mean(found)) for weight, evidence in _EVIDENCE if (found := evidence(lanes, shown)))


def _regular(lanes: Lanes, shown: Shown) -> list[bool]:  # noqa: ARG001 - that of numbers, not of what ranks show
    """Whether the numbers of the ranks rise or fall from stage to stage."""
    return [list(lane) in (sorted(lane), sorted(lane, reverse=True)) for lane in lanes]


def _opening(lanes: Lanes, shown: Shown) -> list[bool]:
    """Whether the first rank of each pipeline sends first, and each other one receives."""
    return [
        shown[rank].opens == (Messages.RECV if at else Messages.SEND)
        for lane in lanes
        for at, (rank,) in enumerate(lane)
        if shown[rank].opens is not None
    ]


def _descending(lanes: Lanes, shown: Shown) -> list[bool]:
    """Whether no rank runs more forwards ahead than the one before it."""
    return [shown[a].ahead >= shown[b].ahead for lane in lanes for (a,), (b,) in pairwise(lane)]


def _alike(lanes: Lanes, shown: Shown) -> list[bool]:
    """Whether the ranks of one position do the same."""
    return [shown[a].order == shown[b].order for one, other in pairwise(lanes) for (a,), (b,) in zip(one, other)]  # noqa: B905 - all are as deep


def _together(lanes: Lanes, shown: Shown) -> list[float]:
    """The share of the messages of neighbours that end at the same times, at one offset of their clocks."""
    pairs = [(shown[a].ends, shown[b].ends) for lane in lanes for (a,), (b,) in pairwise(lane)]
    return [_in_step(one, other) for one, other in pairs if len(one) and len(other)]


def _in_step(one: Times, other: Times) -> float:
    apart = np.sort((one[:, None] - other[None, :]).ravel())
    within = np.searchsorted(apart, apart + AT_ONCE_NS, "right") - np.arange(len(apart))
    return min(1.0, float(within.max()) / min(len(one), len(other)))


def _in_turn(lanes: Lanes, shown: Shown) -> list[bool]:
    """Whether the first forwards of neighbours start one after the other."""
    pairs = [(shown[a].starts, shown[b].starts) for lane in lanes for (a,), (b,) in pairwise(lane)]
    return [one[step] < other[step] for one, other in pairs for step in one.keys() & other.keys()]


_EVIDENCE: tuple[tuple[float, Callable[[Lanes, Shown], Sequence[float]]], ...] = (
    (1.0, _opening),
    (0.5, _descending),
    (1.0, _alike),
    (1.0, _together),
    (0.5, _in_turn),
    (0.1, _regular),
)
"""What ranks show, and how much it counts."""
