"""How long each stage, and each rank's place, works on every micro-batch: what balance is judged by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Floats, Ints

__all__ = ["Loads", "loads"]


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Useful nanoseconds, means over the tensor-parallel ranks of a place; 0 where nothing ran.

    `by_place` is [pipeline, position, step, micro-batch, forward or not (0, 1)], `by_stage` the same with stages. Axes
    count pipelines, steps and stages in the order of `pipelines`, `steps` and `stages`, micro-batches by their numbers.
    """

    pipelines: tuple[int, ...]
    steps: tuple[int, ...]
    stages: tuple[int, ...]
    by_place: Floats
    by_stage: Floats


def loads(steps: Sequence[PipelineStep]) -> Loads:
    """What the ranks of some steps did."""
    pipelines = sorted({step.pipeline for step in steps})
    numbers = sorted({step.step for step in steps})
    line, number = ({key: k for k, key in enumerate(keys)} for keys in (pipelines, numbers))
    parts = [np.zeros((7, 0))]
    for step in steps:
        sharing = Counter(step.position.values())
        for rank, mine in step.steps.items():
            at, a = step.position[rank], mine.actions
            same = [np.full(len(a), key) for key in (line[step.pipeline], at, number[step.step])]
            parts.append(np.array([*same, a.stage, a.microbatch, a.kind != Kind.F, mine.durations / sharing[at]]))
    rows = np.concatenate(parts, axis=1)
    pipeline, place, of_step, stage, microbatch, backward = rows[:6].astype(np.int64)
    stages, stage = np.unique(stage, return_inverse=True)
    microbatch = np.unique(microbatch, return_inverse=True)[1]  # whatever they are numbered
    by_place = _summed(rows[6], pipeline, place, of_step, microbatch, backward)
    by_stage = _summed(rows[6], pipeline, stage, of_step, microbatch, backward)
    return Loads(tuple(pipelines), tuple(numbers), tuple(stages.tolist()), by_place, by_stage)


def _summed(length: Floats, *keys: Ints) -> Floats:
    """Lengths added up by keys; the last one is 0 or 1."""
    shape = (*(int(key.max(initial=0)) + 1 for key in keys[:-1]), 2)
    total = np.bincount(np.ravel_multi_index(keys, shape), length, int(np.prod(shape)))
    return total.astype(np.float64).reshape(shape)
