"""Naive model parallelism: one micro-batch in the whole pipeline at a time."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.actions import Action, Kind
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant

__all__ = ["FAMILY"]


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(lambda rank: tuple(Action(rank, kind, i) for i in range(shape.m) for kind in (Kind.F, Kind.B)))


def _idle(shape: Shape, costs: Costs) -> float:
    """One rank works at a time: (p-1)/p of the window (GPipe, arXiv 1811.06965, section 2.3, as the case m = 1)."""
    return (shape.p - 1) * shape.m * costs.total


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "naive model parallelism has one chunk a rank"


FAMILY = Family(
    name="naive",
    summary="forward and backward of a micro-batch through all ranks before the next begins",
    rule="F and B of each micro-batch in turn",
    source="GPipe, arXiv 1811.06965, section 2.3",
    aliases=("model-parallel",),
    variants=_variants,
    idle=Form("(p-1) m (F+B)", _idle),
    memory=Memory("1", lambda *_: 1.0),
    layout=loop,
    limits=_problem,
)
