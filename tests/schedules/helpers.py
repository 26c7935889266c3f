"""Orders in short, shapes that schedules can have, and the replay of whole pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import EVEN, Costs, Family, OrderOf, Shape, Variant, durations
from bubblescope.schedules.registry import FAMILIES
from bubblescope.schedules.replay import NO_DELAYS, Delays, Replay, replay

Orders = dict[int, Order]


class Recorded(NamedTuple):
    """A schedule that PyTorch made: by rank, its order and the first actions of its blocks."""

    name: str
    shape: Shape
    orders: Orders
    blocks: dict[int, frozenset[Action]]


def order(text: str) -> Order:
    """Read `0F0 0F1 0B0`; a number without a stage keeps the stage before: `0F0 F1 B0`."""
    actions: list[Action] = []
    for word in text.split():
        actions.append(Action.parse(word if word[0].isdigit() else f"{actions[-1].stage}{word}"))
    return tuple(actions)


def whole(shape: Shape, order_of: OrderOf) -> Orders:
    """The orders of all ranks."""
    return {rank: order_of(rank) for rank in range(shape.p)}


def shapes(ps: Sequence[int] = range(1, 7), ms: Sequence[int] = range(1, 11), vs: Sequence[int] = (1, 2, 3)):
    """All shapes of a grid."""
    return [Shape(p, m, v) for p, m, v in product(ps, ms, vs)]


def slices_of(family: Family) -> int:
    """Some slices where a schedule cuts micro-batches, one where it takes them whole."""
    return 3 if family.cuts else 1


def sizes(family: Family, p: int) -> list[Shape]:
    """A small, a middle and a large m with which a schedule can have p ranks; fewer where it is choosy, or none."""
    ms = dict.fromkeys((p, 2 * p, 2 * p + 1, 2 * p + 2, 3 * p, 4 * p))
    given = [Shape(p, m, family.chunks, slices_of(family)) for m in ms]
    fit = [shape for shape in given if family.problem(shape) is None]
    return [fit[0], fit[len(fit) // 2], fit[-1]] if fit else []


def usual_shape(family: Family) -> Shape:
    """A shape of some size in which schedules differ widely."""
    return Shape(4, 12, family.chunks, slices_of(family))


def possible(shape: Shape) -> list[Family]:
    """The schedules that can have the shape."""
    return [family for family in FAMILIES if family.problem(shape) is None]


def every_variant(shape: Shape, costs: Costs = EVEN) -> Iterator[tuple[Family, Variant, Orders]]:
    """Every textbook order of every schedule of the shape."""
    for family in possible(shape):
        for variant in family.variants(shape, costs):
            yield family, variant, whole(shape, variant.order)


def by_stage(orders: Mapping[int, Order], forward: Sequence[float], backward: Sequence[float]) -> dict[Action, float]:
    """Durations of every action when stage s needs `forward[s]` and `backward[s]`."""
    return {a: (forward if a.kind == Kind.F else backward)[a.stage] for rank in orders.values() for a in rank}


def blocks(family: Family, shape: Shape) -> frozenset[Action]:
    """The first actions of all blocks of a pipeline."""
    return frozenset[Action]().union(*(family.together(shape, rank) for rank in range(shape.p)))


def run(
    family: Family, shape: Shape, costs: Costs, orders: Mapping[int, Order] | None = None, delays: Delays = NO_DELAYS
) -> Replay:
    """Replay a schedule with equal stages, its usual order if no other is given."""
    orders = family.orders(shape, costs) if orders is None else orders
    lengths = durations(orders.values(), shape, costs)
    return replay(orders, lengths, last_stage=shape.stages - 1, together=blocks(family, shape), delays=delays)


def longest_span(times: Replay, orders: Mapping[int, Order]) -> float:
    """The longest time from a rank's own first start to its own last end."""
    return max(times.end[actions[-1]] - times.start[actions[0]] for actions in orders.values())
