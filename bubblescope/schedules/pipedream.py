"""PipeDream and PipeDream-2BW: 1F1B that never drains, as steps overlap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.one_f_one_b import in_flight, order

__all__ = ["DOUBLE_BUFFERED", "FAMILY"]

NEVER_DRAINS = Form("0 once it is full", lambda *_: 0.0)


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(order, shape))


def _problem(shape: Shape) -> str | None:
    return None if shape.v == 1 else "pipedream has one chunk a rank"


def _buffered_problem(shape: Shape) -> str | None:
    if shape.v > 1:
        return "pipedream-2bw has one chunk a rank"
    return None if shape.m >= shape.p else f"pipedream-2bw needs m >= p, found p={shape.p} m={shape.m}"


FAMILY = Family(
    name="pipedream",
    summary="1f1b without a flush: weights change with every micro-batch, and each in flight keeps its own",
    rule="p-1-r forwards; then one F and one B in turn, without end",
    source="PipeDream, arXiv 1806.03377, sections 3.2 and 3.3",
    aliases=("pipedream-async",),
    variants=_variants,
    idle=NEVER_DRAINS,
    memory=Memory("min(m, p-r)", in_flight, "p-r", lambda shape, rank: shape.p - rank),
    layout=loop,
    limits=_problem,
    asynchronous=True,
)

DOUBLE_BUFFERED = Family(
    name="pipedream-2bw",
    summary="1f1b without a flush: weights change every m micro-batches, and two versions are kept",
    rule="p-1-r forwards; then one F and one B in turn, without end",
    source="Memory-Efficient Pipeline-Parallel DNN Training, arXiv 2006.09503, section 3",
    aliases=("2bw",),
    variants=_variants,
    idle=NEVER_DRAINS,
    memory=Memory("min(m, p-r)", in_flight, "2", lambda *_: 2.0),
    layout=loop,
    limits=_buffered_problem,
    asynchronous=True,
)
