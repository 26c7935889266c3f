"""Forwards that a backward runs again (activation checkpointing): they belong to the backward."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bubblescope.model.columns import Ints, Times
from bubblescope.reconstruct.directions import BACKWARD, FORWARD
from bubblescope.reconstruct.strings import alike, equal_parts, grouped, parse, simple

__all__ = ["layers_again", "runs", "with_recomputation"]

_SHORT = 0.6
"""Below this share of a forward a run of forward kernels inside a backward is a layer computed again."""

_ALMOST_ALL = 0.9

_LONGER = 1.5
"""Below so many times a forward a run that begins with one holds no other."""

_EVEN = 1.5
"""A backward takes as long as what is computed again or more, and twice as long as its forward: this lies between."""


def runs(direction: Ints, segment: Ints) -> Ints:
    """Edges of the runs of one direction in one segment: the k-th is [edges[k], edges[k + 1])."""
    changed = (np.diff(direction) != 0) | (np.diff(segment) != 0)
    return np.concatenate(([0], 1 + np.flatnonzero(changed), [len(direction)]))


def with_recomputation(direction: Ints, name: Ints, segment: Ints, step: Ints, took: Times) -> Ints:
    """The same directions, with whole forwards that are run again as part of the backward behind them.

    One stands before each backward, and then there are twice as many forwards as backwards, or each is two
    forwards long. Forwards that stand alone in few of these steps or in others are of an evaluation: they tell no more
    than what one forward is.
    Where weight gradients have a number of their own, BACKWARD is that of input gradients.
    """
    edges = runs(direction, segment)
    ahead = [
        (a, b)
        for a, b in pairwise(edges[:-1].tolist())
        if direction[a] == FORWARD and direction[b] == BACKWARD and segment[a] == segment[b]
    ]
    alone = set(edges[:-1][direction[edges[:-1]] == FORWARD].tolist()) - {a for a, _ in ahead}
    every, alone = alone, _usual(alone, {int(step[a]) for a, _ in ahead}, step)
    if not ahead or not _all_preceded(edges, direction, name, {b for _, b in ahead}):
        return direction
    ends = dict(pairwise(edges.tolist()))
    wholes = simple([name[a : ends[a]] for a in sorted(alone)])
    evaluated = simple([name[a : ends[a]] for a in sorted(every - alone)]) if not alone else []
    strings = [name[a:b] for a, b in ahead]
    group, leaders = grouped(strings)
    shortest = min(leaders, key=len)
    if len(leaders) > 1 and all(alike(leader[-len(shortest) :], shortest) for leader in leaders):
        wholes = [*wholes, shortest]
    result = direction.copy()
    trained = np.isin(step, step[direction != FORWARD])
    ratio = took[direction != FORWARD].sum() / max(1, took[(direction == FORWARD) & trained].sum())
    for number, leader in enumerate(leaders):
        again = (
            0 if any(alike(leader, one) for one in evaluated) else _computed_again(leader, wholes or evaluated, ratio)
        )
        for a, b in (ahead[i] for i in np.flatnonzero(group == number)):
            begin = a if again == len(leader) else max(a, b - again)
            result[begin:b] = BACKWARD
    return result


def _usual(alone: set[int], training: set[int], step: Ints) -> set[int]:
    """Runs of forwards alone, which begin at the given units, in the steps that train, if most of these hold some."""
    mine = {a for a in alone if int(step[a]) in training}
    return mine if 2 * len({int(step[a]) for a in mine}) > len(training) else set()


def layers_again(direction: Ints, segment: Ints) -> Ints:
    """The same directions; layers that a backward runs again one by one stand between its kernels, and go with it."""
    edges = runs(direction, segment)
    first, last = edges[:-1], edges[1:]
    length, way, where = last - first, direction[first], segment[first]
    before = np.concatenate(([False], (way[:-1] == BACKWARD) & (where[:-1] == where[1:])))
    after = np.concatenate(((way[1:] == BACKWARD) & (where[:-1] == where[1:]), [False]))
    between = (way == FORWARD) & before & after
    outer = length[(way == FORWARD) & ~between]
    if not between.any() or not len(outer):
        return direction
    usual = float(np.median(outer))
    result = direction.copy()
    for k in np.flatnonzero(between & (length < _SHORT * usual)):
        result[first[k] : last[k]] = BACKWARD
    return result


def _all_preceded(edges: Ints, direction: Ints, name: Ints, preceded: set[int]) -> bool:
    """Whether backwards of the kinds that ever follow a forward directly (do) nearly always."""
    starts = [a for a in edges[:-1].tolist() if direction[a] == BACKWARD]
    ends = dict(pairwise(edges.tolist()))
    group, _ = grouped([name[a : ends[a]] for a in starts])
    follows = np.array([a in preceded for a in starts])
    kinds = np.unique(group[follows])
    return bool(np.mean(follows[np.isin(group, kinds)]) > _ALMOST_ALL)


def _is_one(leader: Ints, whole: Ints) -> bool:
    """Whether a run before a backward is one forward; where another stands alone, or several together.

    The first kernels of the backward may be taken for its last.
    """
    n = len(whole)
    opens = n <= len(leader) < _LONGER * n and alike(leader[:n], whole)
    return opens or alike(leader, whole) or parse(whole, [leader]) is not None


def _computed_again(leader: Ints, wholes: list[Ints], ratio: float) -> int:
    """How many kernels at the end of a run before a backward are the forward run again.

    `ratio` is the time of all backwards over that of all runs of forward kernels.
    """
    if any(_is_one(leader, whole) for whole in wholes):
        return len(leader)
    fitting = [len(whole) for whole in wholes if len(whole) < len(leader) and alike(leader[-len(whole) :], whole)]
    if fitting:
        return max(fitting)
    halves = equal_parts(leader, 2)
    return len(leader) - halves[0] if halves is not None and ratio < _EVEN else 0
