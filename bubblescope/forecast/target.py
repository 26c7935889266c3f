"""What a changed run looks like: its schedule, its shape, who holds which stage, and in which order it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bubblescope.analysis.study import Study
from bubblescope.errors import UsageError
from bubblescope.forecast.partition import Counts
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.changes import Changes
from bubblescope.model.placement import Placement
from bubblescope.schedules.family import Costs, Family, Shape, Variant
from bubblescope.schedules.ranking import SLICES
from bubblescope.schedules.registry import find
from bubblescope.schedules.trial import check_size, count

__all__ = ["Target", "aimed", "target"]

MORE_CHUNKS = {"1f1b": "interleaved-1f1b", "gpipe": "looped-bfs", "zb-h1": "interleaved-zb"}
"""What a schedule of one chunk a rank is called with several; and the other way round."""
FEWER_CHUNKS = {several: one for one, several in MORE_CHUNKS.items()}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Target:
    """A run to replay.

    Attributes:
        family: its schedule; None where it is as measured and goes by no known name.
        shape: p, m, v, slices.
        tp: tensor-parallel degree; None where it is as measured and nobody knows it.
        size: of a micro-batch, in measured ones.
        placement: the stages of each position.
        orders: of each position; None where they are as measured.
        together: actions that run as one block with the one behind them, where `orders` are given.
        layers: how many each stage has; None where they stay where they are, or nothing is known of them.
    """

    family: Family | None
    shape: Shape
    tp: int | None
    size: float
    placement: Placement
    orders: Mapping[int, Order] | None
    together: frozenset[Action] = frozenset()
    layers: Counts | None = None

    @property
    def stages(self) -> int:
        """Stages of the whole pipeline: of an order that goes by no name they need not be p v."""
        return len({stage for held in self.placement for stage in held})

    @property
    def data(self) -> float:
        """Data of a step, in measured micro-batches."""
        return self.shape.m * self.size


def target(found: Study, changes: Changes) -> Target:
    """Raises UsageError, with the reason, where there is no such run."""
    now = aimed(found)
    if _as_it_is(now, changes):
        return now
    tp, p = _degrees(now, changes)
    family = _family(now, changes)
    _check_training(family, found)
    size = 1.0 if changes.microbatch is None else changes.microbatch
    shape = _shape(family, now, changes, p, _microbatches(now, changes, size))
    if (family, shape, tp, size) == (now.family, replace(now.shape, group=None), now.tp, now.size):
        return now
    check_size(count(family, shape))
    costs = _costs(found, now, shape, size)
    variant = _variant(family, now, found, shape, costs)
    orders = {rank: variant.order(rank) for rank in range(shape.p)}
    return Target(
        family=family,
        shape=shape,
        tp=tp,
        size=size,
        placement=family.placement(shape),
        orders=orders,
        together=frozenset[Action]().union(*(family.together(shape, rank) for rank in range(shape.p))),
    )


def _as_it_is(now: Target, changes: Changes) -> bool:
    """Whether all that is named is as it was measured: so much can be said of an order that goes by no name too."""
    wanted = changes.schedule, changes.microbatches, changes.virtual, changes.tp, changes.microbatch
    present = None, now.shape.m, now.shape.v, now.tp, now.size
    return all(value is None or value == known for value, known in zip(wanted, present, strict=True))


def aimed(found: Study) -> Target:
    """The run as it was measured."""
    assert found.schedule is not None
    placement = tuple(found.job.placement[at] for at in sorted(found.job.placement))
    return Target(
        family=found.schedule.family,
        shape=found.schedule.shape,
        tp=found.job.plan.tp,
        size=1.0,
        placement=placement,
        orders=None,
    )


def _degrees(now: Target, changes: Changes) -> tuple[int | None, int]:
    """Tensor- and pipeline-parallel degree of the same GPUs."""
    if changes.tp is None:
        return now.tp, now.shape.p
    if now.tp is None:
        raise UsageError("nothing tells the tensor-parallel degree of the run", hint="state it: --tp")
    gpus = now.tp * now.shape.p
    if gpus % changes.tp:
        raise UsageError(f"{gpus} GPUs a pipeline cannot be shared by {changes.tp} a stage")
    return changes.tp, gpus // changes.tp


def _family(now: Target, changes: Changes) -> Family:
    """The schedule asked for, or that of the run with as many chunks as asked for."""
    if changes.schedule is not None:
        family = find(changes.schedule)
    elif now.family is None:
        raise UsageError("the run has no schedule that is known: name one", hint="schedule=1f1b, for example")
    else:
        names = MORE_CHUNKS if (changes.virtual or 1) > 1 else FEWER_CHUNKS if changes.virtual == 1 else {}
        family = find(names.get(now.family.name, now.family.name))
    if family.asynchronous:
        raise UsageError(f"steps of {family.name} overlap, and it trains with old weights: it is another training")
    return family


def _check_training(family: Family, found: Study) -> None:
    trains = any(action.kind != Kind.F for step in found.whole for action in step.durations)
    if trains == (family.kinds == {Kind.F}):
        what = "leaves out the backwards that the run has" if trains else "has backwards, and the run has none to go by"
        raise UsageError(f"{family.name} {what}")


def _microbatches(now: Target, changes: Changes, size: float) -> int:
    if changes.microbatches is not None:
        return changes.microbatches
    m = round(now.shape.m / size)
    if m < 1 or abs(m * size - now.shape.m) > 1e-6:
        raise UsageError(f"{now.shape.m} micro-batches cannot be cut into ones {size:g} times as large")
    return m


def _shape(family: Family, now: Target, changes: Changes, p: int, m: int) -> Shape:
    slices = (now.shape.slices if now.shape.slices > 1 else SLICES) if family.cuts else 1
    reasons = []
    for v in _chunks(family, now, changes):
        shape = Shape(p, m, v, slices)
        reason = family.problem(shape)
        if reason is None:
            return shape
        reasons.append(reason)
    raise UsageError(reasons[0])


def _chunks(family: Family, now: Target, changes: Changes) -> Iterator[int]:
    """Chunks a rank to try: as asked for, else as they are, else as the schedule usually has them."""
    if changes.virtual is not None:
        yield changes.virtual
    else:
        yield from dict.fromkeys((now.shape.v, family.chunks))


def _costs(found: Study, now: Target, shape: Shape, size: float) -> Costs:
    """Mean times of a micro-batch on a rank of the new shape, for schedules that search for their order."""
    assert found.schedule is not None
    old = found.schedule.costs
    share = size * now.shape.p / shape.p
    return Costs(old.forward * share, old.input * share, old.weight * share, old.transfer * size)


def _variant(family: Family, now: Target, found: Study, shape: Shape, costs: Costs) -> Variant:
    """The order that the run has, of the textbook's for its schedule; the usual one for another schedule."""
    assert found.schedule is not None
    best = found.schedule.verdict.best
    variants: Sequence[Variant] = list(family.variants(shape, costs))
    if best is not None and now.family is family:
        return next((variant for variant in variants if variant.note == best.variant.note), variants[0])
    return variants[0]
