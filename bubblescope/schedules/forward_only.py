"""Inference and evaluation: forwards, and nothing to wait for behind them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.interleaved import group_problem, groups, table

__all__ = ["FAMILY"]


def _order(shape: Shape, group: int, rank: int) -> Order:
    return tuple(Action(rank + chunk * shape.p, Kind.F, i) for i, chunk in table(shape, group))


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    sizes = [shape.m] if shape.v == 1 else groups(shape) + ([shape.m] if shape.group is None else [])
    for k, group in enumerate(dict.fromkeys(sizes)):
        yield Variant(partial(_order, shape, group), f"groups of {group}" if k else "")


def _idle(shape: Shape, costs: Costs) -> float | None:
    """Filling the pipeline, or emptying it: the forward half of GPipe, arXiv 1811.06965, section 2.3."""
    return (shape.p - 1) * costs.forward / shape.v if shape.v == 1 or shape.m % shape.p == 0 else None


FAMILY = Family(
    name="forward-only",
    summary="forwards without backwards: inference or evaluation",
    rule="F of all micro-batches; with several chunks in groups, as interleaved-1f1b takes them",
    source="GPipe, arXiv 1811.06965, section 2.3, its forward half",
    aliases=("inference", "evaluation"),
    variants=_variants,
    idle=Form("(p-1)F/v", _idle),
    span=Form("0", lambda shape, _: 0.0 if shape.v == 1 else None),
    memory=Memory("0", lambda *_: 0.0),
    layout=loop,
    limits=lambda shape: group_problem("forward-only", shape),
    grouped=True,
    kinds=frozenset({Kind.F}),
)
