"""Actions from the frames of Python functions that run them, where the profiler recorded stacks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.frames import Frame, find
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.dialects import Ids
from bubblescope.reconstruct.labels import Labels, labels_of
from bubblescope.reconstruct.ranges import owners

__all__ = ["action_frames", "message_frames"]


def action_frames(trace: RankTrace) -> Labels:
    """Frames that run actions: they tell the kind, and neither stage nor micro-batch.

    Where weight gradients run by themselves, a backward is whole only if it holds the call that runs
    all of it, and else stands for its input gradient.
    """
    found = _frames(trace, lambda frame: frame.direction < 0 and not frame.marks)
    if Kind.W not in found.kind:
        return found
    marks = _frames(trace, lambda frame: frame.marks)
    held = np.isin(np.arange(len(found)), owners(found.start, found.end, marks.start))
    return found.replace(kind=np.where((found.kind == Kind.B) & ~held, Kind.I, found.kind))


def message_frames(trace: RankTrace) -> Labels:
    """Frames that send or receive: direction, and the kind of the action."""
    return _frames(trace, lambda frame: frame.direction >= 0)


def _frames(trace: RankTrace, wanted: Callable[[Frame], bool]) -> Labels:
    def named(text: str) -> tuple[Ids, ...]:
        frame = find(text)
        return (Ids(int(frame.kind), direction=frame.direction),) if frame is not None and wanted(frame) else ()

    return labels_of(trace, trace.frames, named)
