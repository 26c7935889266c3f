"""Hand-made zero-bubble schedules: the weight gradient fills the gaps that 1F1B leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import loop
from bubblescope.schedules.family import SPLIT, Costs, Family, Form, Memory, Shape, Variant
from bubblescope.schedules.interleaved import group_problem, groups, table, usual_group

__all__ = ["H1", "H2", "INTERLEAVED"]

Cell = tuple[int, int]  # stage, micro-batch


def _order(forwards: Sequence[Cell], backwards: Sequence[Cell], warmup: int, lag: int) -> Order:
    """Warm-up; then F, I and, after `lag` rounds, a W in turn; then the W that are left."""
    ahead = [Action(s, Kind.F, i) for s, i in forwards]
    order, weights = ahead[:warmup], iter(backwards)
    for k, (stage, i) in enumerate(backwards):
        order += ahead[warmup + k : warmup + k + 1]
        order.append(Action(stage, Kind.I, i))
        if k >= lag:
            order.append(Action(*_at(Kind.W, next(weights))))
    return (*order, *(Action(*_at(Kind.W, cell)) for cell in weights))


def _at(kind: Kind, cell: Cell) -> tuple[int, Kind, int]:
    return cell[0], kind, cell[1]


def _handmade(shape: Shape, h: int, rank: int) -> Order:
    cells = [(rank, i) for i in range(shape.m)]
    return _order(cells, cells, min(h * (shape.p - 1 - rank), shape.m), h * rank)


def _interleaved(shape: Shape, group: int, rank: int) -> Order:
    entries = table(shape, group)
    forwards = [(rank + chunk * shape.p, i) for i, chunk in entries]
    backwards = [(rank + (shape.v - 1 - chunk) * shape.p, i) for i, chunk in entries]
    return _order(forwards, backwards, min((shape.v - 1) * group + shape.p - 1 - rank, len(entries)), rank)


def _h1_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_handmade, shape, 1))


def _h2_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - likewise
    yield Variant(partial(_handmade, shape, 2))


def _interleaved_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - likewise
    for k, group in enumerate(groups(shape)):
        yield Variant(partial(_interleaved, shape, group), f"groups of {group}" if k else "")


def _one_chunk(name: str, shape: Shape) -> str | None:
    return None if shape.v == 1 else f"{name} has one chunk a rank"


def _many_chunks(shape: Shape) -> str | None:
    if shape.v < 2:
        return "interleaved-zb needs at least 2 chunks a rank; with one it is zb-h1"
    return group_problem("interleaved-zb", shape)


def _fits(shape: Shape, costs: Costs, enough: int) -> bool:
    """Whether W is short enough to fit where the order puts it, and there are enough micro-batches to fill the rank."""
    return costs.weight <= min(costs.forward, costs.input) and shape.m >= enough


def _h1_idle(shape: Shape, costs: Costs) -> float | None:
    """(p-1)(F+I-W), Zero Bubble, arXiv 2401.10241, table 2 (its B is I here)."""
    return (shape.p - 1) * (costs.forward + costs.input - costs.weight) if _fits(shape, costs, shape.p) else None


def _h2_idle(shape: Shape, costs: Costs) -> float | None:
    """The span's gap, or the (p-1)F that a step begins with, which only an overlapping next step would hide."""
    owed = _h2_span(shape, costs)
    return None if owed is None else max((shape.p - 1) * costs.forward, owed)


def _h2_span(shape: Shape, costs: Costs) -> float | None:
    """(p-1)(F+I-2W), Zero Bubble, arXiv 2401.10241, table 2 (its B is I here)."""
    owed = (shape.p - 1) * (costs.forward + costs.input - 2 * costs.weight)
    return owed if _fits(shape, costs, 2 * shape.p - 1) else None


def _interleaved_idle(shape: Shape, costs: Costs) -> float | None:
    """The same as zb-h1 in chunk times, where p divides m."""
    whole = shape.m % shape.p == 0 and usual_group(shape) == shape.p and _fits(shape, costs, shape.p)
    return (shape.p - 1) * (costs.forward + costs.input - costs.weight) / shape.v if whole else None


def _interleaved_held(shape: Shape, rank: int) -> float:  # noqa: ARG001 - alike on all ranks
    return min(shape.m, ((shape.v - 1) * usual_group(shape) + shape.p) / shape.v)


def _until_weight(ahead: int) -> Memory:
    """What is held until its W has run; `ahead` times p-1-r forwards come before the first backward."""
    return Memory(
        "min(m, p)" if ahead == 1 else f"min(m, {ahead}p-{ahead - 1})",
        lambda shape, _: min(shape.m, ahead * (shape.p - 1) + 1),
    )


H1 = Family(
    name="zb-h1",
    summary="1f1b with the backward split, so that weight gradients fill part of its gaps at the same memory",
    rule="p-1-r forwards; then F and I in turn, with a W behind each I from the r-th on; then the W that are left",
    source="Zero Bubble, arXiv 2401.10241, section 2 and figure 3",
    aliases=("zbh1",),
    variants=_h1_variants,
    idle=Form("(p-1)(F+I-W) where W <= F, I", _h1_idle),
    memory=_until_weight(1),
    layout=loop,
    kinds=SPLIT,
    limits=partial(_one_chunk, "zb-h1"),
)

H2 = Family(
    name="zb-h2",
    summary="zb-h1 with twice the warm-up: no gap inside a rank's own span, for twice the memory",
    rule="2(p-1-r) forwards; then F and I in turn, with a W behind each I from the 2r-th on; then the W that are left",
    source="Zero Bubble, arXiv 2401.10241, section 2 and figure 3",
    aliases=("zbh2",),
    variants=_h2_variants,
    idle=Form("(p-1) max(F, F+I-2W) where W <= F, I", _h2_idle),
    span=Form("(p-1)(F+I-2W) where W <= F, I", _h2_span),
    memory=_until_weight(2),
    layout=loop,
    kinds=SPLIT,
    limits=partial(_one_chunk, "zb-h2"),
)

INTERLEAVED = Family(
    name="interleaved-zb",
    summary="zb-h1 over v chunks a rank, micro-batches taken in groups",
    rule="p-1-r+(v-1)g forwards, each group of g micro-batches through chunk after chunk; "
    "then F and I in turn, with a W behind each I from the r-th on; then the W that are left",
    source="PyTorch, torch/distributed/pipelining/schedules.py (ScheduleInterleavedZeroBubble)",
    aliases=("interleaved-zero-bubble",),
    variants=_interleaved_variants,
    idle=Form("(p-1)(F+I-W)/v where W <= F, I", _interleaved_idle),
    memory=Memory("min(m, ((v-1)g+p)/v)", _interleaved_held),
    layout=loop,
    kinds=SPLIT,
    limits=_many_chunks,
    grouped=True,
    chunks=2,
)
