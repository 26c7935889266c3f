"""Interleaved 1F1B: each rank holds v chunks and takes micro-batches in groups of g."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.gpipe import FILL_AND_DRAIN
from bubblescope.schedules.one_f_one_b import alternate

__all__ = ["FAMILY", "group_problem", "groups", "table", "usual_group"]

MOST_GROUPS = 64
"""Group sizes that detection compares; each costs as much as all actions of a rank."""


def groups(shape: Shape) -> list[int]:
    """Group sizes to expect: p (Megatron's default), torch's, then the others that Megatron allows.

    Megatron-LM, megatron/core/pipeline_parallel/schedules.py (get_schedule_table);
    PyTorch, torch/distributed/pipelining/schedules.py (ScheduleInterleaved1F1B).
    """
    p, m = shape.p, shape.m
    if shape.group is not None:
        return [shape.group]
    rounds = max(1, m // p)
    sizes = [p] if m % p == 0 or m < p else []
    if m % rounds == 0:
        sizes.append(m // rounds)
    sizes += [g for g in range(p, m + 1) if m % g == 0]
    sizes += [g for g in range(p, m + 1) if m % g >= p]
    return list(dict.fromkeys(sizes))[:MOST_GROUPS]


def group_problem(name: str, shape: Shape) -> str | None:
    """Why no order with groups of that size can run, or None; as Megatron refuses them."""
    g, m, p = shape.group, shape.m, shape.p
    if g is None or (m < p and g >= m) or (m >= p and p <= g <= m and (m % g == 0 or m % g >= p)):
        return None
    return f"{name} needs p <= g <= m, and m mod g 0 or at least p; found p={p} m={m} g={g}"


def usual_group(shape: Shape) -> int:
    """The group size of the usual order."""
    return groups(shape)[0]


def table(shape: Shape, group: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) of the k-th forward: a group passes through all chunks before the next group starts."""
    return [
        (i, chunk)
        for first in range(0, shape.m, group)
        for chunk in range(shape.v)
        for i in range(first, min(first + group, shape.m))
    ]


def _warmup(shape: Shape, group: int, more: int, rank: int) -> int:
    return min(2 * (shape.p - 1 - rank) + (shape.v - 1) * group + more, shape.m * shape.v)


def _order(shape: Shape, group: int, more: int, rank: int) -> Order:
    entries = table(shape, group)
    forwards = [Action(rank + chunk * shape.p, Kind.F, i) for i, chunk in entries]
    backwards = [Action(rank + (shape.v - 1 - chunk) * shape.p, Kind.B, i) for i, chunk in entries]
    return alternate(forwards, backwards, _warmup(shape, group, more, rank))


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    """All group sizes; then all with one more warm-up forward, as Megatron overlaps expert parallelism."""
    sizes = groups(shape)
    for more in (0, 1):
        for k, group in enumerate(sizes):
            notes = [f"groups of {group}"] * (k > 0) + ["one more warm-up forward, as for overlapped experts"] * more
            yield Variant(partial(_order, shape, group, more), ", ".join(notes))


def _idle(shape: Shape, costs: Costs) -> float | None:
    """(p-1)(F+B)/v where p divides m and g divides m; with m < p the last chunks wait (v-1)(p-m)/v more.

    Megatron-LM, arXiv 2104.04473, section 2.2; for m < p calculon-ai/calculon, calculon/llm/llm.py.
    Otherwise no exact form is known.
    """
    p, m, v, group = shape.p, shape.m, shape.v, usual_group(shape)
    if m < p:
        return ((p - 1) / v + (v - 1) * (p - m) / v) * costs.total
    return FILL_AND_DRAIN.value(shape, costs) if m % p == 0 and m % group == 0 and group >= p else None


def _held(shape: Shape, rank: int) -> float:
    group = usual_group(shape)
    return min(_warmup(shape, group, 0, rank) + 1, shape.m * shape.v) / shape.v


def _problem(shape: Shape) -> str | None:
    if shape.v < 2:
        return "interleaved-1f1b needs at least 2 chunks a rank; with one it is 1f1b"
    return group_problem("interleaved-1f1b", shape)


FAMILY = Family(
    name="interleaved-1f1b",
    summary="1f1b over v chunks a rank, micro-batches taken in groups",
    rule="2(p-1-r)+(v-1)g forwards, each group of g micro-batches through chunk after chunk; "
    "then one F and one B in turn, the B of the last chunk first; then the B that are left",
    source="Megatron-LM, arXiv 2104.04473, section 2.2; Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
    aliases=("virtual-pipeline", "vpp", "1f1b-interleaved"),
    variants=_variants,
    idle=Form("(p-1)(F+B)/v", _idle),
    memory=Memory("min(m, (2(p-1-r)+(v-1)g+1)/v)", _held),
    layout=loop,
    limits=_problem,
    chunks=2,
    grouped=True,
)
