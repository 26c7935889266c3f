"""Recordings behind each other in one file: a profiler that pauses and goes on, or files that were joined.

While a profiler records steps it marks them one behind the other, so that nothing lies between two marks but what it
does to mark them. A pause is longer than a step in which neither a mark nor anything else was recorded.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from bubblescope.model.columns import Times
from bubblescope.model.spans import Spans
from bubblescope.model.trace import Doubts, RankTrace

__all__ = ["recordings"]

_STEP = re.compile(r"ProfilerStep#\d{1,18}")


def recordings(trace: RankTrace) -> list[RankTrace]:
    """The recordings of a rank that its file holds, each by itself; the first has what is to be said of the file."""
    pauses = _pauses(trace)
    if not len(pauses):
        return [trace]
    blocks = {name: getattr(trace, name) for name in ("ops", "annotations", "launches", "kernels", "frames")}
    turns = {name: np.searchsorted(pauses, block.start, "right") for name, block in blocks.items()}
    doubted = np.searchsorted(pauses, trace.doubts.moments, "right")
    found = []
    for turn in range(len(pauses) + 1):
        moments = trace.doubts.moments[doubted == turn]
        found.append(
            replace(
                trace,
                **{name: block.take(turns[name] == turn) for name, block in blocks.items()},
                doubts=replace(trace.doubts, moments=moments) if turn == 0 else Doubts(moments=moments),
                findings=trace.findings if turn == 0 else (),
            )
        )
    return found


def _pauses(trace: RankTrace) -> Times:
    """Moments at which the profiler was at rest, one in each pause."""
    is_step = np.array([_STEP.fullmatch(name) is not None for name in trace.names], np.bool_)
    notes = trace.annotations
    marks = notes.take(is_step[notes.name]) if len(notes) else notes
    if len(marks) < 2:
        return np.empty(0, np.int64)
    length = int(np.median(marks.end - marks.start))
    marks = marks.take(np.argsort(marks.start, kind="stable"))
    reach = np.maximum.accumulate(marks.end)[:-1]
    wide = np.flatnonzero(marks.start[1:] - reach > max(length, 1))
    if not len(wide):
        return np.empty(0, np.int64)
    blocks = (trace.ops, notes, trace.launches, trace.kernels, trace.frames)
    busy = Spans.join([Spans.of(block.start, np.maximum(block.end, block.start + 1)) for block in blocks])
    rest = np.flatnonzero(busy.start[1:] - busy.end[:-1] > max(length, 1))
    begin, end = busy.end[rest], busy.start[rest + 1]
    inside = np.searchsorted(begin, reach[wide], "left")
    there = inside < len(rest)
    inside, wide = inside[there], wide[there]
    pauses: Times = np.unique(begin[inside[end[inside] <= marks.start[wide + 1]]])
    return pauses
