"""What the layers of the model take, where the ranks' ranges tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low

import numpy as np

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.analysis.study import Study
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Floats, Ints
from bubblescope.model.layers import Layers

__all__ = ["layers_of"]

_MOST = 0.5
"""A layer is one that more than this share of the stage's forwards ran; ranges are believed of backwards that hold
more than this share of their work."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """Nanoseconds of a stage for one micro-batch: of each layer in order, and of what is beside them."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    rest_forward: float
    rest_backward: float


def layers_of(found: Study) -> tuple[Layers, tuple[int, ...]] | None:
    """The layers of the model, and how many each stage has; None where not every stage shows any.

    Means over the used steps and the tensor-parallel ranks of a stage, lower medians over the replicas. What the
    first and the last stage do beside their layers stays there; on other stages it is shared out among their layers.
    Where ranges tell no layers of the backwards, these are divided as the forwards of their stage are.
    """
    if not found.whole or found.job.untold_chunks or not any(len(v.timeline.layers) for v in found.views.values()):
        return None
    stages = [_over_replicas(found, stage) for stage in range(found.job.last_stage + 1)]
    known = [stage for stage in stages if stage is not None]
    if len(known) < len(stages):
        return None
    filled = [stage if at in {0, len(known) - 1} else _filled(stage) for at, stage in enumerate(known)]
    first, last = known[0], known[-1]
    layers = Layers(
        forward=tuple(round(length) for stage in filled for length in stage.forward),
        backward=tuple(round(length) for stage in filled for length in stage.backward),
        front_forward=round(first.rest_forward),
        front_backward=round(first.rest_backward),
        back_forward=round(last.rest_forward) if last is not first else 0,
        back_backward=round(last.rest_backward) if last is not first else 0,
    )
    return layers, tuple(len(stage.forward) for stage in known)


def _over_replicas(found: Study, stage: int) -> _Stage | None:
    """A stage as it usually is; None if a replica does not show its layers, or not as many as another."""
    replicas: dict[int, list[PipelineStep]] = {}
    for step in found.whole:
        replicas.setdefault(step.pipeline, []).append(step)
    seen = [_over_ranks(found, steps, stage) for steps in replicas.values()]
    return _joined([each for each in seen if each is not None], len(seen), median_low)


def _over_ranks(found: Study, steps: Sequence[PipelineStep], stage: int) -> _Stage | None:
    """The mean over the ranks of one pipeline that hold the stage."""
    ranks = sorted({rank for step in steps for rank, mine in step.steps.items() if stage in mine.actions.stage})
    seen = [_of_rank(found.views[r], [step.steps[r] for step in steps if r in step.steps], stage) for r in ranks]
    return _joined([each for each in seen if each is not None], len(seen), fmean)


def _joined(seen: Sequence[_Stage], wanted: int, middle: Callable[[list[float]], float]) -> _Stage | None:
    if not seen or len(seen) < wanted or len({len(each.forward) for each in seen}) > 1:
        return None

    def of(values: Iterable[float]) -> float:
        return middle(list(values))

    return _Stage(
        forward=tuple(map(of, zip(*(each.forward for each in seen), strict=True))),
        backward=tuple(map(of, zip(*(each.backward for each in seen), strict=True))),
        rest_forward=of(each.rest_forward for each in seen),
        rest_backward=of(each.rest_backward for each in seen),
    )


def _filled(stage: _Stage) -> _Stage:
    """The same with what is beside the layers shared out among them."""
    return _Stage(_grown(stage.forward, stage.rest_forward), _grown(stage.backward, stage.rest_backward), 0.0, 0.0)


def _grown(layers: tuple[float, ...], rest: float) -> tuple[float, ...]:
    whole = sum(layers)
    return tuple(length + rest * (length / whole if whole else 1 / len(layers)) for length in layers)


def _of_rank(view: RankView, steps: Sequence[RankStep], stage: int) -> _Stage | None:
    """A stage as one rank ran it."""
    found = [_of_step(view, step) for step in steps]
    kinds = np.concatenate([step.actions.kind[step.actions.stage == stage] for step in steps])
    layers = np.concatenate([table[step.actions.stage == stage] for step, table in zip(steps, found, strict=True)])
    lengths = np.concatenate([step.durations[step.actions.stage == stage] for step in steps]).astype(float)
    forward = kinds == Kind.F
    own = np.flatnonzero((layers[forward] > 0).mean(axis=0) > _MOST) if forward.any() else np.empty(0, np.int64)
    if not len(own):
        return None
    count = sum(_microbatches(step, stage) for step in steps)
    ahead = _parts(layers[:, own], lengths, forward) / count
    back = _parts(layers[:, own], lengths, ~forward) / count
    if back[:-1].sum() <= _MOST * back.sum() or not back[:-1].all():
        back = back.sum() * ahead / max(ahead.sum(), 1.0)
    return _Stage(tuple(ahead[:-1].tolist()), tuple(back[:-1].tolist()), float(ahead[-1]), float(back[-1]))


def _microbatches(step: RankStep, stage: int) -> int:
    """How many micro-batches a stage ran, whole or in slices."""
    a = step.actions
    return len(np.unique(a.microbatch[(a.stage == stage) & (a.kind == Kind.F)]))


def _parts(layers: Floats, lengths: Floats, rows: Bools) -> Floats:
    """Nanoseconds of each layer over all actions, and last of what is beside them; they add up to the actions'."""
    of = (layers[rows] * lengths[rows, None]).sum(axis=0)
    return np.append(of, max(float(lengths[rows].sum() - of.sum()), 0.0))


def _of_step(view: RankView, step: RankStep) -> Floats:
    """The share of each action (row) that each layer of the rank (column) took of it.

    An instant in which two actions ran is shared between them, and so a layer is taken as a share of its action's own
    work. Where layers ran at the same time they share it.
    """
    work = view.timeline.layers
    row: Ints = np.searchsorted(step.rows, work.action)
    mine = (row < len(step.rows)) & (np.append(step.rows, -1)[row] == work.action)
    table = np.zeros((len(step.rows), int(work.layer.max(initial=0)) + 1))
    np.add.at(table, (row[mine], work.layer[mine]), work.length[mine])
    owner, start, end = step.parts
    own = np.bincount(owner, weights=end - start, minlength=len(step.rows))
    whole = np.maximum(np.maximum(own, table.sum(axis=1)), 1.0)
    shares: Floats = table / whole[:, None]
    return shares
