"""Segments between messages, and the runs of one direction in them; what cuts and what does not.

A message may be posted in the middle of an action, and where no launch is recorded it may run by chance
between two of its kernels. So a cut counts for less than a string of kernels that recurs whole.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.directions import BACKWARD, FORWARD
from bubblescope.reconstruct.recompute import runs
from bubblescope.reconstruct.strings import MOST_DISTINCT, TOLERANCE, alike, difference, grouped, parse
from bubblescope.reconstruct.units import Units

__all__ = ["STRAY", "absorbed", "gaps_at_messages", "joined", "mended"]

_MOST_BASES = 16
"""Of how many strings, the most frequent first, another is tried to be made."""

_RARE = 0.2
"""A string that occurs less often than this share of another is an exception beside it."""

STRAY = 0.05
"""A run shorter than this share of the usual one is no action."""


def gaps_at_messages(work: Units, sent: Talk, shared: Units) -> Times:
    """Where no launch is recorded: moments on the GPU at which a message parts two units, sorted.

    A message begins behind the work that was asked for before it was posted, and a receive ends before the action
    that awaits it. The same moment inside a unit says nothing, nor does it inside one of the `shared` collectives
    that work waits for.
    """
    ops = np.array([call.op for call in sent.calls], object)[sent.row] if len(sent.row) else np.empty(0, object)
    moments = np.sort(np.concatenate((sent.units.start, sent.units.end[ops != "send"])))
    following = np.append(work.start, np.iinfo(np.int64).max)[np.searchsorted(work.start, shared.start)]
    awaited = _idle(work, shared.start) & (shared.end <= following)
    busy = Units.concat((work, shared.take(awaited)))
    result: Times = moments[_idle(busy.take(np.argsort(busy.start)), moments)]
    return result


def _idle(units: Units, moments: Times) -> Bools:
    """At which moments none of the units, in order of their start, runs."""
    reach = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], units.end)))
    result: Bools = reach[np.searchsorted(units.start, moments)] <= moments
    return result


def absorbed(direction: Ints, segment: Ints) -> Ints:
    """Edges of runs; a stray one goes with its neighbour in the same segment."""
    edges = runs(direction, segment)
    length = np.diff(edges)
    usual = float(np.sort(length)[np.searchsorted(np.cumsum(np.sort(length)), len(direction) / 2)])
    for k in np.flatnonzero(length < STRAY * usual).tolist():
        a, b = int(edges[k]), int(edges[k + 1])
        if a > 0 and segment[a - 1] == segment[a]:
            direction[a:b] = direction[a - 1]
        elif b < len(direction) and segment[b] == segment[a]:
            direction[a:b] = direction[b]
    return runs(direction, segment)


def mended(segment: Ints, direction: Ints, name: Ints, step: Ints) -> Ints:
    """The same segments, without cuts inside what more often stands whole: a forward, or one and its backward."""
    edges = runs(direction, segment)
    dropped = np.setdiff1d(edges, joined(edges, direction, name, step))
    keep = np.diff(segment, prepend=segment[0]) != 0
    keep[dropped] = False
    segment = np.cumsum(keep)
    edges = np.concatenate(([0], 1 + np.flatnonzero(np.diff(segment)), [len(segment)]))
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    group, leaders = grouped([name[a:b] for a, b in spans])
    if len(leaders) > MOST_DISTINCT:
        return segment
    whole = _Wholes(leaders, np.bincount(group))
    turned = np.flatnonzero((direction[edges[1:-1] - 1] == FORWARD) & (direction[edges[1:-1]] == BACKWARD))
    for k in turned[step[edges[turned]] == step[edges[turned + 1]]].tolist():
        (a, b), (_, c) = spans[k], spans[k + 1]
        keep[b] &= not whole.recurs(name[a:c], whole.count[group[k + 1]] / _RARE)
    return np.cumsum(keep)


class _Wholes:
    """Strings that stand whole, and how often each does."""

    def __init__(self, leaders: list[Ints], count: Ints) -> None:
        self.leaders, self.count = leaders, count
        self.length = np.array([len(leader) for leader in leaders])

    def recurs(self, string: Ints, least: float) -> bool:
        """Whether a string is alike one that stands more often than `least` times."""
        if self.count.max() <= least:
            return False
        near = np.abs(self.length - len(string)) <= TOLERANCE * len(string)
        return any(alike(string, self.leaders[k]) for k in np.flatnonzero(near & (self.count > least)))

    def makes(self, string: Ints, least: float) -> bool:
        """Whether a string is made of one or several that stand more often than `least` times."""
        often = np.flatnonzero((self.count > least) & (self.length <= (1 + TOLERANCE) * len(string)))
        often = often[np.argsort(-self.count[often], kind="stable")][:_MOST_BASES]
        return bool(len(often)) and parse(string, [self.leaders[k] for k in often]) is not None


def joined(edges: Ints, direction: Ints, name: Ints, step: Ints) -> Ints:
    """Edges of runs, without those that cut a string which more often stands whole."""
    for _ in range(3):
        spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        group, leaders = grouped([name[a:b] for a, b in spans])
        if len(leaders) < 2 or len(leaders) > MOST_DISTINCT:
            return edges
        whole = _Wholes(leaders, np.bincount(group))
        often = whole.count[group]
        rare = often < np.median(often)
        drop = set[int]()
        for k in np.flatnonzero(rare[:-1] | rare[1:]).tolist():
            a, b, c = spans[k][0], spans[k][1], spans[k + 1][1]
            if a in drop or direction[a] != direction[b] or step[a] != step[b]:
                continue
            if rare[k] and rare[k + 1]:
                cut = whole.makes(name[a:c], max(often[k], often[k + 1]))
            else:
                kept, leader = (name[b:c], leaders[group[k + 1]]) if rare[k] else (name[a:b], leaders[group[k]])
                cut = difference(name[a:c], leader) < difference(kept, leader)
            if cut:
                drop.add(b)
        if not drop:
            return edges
        edges = edges[~np.isin(edges, list(drop))]
    return edges
