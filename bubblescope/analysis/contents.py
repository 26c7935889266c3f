"""What each step holds: a training of so many micro-batches, an evaluation, or both; told by the actions of all ranks.

A rank tells it of a step where each of its forwards has a backward, or none has one in a job that trains. A step whose
ranks tell the same is whole, whatever its size; where they differ something is missing, or was cut off. A step between
whole ones of which no rank tells any action is an evaluation, too: without gradients autograd numbers nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

import numpy as np

from bubblescope.analysis.steps import Content, RankStep
from bubblescope.model.actions import Kind
from bubblescope.model.columns import distinct
from bubblescope.model.unbacked import codes

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
    more may stand at its ends, are evaluations if such a one stands between others that have some; beside others that
    are told by halves it is as little told as these.
    """
    ends = {n for mine in steps.values() for n in (min(mine), max(mine))}
    if not known[number].microbatches:
        busy = [n for mine in steps.values() for n, step in mine.items() if len(step.rows)]
        empty = [n for n, content in known.items() if not content.microbatches]
        halves = any(n not in known and n not in ends for n in _beside(number, known, steps))
        return not halves and any(min(busy) < n < max(busy) for n in empty)
    stages = {stage for mine in steps.values() for stage in np.unique(mine[number].actions.stage).tolist()}
    return len(stages) > 1 or number not in ends or Counter(known.values())[known[number]] > 1


def _beside(number: int, known: Mapping[int, Content], steps: Steps) -> list[int]:
    """The steps next to one that show any action."""
    acting = sorted(n for n in next(iter(steps.values())) if n not in known or known[n].microbatches)
    at = bisect_left(acting, number)
    return [*acting[max(0, at - 1) : at], *acting[at : at + 1]]


def _content(step: RankStep, *, trained: bool) -> tuple[Content, tuple[int, ...]] | None:
    """What a rank did in a step, and with which micro-batches; None where forwards and backwards do not fit."""
    a, forward = step.actions, step.actions.kind == Kind.F
    code = codes(a.stage, a.chunk, a.microbatch, a.slice)
    forwards, backwards = np.sort(code[forward]), distinct(code[~forward])
    named = tuple(np.unique(a.microbatch[forward]).tolist())
    if not len(code):
        return Content("evaluation", 0), named
    if not named:
        return None
    if not len(backwards):
        return Content("evaluation" if trained else "inference", len(named)), named
    if not np.array_equal(forwards, backwards):
        return None
    return Content("mixed" if step.extra else "training", len(named), step.extra), named
