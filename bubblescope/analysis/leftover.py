"""How long the rest of a step takes: gradients, optimizer and parameters, before and after its pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.ranks import RankView
from bubblescope.model.columns import Times
from bubblescope.model.groups import serving

__all__ = ["rest"]


def rest(views: Mapping[int, RankView], steps: Sequence[PipelineStep]) -> dict[int, int]:
    """Nanoseconds of each step in which a rank reduces, gathers or updates, before all pipelines or after them."""
    windows: dict[int, tuple[int, int]] = {}
    for step in steps:
        start, end = windows.get(step.step, (step.window.start, step.window.end))
        windows[step.step] = min(start, step.window.start), max(end, step.window.end)
    return {number: _beside(views, number, *window) for number, window in windows.items()}


def _beside(views: Mapping[int, RankView], number: int, start: int, end: int) -> int:
    """How much longer a step is than [start, end)."""
    first, last = start, end
    for view in views.values():
        if number in view.steps:
            begun, over = _of_rank(view, number)
            first, last = min([first, *begun.tolist()]), max([last, *over.tolist()])
    return start - first + last - end


def _of_rank(view: RankView, number: int) -> tuple[Times, Times]:
    """Starts and ends of what a rank does for its replicas and its optimizer in a step."""
    timeline, step = view.timeline, view.steps[number]
    calls = timeline.collectives
    row = int(np.searchsorted(timeline.steps.number, number))
    mine = (calls.step == row) & serving(timeline.calls, calls.call, {"dp"})
    updates = timeline.optimizer.clip(step.start, step.end)
    return np.concatenate((calls.start[mine], updates.start)), np.concatenate((calls.end[mine], updates.end))
