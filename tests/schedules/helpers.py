"""Orders in short, durations of a whole pipeline, and its replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.registry import FAMILIES
from bubblescope.schedules.replay import Replay, replay

Orders = dict[int, Order]


def order(text: str) -> Order:
    """Read `0F0 0F1 0B0`; a number without a stage keeps the stage before: `0F0 F1 B0`."""
    actions: list[Action] = []
    for word in text.split():
        actions.append(Action.parse(word if word[0].isdigit() else f"{actions[-1].stage}{word}"))
    return tuple(actions)


def shapes(ps: Sequence[int] = range(1, 7), ms: Sequence[int] = range(1, 11), vs: Sequence[int] = (1, 2, 3)):
    """All shapes of a grid."""
    return [Shape(p, m, v) for p, m, v in product(ps, ms, vs)]


def possible(shape: Shape) -> list[Family]:
    """The schedules that can have the shape."""
    return [family for family in FAMILIES if family.problem(shape) is None]


def every_variant(shape: Shape) -> Iterator[tuple[Family, Orders]]:
    """Every textbook order of every schedule of the shape."""
    for family in possible(shape):
        for order_of in family.variants(shape):
            yield family, {rank: order_of(rank) for rank in range(shape.p)}


def by_stage(orders: Mapping[int, Order], forward: Sequence[float], backward: Sequence[float]) -> dict[Action, float]:
    """Durations of every action when stage s needs `forward[s]` and `backward[s]`."""
    return {a: (forward if a.kind == Kind.F else backward)[a.stage] for rank in orders.values() for a in rank}


def run(shape: Shape, orders: Mapping[int, Order], f: float, b: float, c: float = 0.0) -> Replay:
    """Replay with equal stages: f and b a micro-batch and rank, c from rank to rank."""
    durations = by_stage(orders, [f / shape.v] * shape.stages, [b / shape.v] * shape.stages)
    return replay(orders, durations, last_stage=shape.stages - 1, transfer=c)
