"""Which chunk a forward belongs to, where too few ranks were recorded to follow a micro-batch.

A schedule's order shows in what a rank does even if nobody names it: which kind of action comes when, and
which forward each backward belongs to. The orders of all schedules with several chunks are compared with
that, for every number of chunks that divides the forwards. How many messages the rank sent tells the ends
of a pipeline with one chunk from those of a pipeline with several. What fits exactly, and alone, is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bubblescope.align.follow import Told
from bubblescope.model.actions import Kind, Order
from bubblescope.model.placement import Placement, loop
from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.schedules.family import EVEN, Family, OrderOf, Shape
from bubblescope.schedules.registry import FAMILIES

__all__ = ["Guess", "ends", "guess"]

MOST_CHUNKS = 16
FEW = 4
"""Variants of a schedule that are tried; those of a search can be thousands."""

_Shown = tuple[tuple[int, int], ...]
"""Kind of each action, and the number of its forward among those of the rank (-1 where nothing tells)."""


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """What fits: the orders of the recorded positions, or none where others do too; `chunks` is the least v above 1."""

    chunks: int
    told: Mapping[int, Told]


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What a rank shows of a usual step: its actions, how many forwards, and its messages, None where unknown.

    These are the sends before the first backward, all sends, and all receives; `halves` are both together, also where
    nothing tells them apart.
    """

    shown: _Shown
    linked: bool
    forwards: int
    messages: tuple[int, int, int] | None
    halves: int


def guess(line: Mapping[int, RankTimeline], p: int, v: int | None = None) -> Guess | None:
    """Name the chunks of a pipeline of p positions from the recorded ones; None where nothing with several fits.

    `line` holds a timeline for each recorded position; forwards are numbered as they come, and a backward has
    the number of its forward, or -1 where nothing links them. `v` is the number of chunks, None where any may be.
    """
    seen = {at: _usual(timeline) for at, timeline in line.items()}
    forwards = max((each.forwards for each in seen.values()), default=0)
    # Where stages turn back on the last rank, no message parts their forwards, so that two may look like one.
    seen = {at: each for at, each in seen.items() if at != p - 1 or not 2 * each.forwards >= forwards > each.forwards}
    if not forwards or any(each.forwards != forwards for each in seen.values()):
        return None
    hits = list(_hits(seen, p, forwards, v))
    hits = [hit for hit in hits if hit.counted] or hits
    several = [hit for hit in hits if hit.chunked]
    silent = not any(len(timeline.messages) for timeline in line.values())
    if not several or (silent and len(several) < len(hits)):
        return None  # where no message can contradict it, one stage a rank is the plain reading
    first = several[0]
    alone = all(hit.orders == first.orders for hit in hits)
    # Without links the orders of one schedule can differ in nothing that shows: then it is the usual one.
    linked = any(each.linked for each in seen.values())
    alone |= not linked and all((hit.family, hit.shape) == (first.family, first.shape) for hit in hits)
    told = {at: _told(order) for at, order in first.orders.items()} if alone else {}
    return Guess(min(hit.shape.v for hit in several), told)


def _usual(timeline: RankTimeline) -> _Seen:
    a, m = timeline.actions, timeline.messages
    linked = timeline.reconstruction not in {"kernels", "table"}  # there micro-batches are counted, kind by kind
    steps: Counter[_Shown] = Counter()
    messages: Counter[tuple[int, int, int]] = Counter()
    halves: Counter[int] = Counter()
    for k in range(len(timeline.steps)):
        rows = np.flatnonzero(a.step == k)
        number = a.microbatch[rows] if linked else np.full(len(rows), -1)
        steps[tuple(zip(a.kind[rows].tolist(), number.tolist(), strict=True))] += 1
        mine = m.take(m.step == k)
        after = mine.after[mine.direction == Messages.SEND]
        backward = rows[a.kind[rows] != Kind.F]
        early = int(np.sum(after < backward[0])) if len(backward) else len(after)
        messages[early, len(after), int(np.sum(mine.direction == Messages.RECV))] += 1
        halves[len(mine)] += 1
    shown = max(steps, key=lambda step: (steps[step], len(step)), default=())
    clear = len(m) > 0 and not np.any(m.direction == Messages.EITHER)
    forwards = sum(kind == Kind.F for kind, _ in shown)
    usual = messages.most_common(1)[0][0] if messages and clear else None
    return _Seen(shown, linked, forwards, usual, max(halves, key=lambda count: halves[count], default=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Hit:
    """An order that shows what was seen: its orders by position, and whether a rank holds several stages.

    `counted` says that it sends and receives as many messages, which kernels that hold several need not show.
    """

    family: str
    shape: Shape
    orders: dict[int, Order]
    chunked: bool
    counted: bool


def _hits(seen: Mapping[int, _Seen], p: int, forwards: int, chunks: int | None) -> Iterator[_Hit]:
    """Every order and size that shows what was seen.

    Those with one stage a rank are only tried where others fit.
    """
    found = False
    sizes = [v for v in range(2, MOST_CHUNKS + 1) if forwards % v == 0 and chunks in {None, v}]
    for v in (*sizes, *([1] if chunks is None else [])):
        shape = Shape(p, forwards // v, v)
        for family in FAMILIES:
            if family.problem(shape) is not None or family.asynchronous:
                continue
            placement = family.placement(shape)
            chunked = len(placement[0]) > 1
            if chunked or found:
                for orders in _orders(family, shape):
                    if all(_fits(each, orders(at), placement, at) for at, each in seen.items()):
                        found |= chunked
                        counted = all(
                            each.halves == sum(map(sum, ends(orders(at), placement))) for at, each in seen.items()
                        )
                        yield _Hit(family.name, shape, {at: orders(at) for at in seen}, chunked, counted)


def _orders(family: Family, shape: Shape) -> Iterator[OrderOf]:
    return (variant.order for variant in islice(family.variants(shape, EVEN), FEW))


def _fits(seen: _Seen, order: Order, placement: Placement, at: int) -> bool:
    """Whether a rank that runs this order shows what was seen."""
    if len(order) != len(seen.shown) or not _talked(seen, order, placement, at):
        return False
    number = {(a.stage, a.microbatch): i for i, a in enumerate(a for a in order if a.kind == Kind.F)}
    return seen.shown == tuple((int(a.kind), number[a.stage, a.microbatch] if seen.linked else -1) for a in order)


def _talked(seen: _Seen, order: Order, placement: Placement, at: int) -> bool:
    """Whether a rank that runs this order sends and receives as much as was seen.

    Where stages go round the ranks, the output of the last forward before the first backward may go with its gradient.
    """
    if seen.messages is None:
        return True
    sends, receives = ends(order, placement)
    leading = sum(sends[: next((i for i, a in enumerate(order) if a.kind != Kind.F), len(order))])
    early, *total = seen.messages
    round_ = len(placement[at]) > 1 and placement == loop(len(placement), len(placement[at]))
    return total == [sum(sends), sum(receives)] and leading - round_ <= early <= leading


def ends(order: Order, placement: Placement) -> tuple[list[bool], list[bool]]:
    """Which actions of an order, but for weight gradients, send to another rank, and which receive."""
    last, held = max(max(stages) for stages in placement), {(a.stage, a.microbatch) for a in order}
    out, into = (
        [(a.stage + (way if a.kind == Kind.F else -way), a.microbatch) for a in order if a.kind != Kind.W]
        for way in (1, -1)
    )
    sends, receives = ([0 <= end[0] <= last and end not in held for end in ends] for ends in (out, into))
    return sends, receives


def _told(order: Order) -> Told:
    columns = np.array([(int(a.kind), a.stage, a.microbatch) for a in order], np.int64).reshape(-1, 3).T
    return Told(None, *columns)
