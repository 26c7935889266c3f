"""Kernels that contradict the order of their stream: it runs what was launched to it one after the other, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import Kernels, Launches

__all__ = ["Turns", "turns"]

_SLACK = 1_000_000
"""ns. Profilers match the clocks of host and GPU to some microseconds, and times are rounded to one."""

_FEW = 0.01
_FEWEST = 3
"""If more than this share of the kernels, and more than so many, break a rule, it does not hold in this file: the
clocks of host and GPU disagree, or streams of the file are not those of the GPU."""

_LEAST, _MOST = np.iinfo(np.int64).min // 2, np.iinfo(np.int64).max // 2


@dataclass(frozen=True, slots=True)
class Turns:
    """Which kernels are out of their turn.

    Attributes:
        misplaced: rows of kernels that began before their launch, or out of the order of their stream.
        ahead: how many began before their launch, if many did.
        jumps: host moments at which that began or ended, if it did so seldom.
    """

    misplaced: Ints
    ahead: int
    jumps: Times


def turns(kernels: Kernels, launches: Launches) -> Turns:
    """Look at the kernels that have a launch of their own; those of a graph share one, and have no order."""
    rows, launch = _pairs(kernels, launches)
    order = np.argsort(launches.start[launch], kind="stable")
    rows, launch = rows[order], launch[order]
    before = kernels.start[rows] < launches.start[launch] - _SLACK
    order = np.argsort(kernels.lane[rows], kind="stable")
    queue, call = rows[order], launch[order]
    wrong = np.zeros(len(rows), np.bool_)
    wrong[order] = _against_neighbours(
        kernels.lane[queue], kernels.start[queue], (launches.start[call], launches.end[call])
    )
    if _few(before):
        return Turns(rows[wrong | before], 0, launches.start[:0])
    turned = np.flatnonzero(before[1:] != before[:-1]) + 1
    jumps = launches.start[launch[turned if len(turned) <= _FEWEST else turned[:0]]]
    return Turns(rows[wrong], int(before.sum()), jumps)


def _few(hit: Bools) -> bool:
    return int(hit.sum()) <= max(_FEWEST, _FEW * len(hit))


def _pairs(kernels: Kernels, launches: Launches) -> tuple[Ints, Ints]:
    """Kernels and launches that have each other alone, row by row."""
    ours, theirs = _alone(kernels.correlation), _alone(launches.correlation)
    if not len(theirs):
        return ours[:0], theirs
    wanted, known = kernels.correlation[ours], launches.correlation[theirs]
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    met = known[at] == wanted
    return ours[met], theirs[at[met]]


def _alone(correlation: Times) -> Ints:
    """Rows whose number no other row has, in the order of the numbers."""
    order = np.argsort(correlation, kind="stable")
    ordered = correlation[order]
    differs = ordered[1:] != ordered[:-1]
    alone = np.append(True, differs)[: len(order)] & np.append(differs, True)[: len(order)]
    rows: Ints = order[alone & (ordered >= 0)]
    return rows


def _against_neighbours(lane: Ints, start: Times, called: tuple[Times, Times]) -> Bools:
    """Which kernels, by lane, then launch, begin out of order.

    Each is held against two of the three behind it and of the three before it, so that one wrong neighbour accuses
    nobody. Where the calls of two threads overlap, either may come first.

    Args:
        lane: of each kernel.
        start: when each began.
        called: when its launch began and ended.
    """
    after = _middle(*(_neighbour(lane, start, by, _MOST) for by in (1, 2, 3)))
    before = _middle(*(_neighbour(lane, start, -by, _LEAST) for by in (1, 2, 3)))
    apart = called[1][:-1] <= called[0][1:]
    first, last = np.append(True, apart)[: len(lane)], np.append(apart, True)[: len(lane)]
    wrong: Bools = (first & (start < before - _SLACK)) | (last & (start > after + _SLACK))
    return wrong if _few(wrong) else np.zeros(len(lane), np.bool_)


def _neighbour(lane: Ints, start: Times, by: int, missing: int) -> Times:
    """Starts of the kernels that come so many later on the same lane."""
    result = np.full(len(lane), missing)
    near, far = slice(max(0, -by), len(lane) - max(0, by)), slice(max(0, by), len(lane) - max(0, -by))
    if abs(by) < len(lane):
        result[near] = np.where(lane[near] == lane[far], start[far], missing)
    return result


def _middle(a: Times, b: Times, c: Times) -> Times:
    """The median of three columns."""
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
