"""1F1B: after p-1-r warm-up forwards, rank r alternates one forward and one backward."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, OrderOf, Shape, loop
from bubblescope.schedules.gpipe import fill_and_drain

__all__ = ["FAMILY"]


def _order(shape: Shape, rank: int) -> Order:
    warmup = min(shape.p - 1 - rank, shape.m)
    order = [Action(rank, Kind.F, i) for i in range(warmup)]
    for i in range(shape.m - warmup):
        order += [Action(rank, Kind.F, warmup + i), Action(rank, Kind.B, i)]
    order += [Action(rank, Kind.B, i) for i in range(shape.m - warmup, shape.m)]
    return tuple(order)


def _variants(shape: Shape) -> Iterator[OrderOf]:
    yield partial(_order, shape)


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "1f1b has one chunk a rank; with more it is interleaved-1f1b"


FAMILY = Family(
    name="1f1b",
    summary="p-1-r warm-up forwards on rank r, then one forward and one backward in turn",
    source="PipeDream-Flush, arXiv 2006.09503, section 3; Megatron-LM, arXiv 2104.04473, section 2.2",
    aliases=("dapple", "pipedream-flush", "deepspeed", "non-interleaved"),
    variants=_variants,
    bubble=fill_and_drain,
    placement=loop,
    problem=_problem,
)
