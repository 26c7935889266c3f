"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, OrderOf, Shape, loop

__all__ = ["FAMILY", "fill_and_drain"]


def _variants(shape: Shape) -> Iterator[OrderOf]:
    """Backwards in the order of the forwards (torch's ScheduleGPipe), or in reverse (the paper's figure)."""
    for drain in (range(shape.m), range(shape.m - 1, -1, -1)):
        yield partial(_order, drain)


def _order(drain: range, rank: int) -> Order:
    return (*(Action(rank, Kind.F, i) for i in range(len(drain))), *(Action(rank, Kind.B, i) for i in drain))


def fill_and_drain(shape: Shape) -> float:
    """(p-1)/(v m + p-1): filling and draining cost p-1 chunk times each way.

    GPipe, arXiv 1811.06965, section 2.3; for v > 1 Megatron-LM, arXiv 2104.04473, section 2.2.
    """
    return (shape.p - 1) / (shape.v * shape.m + shape.p - 1)


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "gpipe has one chunk a rank; with more it is looped-bfs"


FAMILY = Family(
    name="gpipe",
    summary="all forwards of a step, then all backwards",
    source="GPipe, arXiv 1811.06965, section 2.3",
    aliases=("f-then-b", "fill-drain"),
    variants=_variants,
    bubble=fill_and_drain,
    placement=loop,
    problem=_problem,
)
