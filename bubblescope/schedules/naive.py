"""Naive model parallelism: one micro-batch in the whole pipeline at a time."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.family import Family, OrderOf, Shape, loop

__all__ = ["FAMILY"]


def _variants(shape: Shape) -> Iterator[OrderOf]:
    yield lambda rank: tuple(Action(rank, kind, i) for i in range(shape.m) for kind in (Kind.F, Kind.B))


def _bubble(shape: Shape) -> float:
    """(p-1)/p: one rank works at a time (GPipe, arXiv 1811.06965, section 2.3, as the case m = 1)."""
    return (shape.p - 1) / shape.p


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "naive model parallelism has one chunk a rank"


FAMILY = Family(
    name="naive",
    summary="forward and backward of a micro-batch through all ranks before the next begins",
    source="GPipe, arXiv 1811.06965, section 2.3",
    aliases=("model-parallel",),
    variants=_variants,
    bubble=_bubble,
    placement=loop,
    problem=_problem,
)
