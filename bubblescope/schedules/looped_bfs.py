"""Looped breadth-first: every chunk takes all micro-batches before the next chunk starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, OrderOf, Shape, loop
from bubblescope.schedules.gpipe import fill_and_drain

__all__ = ["FAMILY"]


def _variants(shape: Shape) -> Iterator[OrderOf]:
    """Backwards take micro-batches in reverse (torch's ScheduleLoopedBFS) or in order (the paper's figure)."""
    for drain in (range(shape.m - 1, -1, -1), range(shape.m)):
        yield partial(_order, shape, drain)


def _order(shape: Shape, drain: range, rank: int) -> Order:
    stages = [rank + chunk * shape.p for chunk in range(shape.v)]
    forwards = (Action(stage, Kind.F, i) for stage in stages for i in range(shape.m))
    backwards = (Action(stage, Kind.B, i) for stage in reversed(stages) for i in drain)
    return (*forwards, *backwards)


def _bubble(shape: Shape) -> float | None:
    """(p-1)/(v m + p-1) for m >= p; Breadth-First Pipeline Parallelism, arXiv 2211.05953, section 4."""
    return fill_and_drain(shape) if shape.m >= shape.p else None


def _problem(shape: Shape) -> str | None:
    return None if shape.v > 1 else "looped-bfs needs at least 2 chunks a rank; with one it is gpipe"


FAMILY = Family(
    name="looped-bfs",
    summary="all micro-batches of a chunk, then the next chunk; backwards mirror it",
    source="Breadth-First Pipeline Parallelism, arXiv 2211.05953, section 4",
    aliases=("breadth-first", "bfs"),
    variants=_variants,
    bubble=_bubble,
    placement=loop,
    problem=_problem,
)
