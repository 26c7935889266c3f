"""ZB-1p and ZB-2p: zero-bubble orders that are searched for, given times and a limit on activations.

The heuristic of Zero Bubble, arXiv 2401.10241, section 3.1; its B, the input gradient, is I here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import EVEN, SPLIT, Costs, Family, Memory, Shape, Variant
from bubblescope.schedules.ticks import Ticks

__all__ = ["KEPT", "ONE", "TWO", "search"]

F, I, W = Kind.F, Kind.I, Kind.W  # noqa: E741 - the letters of the field

KEPT = 32 / 74
"""Share of a micro-batch's activations that its I leaves for its W.

Zero Bubble, table 1: 32h of 34h+5as, here with heads of 128 and sequences of 1024, as in the larger models of table 3.
"""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the heuristic tries both ways.

    `delay`: before the first I, a forward may end later than that I could begin. `skip`: a rank that is two or
    more forwards ahead of the next one may leave one out, so that its next I is not late. `fill`: a W goes into
    every gap, even into one that would not make this rank wait longer than the others do.
    """

    delay: bool
    skip: bool
    fill: bool


SMALL = 2048
"""Forwards of a pipeline up to which a search takes 0.1 s at most, so that several are worth their time."""

CHOICES = tuple(_Choice(*each) for each in product((False, True), (True, False), (True, False)))


class _Rank:
    """A rank as its order grows: when it is free, how long it has waited since its first action, when what ended."""

    __slots__ = ("clock", "ends", "order", "stage", "waited")

    def __init__(self, stage: int) -> None:
        self.stage, self.clock, self.waited = stage, 0, 0
        self.order: list[Action] = []
        self.ends: dict[Kind, list[int]] = {F: [], I: [], W: []}

    def done(self, kind: Kind) -> int:
        return len(self.ends[kind])

    @property
    def owed(self) -> int:
        """Weight gradients that could run."""
        return self.done(I) - self.done(W)

    def put(self, kind: Kind, arrival: int, length: int) -> None:
        """The next action of a kind, once its input is there."""
        start = max(self.clock, arrival)
        if self.order:
            self.waited += start - self.clock
        self.clock = start + length
        self.order.append(Action(self.stage, kind, self.done(kind)))
        self.ends[kind].append(self.clock)


class _Draft:
    """The orders of all ranks, written round by round: a forward and an I on each, weight gradients between them."""

    def __init__(self, shape: Shape, ticks: Ticks, limit: float, kept: float, choice: _Choice) -> None:
        self.m, self.ticks, self.limit, self.kept, self.choice = shape.m, ticks, limit, kept, choice
        self.length = {F: ticks.forward, I: ticks.input, W: ticks.weight}
        self.ranks = [_Rank(stage) for stage in range(shape.p)]
        self.longest = 0  # wait of any rank
        self._warm_up()
        for _ in range(1, shape.m):
            self._forwards()
            self._backwards()
        for rank in self.ranks:
            self._put(rank, W, rank.owed)

    @property
    def cost(self) -> int:
        """The longest time from a rank's own first action to its own last one (D3)."""
        return max(rank.clock - rank.ends[F][0] for rank in self.ranks)

    def _arrival(self, rank: _Rank, kind: Kind) -> int:
        """When the input of a rank's next action of that kind is there."""
        source = rank.stage - 1 if kind == F else rank.stage + 1
        if kind == W or not 0 <= source < len(self.ranks):
            return 0
        return self.ranks[source].ends[kind][rank.done(kind)] + self.ticks.transfer

    def _put(self, rank: _Rank, kind: Kind, times: int = 1) -> None:
        for _ in range(times):
            rank.put(kind, self._arrival(rank, kind), self.length[kind])
        self.longest = max(self.longest, rank.waited)

    def _warm_up(self) -> None:
        for rank in self.ranks:
            self._put(rank, F)
        more = self._before_first()
        for j in range(1, len(more)):  # a rank keeps ahead of the next one by a forward at least
            if 1 + more[j] < self.m:
                more[j] = max(0, min(more[j], more[j - 1] - 1))
        for rank, times in zip(self.ranks, more, strict=True):
            self._put(rank, F, times)
        for rank in reversed(self.ranks):
            self._put(rank, I)

    def _before_first(self) -> list[int]:
        """How many forwards beside its first each rank has room and time for before its first I."""
        room = min(self.m, int(self.limit)) - 1
        more = [0] * len(self.ranks)
        ready = self.ranks[-1].clock + self.ticks.input
        for j in reversed(range(len(self.ranks) - 1)):
            clock, ready = self.ranks[j].clock, ready + self.ticks.transfer
            while more[j] < room and (clock < ready if self.choice.delay else clock + self.ticks.forward <= ready):
                clock += self.ticks.forward
                more[j] += 1
            ready = max(clock, ready) + self.ticks.input
        return more

    def _forwards(self) -> None:
        """A forward on each rank that has one left, unless it or a later rank leaves it out."""
        ahead = [rank.done(F) < self.m and not self._leaves_out(rank) for rank in self.ranks]
        for j in reversed(range(len(ahead) - 1)):
            ahead[j] = ahead[j] and ahead[j + 1]
        for rank, runs in zip(self.ranks, ahead, strict=True):
            if runs:
                self._put(rank, W, self._to_free(rank))
                self._fill(rank, F)
                self._put(rank, F)

    def _backwards(self) -> None:
        for rank in reversed(self.ranks):
            self._fill(rank, I)
            if rank.stage == 0 and rank.done(F) == self.m:
                self._put(rank, W, rank.owed)  # nobody waits for the gradient of rank 0
            self._put(rank, I)

    def _leaves_out(self, rank: _Rank) -> bool:
        """Whether a rank, being ahead, spares a forward that would make its next I late."""
        if not self.choice.skip or rank.stage + 1 == len(self.ranks):
            return False
        after = self.ranks[rank.stage + 1]
        if rank.done(F) < after.done(F) + 2:
            return False
        ready = after.clock + self.ticks.forward + self.ticks.input + self.ticks.transfer
        if rank.clock >= ready:
            return True
        fits = rank.clock + self.ticks.forward + self._to_free(rank) * self.ticks.weight <= ready
        return not fits and ready - rank.clock <= self.longest - rank.waited

    def _to_free(self, rank: _Rank) -> int:
        """How many weight gradients must run before another forward has room."""
        flying, count = rank.done(F) + 1 - rank.done(I), 0
        while count < rank.owed and flying + (rank.owed - count) * self.kept > self.limit + 1e-9:  # rounding
            count += 1
        return count

    def _fill(self, rank: _Rank, kind: Kind) -> None:
        """Put weight gradients into the gap before a rank's next action of that kind."""
        arrival = self._arrival(rank, kind)
        while rank.owed and rank.clock + self.ticks.weight <= arrival:
            self._put(rank, W)
        gap = arrival - rank.clock
        if rank.owed and gap > 0 and (self.choice.fill or gap > self.longest - rank.waited):
            self._put(rank, W)


@lru_cache(maxsize=8)
def search(shape: Shape, costs: Costs, limit: float, kept: float = KEPT) -> tuple[tuple[Order, ...], ...]:
    """What the heuristic finds, the best first: the orders of a pipeline, rank by rank, each once.

    Args:
        shape: of the pipeline.
        costs: times that the order is for; the same in another unit lead to the same order.
        limit: micro-batches whose activations a rank may hold.
        kept: the share of a micro-batch's activations that stays from its I to its W.
    """
    ticks = Ticks.of(costs)
    drafts = sorted((_Draft(shape, ticks, limit, kept, choice) for choice in CHOICES), key=lambda draft: draft.cost)
    return tuple(dict.fromkeys(tuple(tuple(rank.order) for rank in draft.ranks) for draft in drafts))


def _order(shape: Shape, costs: Costs, limit: int, way: int, rank: int) -> Order:
    return search(shape, costs, limit)[way][rank]


def _variants(times_p: int, shape: Shape, costs: Costs) -> Iterator[Variant]:
    """The best for the costs; then what small changes of them lead to, as times that tie on paper differ in a run.

    These are all of the eight ways, transfers that only break ties, and even times. A large pipeline has so
    many actions that a few of them in other places do not matter.
    """
    limit = times_p * shape.p
    yield Variant(partial(_order, shape, costs, limit, 0))
    if shape.p * shape.m > SMALL:
        yield Variant(partial(_order, shape, EVEN, limit, 0), "as made for F = I = W")
        return
    known = {search(shape, costs, limit)[0]}
    for made_for in (costs, _hardly_later(costs), EVEN, _hardly_later(EVEN)):
        for way, orders in enumerate(search(shape, made_for, limit)):
            if orders not in known:
                known.add(orders)
                yield Variant(partial(_order, shape, made_for, limit, way), "as made for slightly other times")


def _hardly_later(costs: Costs) -> Costs:
    """The same with transfers that take next to no time."""
    return replace(costs, transfer=costs.transfer + costs.total / 1000)


def _one_chunk(name: str, shape: Shape) -> str | None:
    return None if shape.v == 1 else f"{name} has one chunk a rank"


def _at_most(limit: str) -> Memory:
    """The limit counts what an I lets go; how many micro-batches that makes is a result of the search."""
    return Memory(f"{limit}, if I frees 42/74 of an activation", lambda *_: None)


RULE = (
    "forwards until the first I could begin or memory is full; then F and I in turn, a W wherever a gap is long "
    "enough, would make the longest wait longer, or memory is full; then the W that are left: the best of eight ways"
)

SOURCE = (
    "Zero Bubble, arXiv 2401.10241, section 3; sail-sg/zero-bubble-pipeline-parallelism, "
    "megatron/core/pipeline_parallel/zerobubble/scheduler/zb.py"
)

ONE = Family(
    name="zb-1p",
    summary="a zero-bubble order searched for the times at hand, within the memory of 1f1b",
    rule=RULE,
    source=SOURCE,
    aliases=("zb1p",),
    variants=partial(_variants, 1),
    memory=_at_most("p"),
    layout=loop,
    kinds=SPLIT,
    limits=partial(_one_chunk, "zb-1p"),
)

TWO = Family(
    name="zb-2p",
    summary="a zero-bubble order searched for the times at hand, within twice the memory of 1f1b",
    rule=RULE,
    source=SOURCE,
    aliases=("zb2p",),
    variants=partial(_variants, 2),
    memory=_at_most("2p"),
    layout=loop,
    kinds=SPLIT,
    limits=partial(_one_chunk, "zb-2p"),
)
