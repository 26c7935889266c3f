"""1F1B: after p-1-r warm-up forwards, rank r alternates one forward and one backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Memory, Shape, Variant
from bubblescope.schedules.gpipe import FILL_AND_DRAIN

__all__ = ["EAGER", "FAMILY", "alternate", "eager_order", "in_flight", "order"]


def alternate(forwards: Sequence[Action], backwards: Sequence[Action], warmup: int) -> Order:
    """`warmup` forwards, then a forward and a backward in turn, then the backwards that are left."""
    warmup = min(warmup, len(forwards))
    steady = chain.from_iterable(zip(forwards[warmup:], backwards, strict=False))
    return (*forwards[:warmup], *steady, *backwards[len(forwards) - warmup :])


def order(shape: Shape, rank: int) -> Order:
    """1F1B of a rank."""
    return _order(shape, shape.p - 1 - rank, rank)


def eager_order(shape: Shape, rank: int) -> Order:
    """The same with twice the warm-up."""
    return _order(shape, 2 * (shape.p - 1 - rank), rank)


def _order(shape: Shape, warmup: int, rank: int) -> Order:
    forwards, backwards = ([Action(rank, kind, i) for i in range(shape.m)] for kind in (Kind.F, Kind.B))
    return alternate(forwards, backwards, warmup)


def in_flight(shape: Shape, rank: int) -> float:
    """A rank holds the micro-batches that are under way behind it, and its own."""
    return min(shape.m, shape.p - rank)


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(order, shape))


def _eager_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - likewise
    yield Variant(partial(eager_order, shape))


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "1f1b has one chunk a rank; with more it is interleaved-1f1b"


def _eager_problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "eager-1f1b has one chunk a rank"


FAMILY = Family(
    name="1f1b",
    summary="p-1-r warm-up forwards on rank r, then one forward and one backward in turn",
    rule="p-1-r forwards; then one F and one B in turn; then the B that are left",
    source="PipeDream-Flush, arXiv 2006.09503, section 3; Megatron-LM, arXiv 2104.04473, section 2.2",
    aliases=("dapple", "pipedream-flush", "deepspeed", "non-interleaved"),
    variants=_variants,
    idle=FILL_AND_DRAIN,
    memory=Memory("min(m, p-r)", in_flight),
    layout=loop,
    limits=_problem,
)

EAGER = Family(
    name="eager-1f1b",
    summary="1f1b with twice the warm-up, which hides transfers for twice the memory",
    rule="2(p-1-r) forwards; then one F and one B in turn; then the B that are left",
    source="Alpa's overlap-friendly schedule, arXiv 2211.05322, section 4",
    aliases=("1f1b-overlap-friendly", "overlap-friendly-1f1b"),
    variants=_eager_variants,
    idle=FILL_AND_DRAIN,
    memory=Memory("min(m, 2(p-r)-1)", lambda shape, rank: min(shape.m, 2 * (shape.p - rank) - 1)),
    layout=loop,
    limits=_eager_problem,
)
