"""Seq1F1B: 1F1B whose unit is a slice of a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.one_f_one_b import alternate

__all__ = ["FAMILY"]


def _order(shape: Shape, rank: int) -> Order:
    """Forwards in order; a slice's gradient needs those of the slices behind it, so backwards take them in reverse."""
    cells = [(i, k) for i in range(shape.m) for k in range(shape.slices)]
    forwards = [Action(rank, Kind.F, i, k) for i, k in cells]
    backwards = [Action(rank, Kind.B, i, shape.slices - 1 - k) for i, k in cells]
    return alternate(forwards, backwards, shape.p - rank - 2 + shape.slices)


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_order, shape))


def _problem(shape: Shape) -> str | None:
    if shape.v != 1:
        return "seq1f1b has one chunk a rank"
    return None if shape.slices > 1 else "seq1f1b needs at least 2 slices a micro-batch; with one it is 1f1b"


FAMILY = Family(
    name="seq1f1b",
    summary="1f1b whose unit is a slice of a micro-batch's sequence",
    rule="p-2-r+s forwards of slices; then one F and one B in turn, the B of a micro-batch's last slice first; "
    "then the B that are left",
    source="Seq1F1B, arXiv 2406.03488, section 3",
    variants=_variants,
    idle=Form("(p-1)(F+B)/s", lambda shape, costs: (shape.p - 1) * costs.total / shape.slices),
    memory=Memory(
        "min(m, (s+p-1-r)/s)",
        lambda shape, rank: min(shape.m, (shape.slices + shape.p - 1 - rank) / shape.slices),
    ),
    layout=loop,
    limits=_problem,
    cuts=True,
)
