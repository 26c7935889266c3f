"""Hanayo: W waves over the ranks, 2W chunks on each, and whatever is ready runs, backwards first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from heapq import heappop, heappush

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import vee
from bubblescope.schedules.family import EVEN, Costs, Family, Memory, Shape, Variant
from bubblescope.schedules.ticks import Ticks

__all__ = ["FAMILY"]


class _Run:
    """A pipeline as it runs. `events` say when an action ends, or its output is there for the next one."""

    def __init__(self, shape: Shape, costs: Costs) -> None:
        ticks = Ticks.of(costs)
        self.length = {Kind.F: ticks.forward, Kind.B: ticks.backward}  # of a chunk, so that a transfer counts v times
        self.transfer, self.last = shape.v * ticks.transfer, shape.stages - 1
        self.rank_of = {stage: rank for rank, stages in enumerate(vee(shape.p, shape.v)) for stage in stages}
        self.orders: list[list[Action]] = [[] for _ in range(shape.p)]
        self.busy = [False] * shape.p
        self.ready: list[list[tuple[bool, int, Action]]] = [[] for _ in range(shape.p)]
        self.events: list[tuple[int, Action, bool]] = []
        for i in range(shape.m):
            self._reach(Action(0, Kind.F, i))

    def _reach(self, action: Action) -> None:
        """An action could run now: backwards come first, then the earliest micro-batch."""
        entry = (action.kind == Kind.F, action.microbatch, action)
        heappush(self.ready[self.rank_of[action.stage]], entry)

    def play(self) -> tuple[Order, ...]:
        """Run everything; all that happens at one moment is known before a rank chooses."""
        now = 0
        while True:
            for rank, ready in enumerate(self.ready):
                if ready and not self.busy[rank]:
                    self._begin(rank, heappop(ready)[2], now)
            if not self.events:
                return tuple(map(tuple, self.orders))
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                self._happen(*heappop(self.events))

    def _begin(self, rank: int, action: Action, now: int) -> None:
        self.busy[rank] = True
        self.orders[rank].append(action)
        heappush(self.events, (now + self.length[action.kind], action, True))

    def _happen(self, now: int, action: Action, ended: bool) -> None:
        if not ended:
            self._reach(action)
            return
        rank = self.rank_of[action.stage]
        self.busy[rank] = False
        following = self._next(action)
        if following is not None:
            away = self.rank_of[following.stage] != rank
            heappush(self.events, (now + away * self.transfer, following, False))

    def _next(self, action: Action) -> Action | None:
        """What a micro-batch does next."""
        stage, kind, i, _ = action
        if kind == Kind.F:
            return Action(stage + 1, Kind.F, i) if stage < self.last else Action(stage, Kind.B, i)
        return Action(stage - 1, Kind.B, i) if stage else None


@lru_cache(maxsize=8)
def _orders(shape: Shape, costs: Costs) -> tuple[Order, ...]:
    return _Run(shape, costs).play()


def _order(shape: Shape, costs: Costs, rank: int) -> Order:
    return _orders(shape, costs)[rank]


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:
    """The order as the paper draws it, for B = 2F; then as the costs would have it, if that differs."""
    yield Variant(partial(_order, shape, EVEN))
    if costs != EVEN and _orders(shape, costs) != _orders(shape, EVEN):
        yield Variant(partial(_order, shape, costs), "as made for the times at hand")


FAMILY = Family(
    name="hanayo",
    summary="waves: stages run down the ranks and up again W times, without a second copy of the model",
    rule="whatever is ready if B = 2F and transfers are free: a backward first, then the earliest micro-batch",
    source="Hanayo, arXiv 2308.15762, section 3",
    variants=_variants,
    memory=Memory("about p where m = p, more where m > p", lambda *_: None),
    layout=vee,
    limits=lambda shape: None if shape.v % 2 == 0 else "hanayo has two chunks a rank for each wave",
    chunks=2,
)
