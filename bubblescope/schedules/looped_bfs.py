"""Looped breadth-first: every chunk takes all micro-batches before the next chunk starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.gpipe import FILL_AND_DRAIN

__all__ = ["FAMILY"]


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    """Backwards take micro-batches in reverse (torch's ScheduleLoopedBFS) or in order (the paper's figure)."""
    yield Variant(partial(_order, shape, range(shape.m - 1, -1, -1)))
    yield Variant(partial(_order, shape, range(shape.m)), "backwards in the order of the forwards")


def _order(shape: Shape, drain: range, rank: int) -> Order:
    stages = [rank + chunk * shape.p for chunk in range(shape.v)]
    forwards = (Action(stage, Kind.F, i) for stage in stages for i in range(shape.m))
    backwards = (Action(stage, Kind.B, i) for stage in reversed(stages) for i in drain)
    return (*forwards, *backwards)


def _idle(shape: Shape, costs: Costs) -> float | None:
    """(p-1)(F+B)/v for m >= p; Breadth-First Pipeline Parallelism, arXiv 2211.05953, section 4."""
    return FILL_AND_DRAIN.value(shape, costs) if shape.m >= shape.p else None


def _problem(shape: Shape) -> str | None:
    return None if shape.v > 1 else "looped-bfs needs at least 2 chunks a rank; with one it is gpipe"


FAMILY = Family(
    name="looped-bfs",
    summary="all micro-batches of a chunk, then the next chunk; backwards mirror it",
    rule="F of all micro-batches, chunk after chunk; then B of all of them, the last chunk first",
    source="Breadth-First Pipeline Parallelism, arXiv 2211.05953, section 4",
    aliases=("breadth-first", "bfs"),
    variants=_variants,
    idle=Form("(p-1)(F+B)/v", _idle),
    memory=Memory("m", lambda shape, _: shape.m),
    layout=loop,
    limits=_problem,
    chunks=2,
)
