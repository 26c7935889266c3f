"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant

__all__ = ["FAMILY", "FILL_AND_DRAIN"]


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    """Backwards in the order of the forwards (torch's ScheduleGPipe), or in reverse (the paper's figure)."""
    yield Variant(partial(_order, range(shape.m)))
    yield Variant(partial(_order, range(shape.m - 1, -1, -1)), "backwards in reverse")


def _order(drain: range, rank: int) -> Order:
    return (*(Action(rank, Kind.F, i) for i in range(len(drain))), *(Action(rank, Kind.B, i) for i in drain))


def _fill_and_drain(shape: Shape, costs: Costs) -> float:
    return (shape.p - 1) * costs.total / shape.v


FILL_AND_DRAIN = Form("(p-1)(F+B)/v", _fill_and_drain)
"""Filling and draining cost p-1 chunk times each way.

GPipe, arXiv 1811.06965, section 2.3; for v > 1 Megatron-LM, arXiv 2104.04473, section 2.2.
"""


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "gpipe has one chunk a rank; with more it is looped-bfs"


FAMILY = Family(
    name="gpipe",
    summary="all forwards of a step, then all backwards",
    rule="F of all micro-batches; then B of all of them, in the same order or in reverse",
    source="GPipe, arXiv 1811.06965, section 2.3",
    aliases=("f-then-b", "fill-drain"),
    variants=_variants,
    idle=FILL_AND_DRAIN,
    memory=Memory("m", lambda shape, _: shape.m),
    layout=loop,
    limits=_problem,
)
