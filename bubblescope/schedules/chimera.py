"""Chimera: a pipeline down and a pipeline up, each in the other's gaps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isclose

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import mirrored
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant

__all__ = ["FAMILY"]


def _order(shape: Shape, rank: int) -> Order:
    """Units of p micro-batches, p/2 each way; in unit u, stage s runs the i-th forward in slot 2pu + s + 2i."""
    p, slots = shape.p, {}
    for first, stage in ((0, rank), (shape.m // 2, p - 1 - rank)):
        for k in range(shape.m // 2):
            unit, i = divmod(k, p // 2)
            slot = 2 * p * unit + 2 * i
            slots[slot + stage] = Action(stage, Kind.F, first + k)
            slots[slot + 2 * p - 1 - stage] = Action(stage, Kind.B, first + k)
    return tuple(slots[slot] for slot in sorted(slots))


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_order, shape))


def _idle(shape: Shape, costs: Costs) -> float | None:
    """(p-2) max(F, B) for m = p, (p-2)F for any number of units where F = B; Chimera, arXiv 2107.06925, table 2."""
    exact = shape.m == shape.p or (isclose(costs.forward, costs.backward) and shape.m % shape.p == 0)
    return (shape.p - 2) * max(costs.forward, costs.backward) if exact else None


def _held(shape: Shape, rank: int) -> float | None:
    """From p/2+1 at the ends to p in the middle (table 2)."""
    return shape.p / 2 + 1 + min(rank, shape.p - 1 - rank) if shape.m >= shape.p else None


def _problem(shape: Shape) -> str | None:
    if shape.v != 1:
        return "chimera has one chunk a rank each way"
    if shape.p % 2 or shape.m % 2:
        return f"chimera needs p and m even, found p={shape.p} m={shape.m}"
    return None


FAMILY = Family(
    name="chimera",
    summary="two copies of the model, half of the micro-batches down and half of them up",
    rule="in units of p micro-batches, p/2 each way: the i-th F of stage s in slot s+2i, its B in slot 2p-1-s+2i",
    source="Chimera, arXiv 2107.06925, section 3.1",
    variants=_variants,
    idle=Form("(p-2) max(F, B) where m = p or F = B", _idle),
    memory=Memory("p/2+1+min(r, p-1-r)", _held, "2", lambda *_: 2.0),
    layout=mirrored,
    limits=_problem,
)
