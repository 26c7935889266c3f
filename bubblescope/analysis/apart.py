"""Steps that cannot have run as their ranks show them: of other clocks or runs, numbered apart, or torn.

A training holds every rank from before the last one begins until after the first one ends, as its gradients come back.
Forwards alone go one way, so that a rank may be done before a later one begins, but no later one before that rank
begins. And where a rank begins the next step before another has begun this one, the two share their time, so that the
window of neither is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.steps import RankStep
from bubblescope.model.actions import Kind

__all__ = ["impossible", "overtaken", "sound", "whole"]


def sound(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """All others: those whose windows are times of their own."""
    bad = {id(step) for step in (*impossible(steps), *overtaken(steps))}
    return [step for step in steps if id(step) not in bad]


def whole(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """Those of which every stage was recorded, too."""
    return [step for step in sound(steps) if step.seen]


def impossible(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """Those over on some ranks before they begin on others that they need."""
    return [step for step in steps if _is_impossible(step)]


def overtaken(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """Those of which one begins on some rank before the one before it has begun on all, both of each two."""
    lines: dict[int, list[PipelineStep]] = {}
    for step in sorted(steps, key=lambda step: step.step):
        lines.setdefault(step.pipeline, []).append(step)
    pairs = (two for line in lines.values() for two in pairwise(line))
    found = {id(step) for one, other in pairs if min(_starts(other)) < max(_starts(one)) for step in (one, other)}
    return [step for step in steps if id(step) in found]


def _is_impossible(step: PipelineStep) -> bool:
    """Whether some rank was done before one that it needs began."""
    if any(np.any(mine.actions.kind != Kind.F) for mine in step.steps.values()):
        return max(_starts(step)) >= min(map(_end, step.steps.values()))
    placed = sorted(step.steps.items(), key=lambda item: step.position[item[0]])
    return any(
        _end(later) <= _start(mine)
        for k, (rank, mine) in enumerate(placed)
        for other, later in placed[k + 1 :]
        if step.position[other] > step.position[rank]
    )


def _starts(step: PipelineStep) -> list[int]:
    return [_start(mine) for mine in step.steps.values()]


def _start(mine: RankStep) -> int:
    return int(mine.actions.start.min())


def _end(mine: RankStep) -> int:
    return int(mine.actions.end.max())
