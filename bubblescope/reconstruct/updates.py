"""What updates of weights tell of steps where nothing names the actions: a step ends with one.

The marks of a profiler that is told of every micro-batch or of every half step hold work of a training, most of them
without an update. An evaluation updates nothing either; it runs a part of what a training runs, and no more.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Ints, Times, distinct
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.steps import Marks, rows_at
from bubblescope.reconstruct.units import NO_HOST, Units

__all__ = ["parts_of_steps", "starts_behind", "turns_of"]

_MOST = 0.5
"""Share of the units of an evaluation at least that run a kernel of trainings; metrics have their own."""

_LESS = 0.1
"""Share of the units of a training at least whose kernels an evaluation does not run: its backwards."""

_NEAR = 0.25
"""Share of the most work between two updates up to which what stands between others is within one update."""


def parts_of_steps(marks: Marks, work: Units, updates: Times) -> bool:
    """Whether half of the marks that train, and two at least, lack an update of weights.

    The last mark may have been cut off, and says nothing.

    Args:
        marks: the steps as they are marked.
        work: units, without those of updates.
        updates: host moments of updates.
    """
    updating = {*rows_at(marks, updates).tolist()} - {NONE}
    if not updating:
        return False
    held = _held(marks, work)
    known = np.concatenate([work.name[:0], *(name for row, name in held.items() if row in updating)])
    others = [name for row, name in held.items() if row not in updating and row != len(marks) - 1]
    return sum(not _evaluates(name, known) for name in others) >= max(2, len(updating))


def _held(marks: Marks, work: Units) -> dict[int, Ints]:
    """The names of the work in each mark that holds any, by its row, in order."""
    row = rows_at(marks, work.host)
    order = np.argsort(row, kind="stable")
    rows = distinct(row)
    names = np.split(work.name[order], np.searchsorted(row[order], rows[1:]))
    return {k: name for k, name in zip(rows.tolist(), names, strict=False) if k != NONE}


def _evaluates(name: Ints, known: Ints) -> bool:
    """Whether a mark runs what trainings run, and a part of that alone."""
    return bool(np.isin(name, known).mean() >= _MOST and np.isin(known, name, invert=True).mean() >= _LESS)


def starts_behind(updates: Times, work: Times) -> Times:
    """Host moments at which the first work behind each update begins; what lies amid one is none. Both are sorted."""
    work = work[work != NO_HOST]
    before = np.append(np.searchsorted(work, updates), len(work))
    passed = np.diff(before)
    last = np.flatnonzero(passed > _NEAR * passed[:-1].max(initial=0))
    result: Times = work[before[last][before[last] < len(work)]]
    return result


def turns_of(marks: Marks, work: Units) -> int:
    """After how many marks the same kernels come again, each as often; 1 where that is never, or with each mark.

    The first and the last mark may hold a part only.
    """
    seen = [np.bincount(name).tolist() for name in [*_held(marks, work).values()][1:-1]]
    return next((k for k in range(1, len(seen) // 2 + 1) if seen[k:] == seen[:-k]), 1)
