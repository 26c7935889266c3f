"""What recurs once a step and is no action: fills of gradients, casts of weights, norms and scales of gradients.

It stands at the edges of a step, where messages part it from the pipeline or nothing does. What tells it from a
forward or a backward is that it is short beside them and that nothing like it stands anywhere else in a step, whereas
every action of a step comes once for each micro-batch.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.reconstruct.strings import grouped

__all__ = ["once_a_step"]

_SHORT = 0.2
"""Share of the time of what it stands beside that it takes at most: a forward takes a quarter of a step or more, though
its backward runs it again."""

_RECURRING = 0.5
"""Share of a step that more than one of its segments must hold, for several micro-batches to be in it."""


def once_a_step(name: Ints, segment: Ints, step: Ints, took: Times, talking: Ints) -> Bools:
    """Which units are no action's, as they stand once a step, before or behind all others.

    What stands so is known by its name where an evaluation and the next step are one stretch, so that it is amid them.

    Args:
        name: the row of each unit's name, in order.
        segment: rising numbers of the stretches that messages, steps and optimizers leave.
        step: the same of the stretches that only steps and optimizers leave.
        took: how long each unit ran.
        talking: the numbers of those of the latter in which a message was posted.
    """
    silent = ~np.isin(step, talking)
    result = (silent & _known(name, silent, step)) | _apart(name, segment, step, took)
    for a, b in pairwise(_edges(step).tolist()):
        rows = a + np.flatnonzero(~result[a:b])
        if _several(name[rows], segment[rows], took[rows]):
            whole = int(took[rows].sum())
            ahead = _ahead(name[rows], took[rows], whole)
            behind = _ahead(name[rows][::-1], took[rows][::-1], whole)
            result[rows[:ahead]] = result[rows[len(rows) - behind :]] = True
    return result | _known(name, result, step)


def _edges(number: Ints) -> Ints:
    """Where runs of one number begin, and the end."""
    return np.concatenate(([0], 1 + np.flatnonzero(np.diff(number)), [len(number)]))


def _known(name: Ints, held: Bools, step: Ints) -> Bools:
    """Units whose name those held have: half of all that have it are held, or no step has it more often than one holds.

    The second tells a fill amid an evaluation and a step from a cast that forwards run, too.
    """
    often, mine = np.bincount(name), np.bincount(name[held], minlength=int(name.max(initial=-1)) + 1)
    known: Bools = (mine > 0) & ((2 * mine >= often) | (_most(name, step) <= _most(name[held], step[held], len(often))))
    return known[name]


def _most(name: Ints, step: Ints, names: int = 0) -> Ints:
    """How often each name stands in the step that has it most often."""
    result = np.zeros(max(names, int(name.max(initial=-1)) + 1), np.int64)
    each, count = np.unique(np.stack((name, step)), axis=1, return_counts=True)
    np.maximum.at(result, each[0], count)
    return result


def _apart(name: Ints, segment: Ints, step: Ints, took: Times) -> Bools:
    """Units of short segments at the edges of steps, where no segment amid a step is like them."""
    edges = _edges(segment)
    time = np.add.reduceat(took, edges[:-1])
    order = np.argsort(time)
    usual = time[order][np.searchsorted(np.cumsum(time[order]), time.sum() / 2)]
    where, short = step[edges[:-1]], time < _SHORT * usual
    outer = _leading(where, short) | _leading(where[::-1], short[::-1])[::-1]
    group, leaders = grouped([name[a:b] for a, b in pairwise(edges.tolist())])
    amid = np.bincount(group[~outer], minlength=len(leaders)) > 0
    return np.repeat(outer & ~amid[group], np.diff(edges))


def _leading(where: Ints, held: Bools) -> Bools:
    """Which of those held stand before all in the same place that are not."""
    result = held.copy()
    for a, b in pairwise(_edges(where).tolist()):
        result[a:b] = np.logical_and.accumulate(held[a:b])
    return result


def _several(name: Ints, segment: Ints, took: Times) -> bool:
    """Whether a step holds several micro-batches: most of it has names that more than one segment holds."""
    if not len(name):
        return False
    pairs = np.unique(np.stack((name, segment)), axis=1)
    held = np.bincount(pairs[0], minlength=int(name.max()) + 1)
    return bool(took[held[name] > 1].sum() > _RECURRING * took.sum())


def _ahead(name: Ints, took: Times, whole: int) -> int:
    """How many units a step begins with whose names nothing behind them has, if they take little of its time."""
    codes = np.unique(name, return_inverse=True)[1].reshape(-1)
    last = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    np.maximum.at(last, codes, np.arange(len(name)))
    reach = np.maximum.accumulate(last[codes])  # a part ends where no name in it comes again
    ends = 1 + np.flatnonzero(reach == np.arange(len(name)))
    fitting = ends[np.cumsum(took)[ends - 1] <= _SHORT * whole]
    return int(fitting.max(initial=0))
