"""Steps that cannot have run as their ranks show them: of other clocks or runs, numbered apart, or torn.

A training holds every rank from before the last one begins until after the first one ends, as its gradients come back.
Forwards alone go one way, so that a rank may be done before a later one begins, but no later one before that rank
begins. And steps that share much of their time with the next have no window of their own: what one leaves idle the
other uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.steps import RankStep
from bubblescope.model.actions import Kind

SHARED = 0.5
"""Share of a step of training that the next may take up: an optimizer that waits for nobody lets steps overlap by the
forwards that the first rank runs ahead, which is less."""
SHARED_ONE_WAY = 0.1
"""The same of forwards alone, which nothing holds back: then such steps follow each other without a pause, and the
bubble between them is none."""

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
    """Those that share much of their time with the next one or the one before."""
    lines: dict[int, list[PipelineStep]] = {}
    for step in sorted(steps, key=lambda step: step.step):
        lines.setdefault(step.pipeline, []).append(step)
    pairs = (two for line in lines.values() for two in pairwise(line) if _share_time(*two))
    found = {id(step) for two in pairs for step in two}
    return [step for step in steps if id(step) in found]


def _share_time(one: PipelineStep, other: PipelineStep) -> bool:
    """Whether a step and the next overlap by more than steps of their kind may."""
    least = SHARED if _trains(one) or _trains(other) else SHARED_ONE_WAY
    return one.window.end - other.window.start > least * min(one.window.length, other.window.length)


def _is_impossible(step: PipelineStep) -> bool:
    """Whether some rank was done before one that it needs began."""
    if _trains(step):
        return max(_starts(step)) >= min(map(_end, step.steps.values()))
    placed = sorted(step.steps.items(), key=lambda item: step.position[item[0]])
    return any(
        _end(later) <= _start(mine)
        for k, (rank, mine) in enumerate(placed)
        for other, later in placed[k + 1 :]
        if step.position[other] > step.position[rank]
    )


def _trains(step: PipelineStep) -> bool:
    return any(np.any(mine.actions.kind != Kind.F) for mine in step.steps.values())


def _starts(step: PipelineStep) -> list[int]:
    return [_start(mine) for mine in step.steps.values()]


def _start(mine: RankStep) -> int:
    return int(mine.actions.start.min())


def _end(mine: RankStep) -> int:
    return int(mine.actions.end.max())
