"""Ranks whose processes have the same id, as in containers, in one file: nothing tells their events apart.

Their numbers of launches collide, or their steps overlap: a process is in one step at a time.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Ints, distinct
from bubblescope.model.trace import Annotations, Kernels, Launches

__all__ = ["at_once", "namesakes"]

_LOOKED_AT = 1000
"""Kernels, evenly spread, of which it is asked whether their numbers come again."""

_MOST = 0.5
"""Share of the kernels whose numbers come again, where two processes have one id; elsewhere hardly any does."""


def namesakes(launches: Launches, kernels: Kernels) -> bool:
    """Whether the kernels and launches of one process on one device are those of several.

    Then most numbers come several times, of kernels as of launches, and each time at the same time. A profiler that
    records again and again counts on, or else one recording is over when the next begins; kernels of a graph share one
    launch; and what stands in a file twice has the same times.
    """
    known = np.flatnonzero(kernels.correlation >= 0)
    places = np.linspace(0, len(known) - 1, min(_LOOKED_AT, len(known))).astype(np.int64)
    looked = distinct(kernels.correlation[known[places]])
    if not len(looked) or np.isin(kernels.correlation, looked).sum() < (1 + _MOST) * len(looked):
        return False
    order = known[np.lexsort((kernels.start[known], kernels.correlation[known]))]
    numbers, first, count = np.unique(kernels.correlation[order], return_index=True, return_counts=True)
    calls = np.sort(launches.correlation)
    called = np.searchsorted(calls, numbers, "right") - np.searchsorted(calls, numbers, "left")
    again = (count > 1) & (called >= count)
    if count[again].sum() < _MOST * len(known):
        return False
    one, other = (kernels.start[order[first[again] + turn]] for turn in (0, 1))
    return bool(np.mean(one > other.min()) > _MOST and np.mean(one != other) > _MOST)


_COPIED = 10_000
"""ns. Times of a mark that stands in a file twice differ by no more, however they were rounded."""


def at_once(marks: Annotations, process: Ints) -> Ints:
    """In how many steps of one name each process is at a time, as the median over its steps; 0 where none is marked.

    Args:
        marks: the marks of steps.
        process: the process of each, as a number from 0.

    What stands in a file twice is one mark. So are two of one thread, one inside of the other: such a thread is one.
    """
    count = np.zeros(int(process.max(initial=-1)) + 1, np.int64)
    order = np.lexsort((marks.end, marks.start, marks.name, process))
    process, marks = process[order], marks.take(order)
    first = np.append(True, (process[1:] != process[:-1]) | (marks.name[1:] != marks.name[:-1]))[: len(marks)]
    one, other = marks.take(slice(-1)), marks.take(slice(1, None))
    apart = np.maximum(other.start - one.start, np.abs(other.end - one.end)) > _COPIED
    beside = (other.thread != one.thread) | apart & (other.end > one.end)
    again = ~first[1:] & (other.start < one.end) & beside
    begins = np.flatnonzero(first)
    deep = 1 + np.add.reduceat(np.append(0, again), begins) if len(begins) else begins
    for number in distinct(process).tolist():
        count[number] = np.median(deep[process[begins] == number])
    return count
