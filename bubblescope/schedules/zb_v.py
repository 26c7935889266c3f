"""ZB-V: two chunks a rank, folded like a V, weight gradients in the gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import vee
from bubblescope.schedules.family import SPLIT, Costs, Family, Form, Memory, Shape, Variant

__all__ = ["FAMILY"]

F, I, W = Kind.F, Kind.I, Kind.W  # noqa: E741 - the letters of the field


class _Lane:
    """The order of a rank as it is written, micro-batch after micro-batch of each stage and kind."""

    def __init__(self, shape: Shape, rank: int) -> None:
        self.down, self.up = rank, 2 * shape.p - 1 - rank
        self.order: list[Action] = []
        self.counts: Counter[tuple[Kind, int]] = Counter()

    def put(self, *cells: tuple[Kind, int], times: int = 1) -> None:
        """The next micro-batch of each cell, the whole row so many times."""
        for kind, stage in cells * times:
            self.order.append(Action(stage, kind, self.counts[kind, stage]))
            self.counts[kind, stage] += 1

    def left(self, kind: Kind, stage: int, total: int) -> int:
        """How many of a cell are still to come."""
        return total - self.counts[kind, stage]


def _order(shape: Shape, rank: int) -> Order:
    """As torch's ScheduleZBVZeroBubble: made for at least 2p-1 micro-batches, and what lies past m is dropped."""
    p, total = shape.p, max(2 * shape.p - 1, shape.m)
    lane = _Lane(shape, rank)
    down, up = lane.down, lane.up
    lane.put((F, down), times=2 * (p - rank) - 1)
    lane.put((F, up), (F, down), times=rank)
    lane.put((F, up), (I, up), (W, up), times=p - rank)
    while lane.left(F, up, total) > 0 or lane.left(F, down, total) > 0:
        if lane.left(F, down, total) > 0:
            lane.put((F, down))
        lane.put((I, down), (W, down), (F, up), (I, up), (W, up))
    lane.put((I, down), (I, up), times=rank)
    lane.put((I, down), (W, down), times=p - rank)
    lane.put((W, up), times=lane.left(W, up, total))
    lane.put((W, down), times=lane.left(W, down, total))
    return tuple(action for action in lane.order if action.microbatch < shape.m)


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_order, shape))


def _suits(shape: Shape, costs: Costs) -> bool:
    """Whether the gaps are those the order was made for."""
    return costs.input >= costs.forward >= costs.weight and shape.m >= 2 * shape.p - 1


def _idle(shape: Shape, costs: Costs) -> float | None:
    """(p-1) I/2 as long as the weight gradients fill the other half, else what they leave; by replay over a grid."""
    return (shape.p - 1) * max(costs.input / 2, costs.input - costs.weight) if _suits(shape, costs) else None


def _span(shape: Shape, costs: Costs) -> float | None:
    """(p-1)(I-W), Zero Bubble, arXiv 2401.10241, section 6 (its B is I here)."""
    return (shape.p - 1) * (costs.input - costs.weight) if _suits(shape, costs) else None


FAMILY = Family(
    name="zb-v",
    summary="two chunks a rank folded like a V, backwards split so that weight gradients fill the gaps",
    rule="2(p-r)-1 F of the first chunk; r times F of the second and F of the first; p-r times F, I, W of the second; "
    "then F, I, W of the first and F, I, W of the second in turn; then the I and W that are left",
    source="Zero Bubble, arXiv 2401.10241, section 6; PyTorch, torch/distributed/pipelining/schedules.py "
    "(ScheduleZBVZeroBubble)",
    aliases=("zbv", "v-zb"),
    variants=_variants,
    idle=Form("(p-1) max(I/2, I-W) where I >= F >= W", _idle),
    span=Form("(p-1)(I-W) where I >= F >= W", _span),
    memory=Memory("p where m >= 2p-1", lambda shape, _: shape.p if shape.m >= 2 * shape.p - 1 else None),
    layout=vee,
    limits=lambda shape: None if shape.v == 2 else "zb-v has two chunks a rank",
    chunks=2,
    kinds=SPLIT,
)
