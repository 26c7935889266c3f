"""V-Half and V-Min: building blocks that bound how long an activation lives, repeated and then pushed together.

Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, sections 3 and 4; which cells move, and how far, is
as in sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py. A micro-batch runs down the ranks and up
again, forward and then backward: four parts on each rank, each of them a slot long.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import accumulate

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import vee
from bubblescope.schedules.family import SPLIT, Costs, Family, Memory, Shape, Variant

__all__ = ["HALF", "MIN"]

PERIOD = 6
"""Slots from a micro-batch to the next: two F, two I and two W."""

WEIGHTS = 4
"""Where a lane has its weight gradients: behind the four parts."""

Lane = list[list[int]]
"""Of a rank, for each part (F down, F up, I down, I up) the slot of every micro-batch; then the slots of the W, if set.

An I goes down the ranks while it goes up the stages.
"""

Cell = tuple[int, int, int, int]
"""Slot, rank, part, micro-batch."""

Block = Callable[[int, int], tuple[int, int, int, int]]
"""The slots of the first micro-batch's parts, for p ranks and a rank."""

Kept = tuple[int, int]
"""Activations held, and weight gradients owed that will let go of one each."""


def _half(p: int, rank: int) -> tuple[int, int, int, int]:
    gap = 3 if p % 2 == 0 else 0  # so that no two parts ever want the same slot
    return 2 * rank, 3 * p - rank - 2, 3 * p + gap + 2 * rank - 1, 6 * p + gap - rank - 2


def _min(p: int, rank: int) -> tuple[int, int, int, int]:
    gap = 2 if p % 3 == 0 else 0  # likewise
    return rank, 2 * p - rank - 1, 2 * p + gap + rank, 4 * p + gap - rank - 1


class _Room:
    """The slots of a rank as its cells move, and what it keeps after each slot.

    Without weight gradients in its lane, every free slot counts as one of those that are owed.
    """

    def __init__(self, lane: Lane) -> None:
        self.loose = len(lane) == WEIGHTS
        self.taken: list[int | None] = [None] * (1 + max(slots[-1] for slots in lane))
        for part, slots in enumerate(lane):
            for slot in slots:
                self.taken[slot] = part
        self.kept: list[Kept] = list(accumulate(self.taken, self._after, initial=(0, 0)))[1:]
        self.peak = max(held for held, _ in self.kept)

    def _after(self, kept: Kept, part: int | None) -> Kept:
        held, owed = kept
        if part is None:
            return (held - 1, owed - 1) if owed else kept
        if part < 2:
            return held + 1, owed
        return (held - 1, owed) if part == WEIGHTS else (held, owed + self.loose)

    def sooner(self, start: int, at: int, limit: int) -> int:
        """Move the cell in slot `at` to the first free one from `start` on that keeps to the limit; where it is now."""
        slot = start
        while slot < at:
            if self.taken[slot] is None:
                over = self._move(slot, at, limit)
                if over is None:
                    return slot
                slot = over  # any free slot up to there keeps as much by then
            slot += 1
        return at

    def _move(self, slot: int, at: int, limit: int) -> int | None:
        """Move a cell, or leave it and tell the slot in which the rank would keep too much."""
        self.taken[slot], self.taken[at] = self.taken[at], None
        now = self.kept[slot - 1] if slot else (0, 0)
        changed = []
        for k in range(slot, len(self.taken)):
            now = self._after(now, self.taken[k])
            if now[0] > limit:
                self.taken[slot], self.taken[at] = None, self.taken[slot]
                return k
            if k >= at and now == self.kept[k]:
                break
            changed.append(now)
        self.kept[slot : slot + len(changed)] = changed
        return None


def _source(p: int, rank: int, part: int) -> tuple[int, int] | None:
    """Rank and part where a micro-batch comes from."""
    before = rank - 1 if part % 2 == 0 else rank + 1
    if 0 <= before < p:
        return before, part
    return (rank, part - 1) if part else None


def _cells(lanes: list[Lane]) -> list[Cell]:
    """All cells, in the order of their slots."""
    return sorted(
        (slot, rank, part, i)
        for rank, lane in enumerate(lanes)
        for part, slots in enumerate(lane)
        for i, slot in enumerate(slots)
    )


def _steady(cells: list[Cell], m: int) -> range:
    """The cells from the first one that ends a micro-batch to the last one that begins one."""
    first = next(k for k, (_, rank, part, _) in enumerate(cells) if rank == 0 and part == 3)
    ends = (k for k in range(first, len(cells)) if cells[k][2] == 0 and cells[k][3] == m - 1)
    return range(first, next(ends, len(cells)) + 1)


def _reorder(lanes: list[Lane], *, head: bool) -> None:
    """Move the cells behind the steady ones, and with `head` those before, as far ahead as inputs and memory allow."""
    rooms = [_Room(lane) for lane in lanes]
    limit = max(room.peak for room in rooms)
    cells = _cells(lanes)
    steady = _steady(cells, len(lanes[0][0]))
    gradients: list[list[int]] = [[] for _ in lanes]  # slots of the I that a rank has run
    for k, (slot, rank, part, i) in enumerate(cells):
        slots = lanes[rank][part]
        if k >= steady.stop or (head and k < steady.start):
            ready = gradients[rank][i] if part == WEIGHTS else _ready(lanes, rank, part, i)
            start = 1 + max(ready, slots[i - 1] if i else -1)
            slots[i] = rooms[rank].sooner(start, slot, limit)
        if part in (2, 3):
            insort(gradients[rank], slots[i])


def _ready(lanes: list[Lane], rank: int, part: int, i: int) -> int:
    """The slot in which the input of a part is made, or -1 where it needs none."""
    source = _source(len(lanes), rank, part)
    return -1 if source is None else lanes[source[0]][source[1]][i]


def _weights(lane: Lane) -> tuple[list[int], list[int]]:
    """The slots of the weight gradients of the second and the first chunk: whatever is free, the second one first."""
    taken = {slot: part for part, slots in enumerate(lane[:WEIGHTS]) for slot in slots}
    owed = [0, 0]
    put: tuple[list[int], list[int]] = ([], [])
    slot, total = 0, 2 * len(lane[0])
    while len(put[0]) + len(put[1]) < total:
        part = taken.get(slot)
        if part is None and any(owed):
            which = 0 if owed[0] else 1
            owed[which] -= 1
            put[which].append(slot)
        elif part is not None and part >= 2:
            owed[part - 2] += 1
        slot += 1
    return put


def _with_weights(lanes: list[Lane]) -> list[Lane]:
    return [[*lane, sorted(slot for slots in _weights(lane) for slot in slots)] for lane in lanes]


def _squeeze(lanes: list[Lane]) -> list[Lane]:
    """Every part as soon as its input and the rank's cell before it allow; the weight gradients are dropped."""
    squeezed: list[Lane] = [[[] for _ in lane] for lane in lanes]
    free = [0] * len(lanes)
    for _, rank, part, i in _cells(lanes):
        ready = -1 if part == WEIGHTS else _ready(squeezed, rank, part, i)
        at = max(free[rank], ready + 1)
        squeezed[rank][part].append(at)
        free[rank] = at + 1
    return [lane[:WEIGHTS] for lane in squeezed]


@lru_cache(maxsize=8)
def _orders(p: int, m: int, block: Block) -> tuple[Order, ...]:
    """The orders of all ranks: repeat, place the W, reorder, squeeze; and again for the end, now that it is shorter."""
    end = PERIOD * m
    lanes = _with_weights([[list(range(at, at + end, PERIOD)) for at in block(p, rank)] for rank in range(p)])
    _reorder(lanes, head=True)
    lanes = _squeeze(lanes)
    _reorder(lanes, head=False)
    return tuple(_order(p, rank, lane) for rank, lane in enumerate(_squeeze(_with_weights(lanes))))


def _order(p: int, rank: int, lane: Lane) -> Order:
    down, up = rank, 2 * p - 1 - rank
    kinds = [(down, Kind.F), (up, Kind.F), (up, Kind.I), (down, Kind.I), (up, Kind.W), (down, Kind.W)]
    return tuple(
        action
        for _, action in sorted(
            (slot, Action(stage, kind, i))
            for (stage, kind), slots in zip(kinds, (*lane, *_weights(lane)), strict=True)
            for i, slot in enumerate(slots)
        )
    )


def _of_rank(shape: Shape, block: Block, rank: int) -> Order:
    return _orders(shape.p, shape.m, block)[rank]


def _half_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_of_rank, shape, _half))


def _min_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - likewise
    yield Variant(partial(_of_rank, shape, _min))


def _half_held(shape: Shape, rank: int) -> float | None:  # noqa: ARG001 - alike on all ranks
    """Found by counting, for all p up to 64."""
    return shape.p // 2 + 1 if shape.m > shape.p else None


def _min_held(shape: Shape, rank: int) -> float | None:
    """Likewise; where p mod 3 = 2, rank 0 holds one chunk less than the others."""
    spared = 0.5 if shape.p % 3 == 2 and rank == 0 else 0
    return (shape.p + 1) // 3 + 1 - spared if shape.m > shape.p else None


def _two_chunks(name: str, shape: Shape) -> str | None:
    return None if shape.v == 2 else f"{name} has two chunks a rank"


SOURCE = (
    "Controllable Memory, arXiv 2405.15362, sections 3 and 4; sail-sg/zero-bubble-pipeline-parallelism, "
    "megatron/core/pipeline_parallel/zerobubble/scheduler/zbv_greedy.py"
)

HALF = Family(
    name="v-half",
    summary="two chunks a rank folded like a V, half the activations of 1f1b",
    rule="a micro-batch every six slots, its F, F, I, I in slots 2r, 3p-r-2, 3p+q+2r-1, 6p+q-r-2 (q = 3 for even p, "
    "else 0); each W in the first free slot; then both ends moved ahead as far as memory allows",
    source=SOURCE,
    aliases=("vhalf",),
    variants=_half_variants,
    memory=Memory("floor(p/2)+1 where m > p", _half_held),
    layout=vee,
    limits=partial(_two_chunks, "v-half"),
    chunks=2,
    kinds=SPLIT,
)

MIN = Family(
    name="v-min",
    summary="two chunks a rank folded like a V, a third of the activations of 1f1b",
    rule="a micro-batch every six slots, its F, F, I, I in slots r, 2p-r-1, 2p+q+r, 4p+q-r-1 (q = 2 where 3 divides p, "
    "else 0); each W in the first free slot; then both ends moved ahead as far as memory allows",
    source=SOURCE,
    aliases=("vmin",),
    variants=_min_variants,
    memory=Memory("floor((p+1)/3)+1 where m > p", _min_held),
    layout=vee,
    limits=partial(_two_chunks, "v-min"),
    chunks=2,
    kinds=SPLIT,
)
