"""Actions of one rank that run at the same time in a timeline that takes them at their word, which a GPU does not do.

A pair that a timeline means to run together has one `block`, or begins and ends at the same moments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bubblescope.model.actions import WHOLE, Action, Kind
from bubblescope.model.columns import Bools, Ints
from bubblescope.model.job import Job
from bubblescope.model.timeline import Actions, RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["overlapping"]

_LEAST = 2_000  # ns; times rounded to whole microseconds, twice
_OF_SHORTER = 0.01
_OF_STEP = 5e-6
"""Overlaps within any of these are noise; a time in seconds since the step's start is a float of 24 bits in files."""


def overlapping(job: Job) -> Finding | None:
    """A word on actions that begin before another of their rank has ended, with the first of them."""
    found = [(rank, t, pairs) for rank, t in sorted(job.timelines.items()) if len(pairs := _pairs(t))]
    if not found:
        return None
    rank, timeline, pairs = found[0]
    earlier, later = pairs[0].tolist()
    a, steps = timeline.actions, timeline.steps.number
    both = (min(a.end[earlier], a.end[later]) - a.start[later]) / 1e6
    total = sum(len(t.actions) for t in job.timelines.values())
    message = (
        f"{sum(len(pairs) for *_, pairs in found)} of {total} actions begin before another of their rank has ended, on "
        f"{_ranks([rank for rank, *_ in found])}; the first is {_name(a, later)} of step {steps[a.step[later]]} on "
        f"rank {rank}, which overlaps {_name(a, earlier)} by {both:.3g} ms: an end is written as a duration, starts "
        "are taken too early, or several ranks are taken as one"
    )
    return Finding("overlapping-slices", "warning", message)


def _pairs(timeline: RankTimeline) -> Ints:
    """Rows (earlier, later) of actions that overlap, each later one with what ends last before it; shape (n, 2)."""
    a = timeline.actions
    if timeline.reconstruction != "table" or len(a) < 2:
        return np.empty((0, 2), np.int64)
    order = np.lexsort((-a.end, a.start))
    start, end = a.start[order], a.end[order]
    alone = np.append(True, ~_together(a.take(order)))
    order, start, end = order[alone], start[alone], end[alone]
    last = np.maximum.accumulate(end)
    holder = np.maximum.accumulate(np.where(end == last, np.arange(len(end)), 0))[:-1]
    overlap = np.minimum(end[1:], last[:-1]) - start[1:]
    shorter = np.minimum(end[1:] - start[1:], end[holder] - start[holder])
    step = (timeline.steps.end - timeline.steps.start)[a.step[order[1:]]]
    late = np.flatnonzero(overlap > np.maximum(_LEAST, np.maximum(_OF_SHORTER * shorter, _OF_STEP * step)))
    return np.stack((order[holder[late]], order[late + 1]), axis=1)


def _together(a: Actions) -> Bools:
    """Which action runs, on purpose, with the one before it."""
    forward = a.kind == Kind.F
    pair: Bools = (forward[1:] != forward[:-1]) & (a.start[1:] == a.start[:-1]) & (a.end[1:] == a.end[:-1])
    pair |= (a.block[1:] >= 0) & (a.block[1:] == a.block[:-1])
    return pair


def _name(a: Actions, row: int) -> str:
    """The action, `-` for what is not told of it."""
    ids = (int(a.stage[row]), Kind(int(a.kind[row])), int(a.microbatch[row]))
    return str(Action(*ids, int(a.slice[row]) if a.slice[row] >= 0 else WHOLE)).replace("-1", "-")


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} " + ", ".join(map(str, ranks[:8])) + (", ..." if ranks[8:] else "")
