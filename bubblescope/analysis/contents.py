"""What each step holds: a training of so many micro-batches, an evaluation, or both; told by the actions of all ranks.

A rank tells it of a step where each of its forwards has a backward, or none has one in a job that trains. A step whose
ranks tell the same is whole, whatever its size; where they differ something is missing, or was cut off. A step between
others of which no rank tells any action is an evaluation, too: without gradients autograd numbers nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bubblescope.analysis.steps import Content, RankStep
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints, distinct

__all__ = ["contents"]

Steps = Mapping[int, Mapping[int, RankStep]]


def contents(steps: Steps) -> dict[int, Content]:
    """What each step holds, by its number; steps of which the ranks tell different things, or nothing, are absent.

    Args:
        steps: of each rank whose actions are known, by number.
    """
    trained = any(np.any(step.actions.kind != Kind.F) for mine in steps.values() for step in mine.values())
    shared = sorted(set.intersection(*({*mine} for mine in steps.values()))) if steps else []
    told = {n: {_content(mine[n], trained=trained) for mine in steps.values()} for n in shared}
    agreed = {n: found.pop() for n, found in told.items() if len(found) == 1}
    known = {n: what[0] for n, what in agreed.items() if what is not None and (trained or what[1])}
    return {n: content for n, content in known.items() if _is_sure(n, known, steps)}


def _is_sure(number: int, known: Mapping[int, Content], steps: Steps) -> bool:
    """Whether a step cannot have been cut off: two stages agree, another step is like it, or it has neighbours.

    The ends of a recording cut the stages of a pipeline in different places. Steps without any action, of which one or
    more may stand at its ends, are evaluations if such a one stands between others that have some.
    """
    if not known[number].microbatches:
        busy = [n for mine in steps.values() for n, step in mine.items() if len(step.rows)]
        empty = [n for n, content in known.items() if not content.microbatches]
        return any(min(busy) < n < max(busy) for n in empty)
    ends = {n for mine in steps.values() for n in (min(mine), max(mine))}
    stages = {stage for mine in steps.values() for stage in np.unique(mine[number].actions.stage).tolist()}
    return len(stages) > 1 or number not in ends or Counter(known.values())[known[number]] > 1


def _content(step: RankStep, *, trained: bool) -> tuple[Content, tuple[int, ...]] | None:
    """What a rank did in a step, and with which micro-batches; None where forwards and backwards do not fit."""
    codes, forward = _codes(step), step.actions.kind == Kind.F
    forwards, backwards = np.sort(codes[forward]), distinct(codes[~forward])
    named = tuple(np.unique(step.actions.microbatch[forward]).tolist())
    if not len(codes):
        return Content("evaluation", 0), named
    if not named:
        return None
    if not len(backwards):
        return Content("evaluation" if trained else "inference", len(named)), named
    if not np.array_equal(forwards, backwards):
        return None
    return Content("mixed" if step.extra else "training", len(named), step.extra), named


def _codes(step: RankStep) -> Ints:
    """A number for each stage, micro-batch and slice; a backward has that of its forward."""
    a = step.actions
    codes: Ints = (a.stage.astype(np.int64) << 44) + ((a.microbatch.astype(np.int64) + 1) << 16) + a.slice + 1
    return codes
