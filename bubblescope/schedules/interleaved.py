"""Interleaved 1F1B: each rank holds v chunks and takes micro-batches in groups of g."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, OrderOf, Shape, loop
from bubblescope.schedules.gpipe import fill_and_drain

__all__ = ["FAMILY"]


def _groups(shape: Shape) -> list[int]:
    """Group sizes to expect: p (Megatron's default), torch's, then the others that Megatron allows.

    Megatron-LM, megatron/core/pipeline_parallel/schedules.py (get_schedule_table);
    PyTorch, torch/distributed/pipelining/schedules.py (ScheduleInterleaved1F1B).
    """
    p, m = shape.p, shape.m
    rounds = max(1, m // p)
    sizes = [p] if m % p == 0 or m < p else []
    if m % rounds == 0:
        sizes.append(m // rounds)
    sizes += [g for g in range(p, m + 1) if m % g == 0 or m % g >= p]
    return list(dict.fromkeys(sizes))


def _table(shape: Shape, group: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) of the k-th forward: a group passes through all chunks before the next group starts."""
    return [
        (i, chunk)
        for first in range(0, shape.m, group)
        for chunk in range(shape.v)
        for i in range(first, min(first + group, shape.m))
    ]


def _order(shape: Shape, group: int, rank: int) -> Order:
    table = _table(shape, group)
    forwards = [Action(rank + chunk * shape.p, Kind.F, i) for i, chunk in table]
    backwards = [Action(rank + (shape.v - 1 - chunk) * shape.p, Kind.B, i) for i, chunk in table]
    warmup = min(2 * (shape.p - 1 - rank) + (shape.v - 1) * group, len(table))
    steady = [action for pair in zip(forwards[warmup:], backwards, strict=False) for action in pair]
    return (*forwards[:warmup], *steady, *backwards[len(table) - warmup :])


def _variants(shape: Shape) -> Iterator[OrderOf]:
    for group in _groups(shape):
        yield partial(_order, shape, group)


def _bubble(shape: Shape) -> float | None:
    """(p-1)/(v m + p-1) where p divides m; with m < p the last chunks wait (v-1)(p-m)/v more.

    Megatron-LM, arXiv 2104.04473, section 2.2; for m < p calculon-ai/calculon, calculon/llm/llm.py.
    Otherwise no exact form is known.
    """
    p, m, v = shape.p, shape.m, shape.v
    if m % p == 0:
        return fill_and_drain(shape)
    if m < p:
        idle = (p - 1) / v + (v - 1) * (p - m) / v
        return idle / (m + idle)
    return None


def _problem(shape: Shape) -> str | None:
    return None if shape.v > 1 else "interleaved-1f1b needs at least 2 chunks a rank; with one it is 1f1b"


FAMILY = Family(
    name="interleaved-1f1b",
    summary="1f1b over v chunks a rank, micro-batches taken in groups",
    source="Megatron-LM, arXiv 2104.04473, section 2.2",
    aliases=("virtual-pipeline", "vpp", "1f1b-interleaved"),
    variants=_variants,
    bubble=_bubble,
    placement=loop,
    problem=_problem,
)
