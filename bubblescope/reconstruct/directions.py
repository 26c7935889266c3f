"""Whether a unit of work is part of a forward or of a backward, where nothing numbers or labels it.

What launched the unit is asked first: operators of a backward run inside autograd's engine, on a
thread of its own. Then the words in the names of kernels. What these leave open goes with its
neighbours; where neighbours differ, the border is put where each kernel stands on the side on
which it stands elsewhere. Without any word, what a step begins with is a forward.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bubblescope.model.columns import Bools, Floats, Ints, Times
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.autograd import backward_roots
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.strings import alike, grouped, turn
from bubblescope.reconstruct.units import Units, matching

__all__ = ["BACKWARD", "FORWARD", "directions", "filled"]

FORWARD, BACKWARD = 0, 1

# cuBLAS, cuDNN, CUTLASS, flash-attention, Transformer Engine, Apex and ATen name their kernels so.
_BACKWARD_WORD = r"(?i).*(bwd|backward|dgrad|wgrad|bprop|_bw_|grad_?(input|weight|bias)|gradient)"
_FORWARD_WORD = r"(?i).*(fwd|fprop|forward|_fw_)"
_ENOUGH = 0.02
"""Share of the units that must carry a word, for words to decide."""

_ALONE, _MANY = 2, 10
"""So few kernels in a row among so many of the other direction are an exception."""

_LEAST = 0.8
"""Backwards take no less time than this share of the forwards."""

_MOST = 0.75
"""Share of the kernels of a forward and its backward that the forward has at most."""


def directions(trace: RankTrace, work: Units, segment: Ints, step: Ints, *, trains: bool) -> Ints:
    """FORWARD or BACKWARD for each unit.

    Args:
        trace: the rank's trace.
        work: units in order.
        segment: rising numbers of the stretches that messages, steps and optimizers leave.
        step: the same of the stretches that only steps and optimizers leave.
        trains: whether an optimizer ran, so that there are backwards.
    """
    told = _by_operator(trace, work)
    if not np.any(told == BACKWARD):
        told = _by_name(trace, work)
    if np.mean(told == BACKWARD) < _ENOUGH or np.mean(told == FORWARD) < _ENOUGH:
        told = _by_recurrence(work.name, segment, step, work.end - work.start, trains=trains)
    return _smoothed(filled(told, work.name, segment), segment)


def _smoothed(direction: Ints, segment: Ints) -> Ints:
    """The same directions, without kernels that stand alone among many of the other one, whatever their name says."""
    edges = np.concatenate(
        ([0], 1 + np.flatnonzero((np.diff(direction) != 0) | (np.diff(segment) != 0)), [len(direction)])
    )
    first, length = edges[:-1], np.diff(edges)
    where = segment[first]
    alone = np.zeros(len(first), bool)
    alone[1:-1] = (
        (length[1:-1] <= _ALONE)
        & (np.minimum(length[:-2], length[2:]) >= _MANY)
        & (where[:-2] == where[1:-1])
        & (where[2:] == where[1:-1])
    )
    return np.where(np.repeat(alone, length), 1 - direction, direction)


def _by_operator(trace: RankTrace, work: Units) -> Ints:
    """Direction by the operator or the thread that launched; all NONE without operators of a backward."""
    told = np.full(len(work), NONE, np.int64)
    roots = backward_roots(trace)
    inside = np.zeros(len(work), bool)
    for thread in np.unique(roots.thread):
        mine, theirs = np.flatnonzero(work.thread == thread), roots.take(roots.thread == thread)
        inside[mine] = owners(theirs.start, theirs.end, work.host[mine]) >= 0
        inside[mine] |= bool(np.mean(inside[mine]) > 0.5) if len(mine) else False  # a thread of the engine
    if not inside.any():
        return told
    words = matching(trace.names, _BACKWARD_WORD)[work.name]  # weight gradients may be put off, out of the engine
    told[:] = np.where(inside | words, BACKWARD, FORWARD)
    return told


def _by_name(trace: RankTrace, work: Units) -> Ints:
    """Direction by the words in the kernel's name."""
    backward, forward = matching(trace.names, _BACKWARD_WORD), matching(trace.names, _FORWARD_WORD)
    by_name = np.where(backward, BACKWARD, np.where(forward, FORWARD, NONE))
    result: Ints = by_name[work.name]
    return result


def _by_recurrence(name: Ints, segment: Ints, step: Ints, took: Times, *, trains: bool) -> Ints:
    """Direction by what recurs: a step begins with a forward, and what is not made of that is a backward.

    Where all segments are alike each is a forward, or on the last stage of a training run a forward and
    its backward.
    """
    edges = np.concatenate(([0], 1 + np.flatnonzero(np.diff(segment)), [len(name)]))
    strings = [name[a:b] for a, b in pairwise(edges.tolist())]
    group, leaders = grouped(strings)
    first = np.unique(step[edges[:-1]], return_index=True)[1]
    opening = leaders[int(np.bincount(group[first]).argmax())]
    told = np.full(len(name), NONE, np.int64)
    if not trains:
        told[:] = FORWARD
        return told
    alone = [leaders[g] for g in np.flatnonzero(np.bincount(group) > 1)]
    shorter = _forward_in(opening, alone)
    if np.mean(group == group[first[0]]) > 0.9 and not shorter:
        for a, b, string in zip(edges[:-1], edges[1:], strings, strict=True):
            at = a + turn(string, took[a:b])
            told[a:at], told[at:b] = FORWARD, BACKWARD
        return told
    _by_opening(told, name, edges, opening)
    trained = np.isin(step, step[told == BACKWARD])  # an evaluation's forwards have no backwards
    if took[told == BACKWARD].sum() <= _LEAST * took[(told == FORWARD) & trained].sum():
        # The last stage begins with a forward and its backward, and what else there is are weight gradients.
        start = int(edges[np.flatnonzero(group == group[first[0]])[0]])
        at = shorter or _forward_before(opening, alone) or turn(opening, took[start : start + len(opening)])
        if shorter or not np.isin(opening[:at], opening[at:]).any():
            _by_opening(told, name, edges, opening[:at])
    return told


def _forward_in(opening: Ints, others: list[Ints]) -> int:
    """How much of a forward with its backward is the forward, where it also stands alone, as in an evaluation; or 0."""
    fitting = [len(other) for other in others if len(other) < len(opening) and alike(opening[: len(other)], other)]
    return min((n for n in fitting if n <= _MOST * len(opening)), default=0)


def _forward_before(opening: Ints, others: list[Ints]) -> int:
    """How much of a forward with its backward is left where the half of a backward that also stands alone ends it."""
    shorter = [other for other in others if len(other) < len(opening)]
    fitting = [len(opening) - len(other) for other in shorter if alike(opening[-len(other) :], other)]
    return min((n for n in fitting if n <= _MOST * len(opening)), default=0)


def _by_opening(told: Ints, name: Ints, edges: Ints, opening: Ints) -> None:
    """Tell segments apart by the string that a step begins with, a forward."""
    told[:] = NONE
    known = np.zeros(int(name.max()) + 1, bool)
    known[opening] = True
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        low, high = _stripped(name, a, b, opening)
        told[a:low], told[high:b] = FORWARD, FORWARD
        new = ~known[name[low:high]]
        if high > low and np.mean(new) < 0.1:
            told[low:high] = FORWARD  # another chunk's
        else:
            told[low:high][new] = BACKWARD
            _mark_long(told[low:high], ~new, 0.8 * len(opening))


def _mark_long(told: Ints, held: Bools, least: float) -> None:
    """Forwards are where at least so many names in a row are known from one."""
    edge = np.diff(np.concatenate(([False], held, [False])).astype(np.int8))
    for a, b in zip(np.flatnonzero(edge == 1).tolist(), np.flatnonzero(edge == -1).tolist(), strict=True):
        if b - a >= least:
            told[a:b] = FORWARD


def _stripped(name: Ints, low: int, high: int, opening: Ints) -> tuple[int, int]:
    """What of a segment is left without the openings at either end."""
    n = len(opening)
    while high - low >= n and alike(name[low : low + n], opening):
        low += n
    while high - low >= n and alike(name[high - n : high], opening):
        high -= n
    return (low, low) if high - low <= n // 10 else (low, high)


def filled(told: Ints, name: Ints, segment: Ints) -> Ints:
    """Directions of all units: what is open goes with the known ones around it in its segment."""
    at = np.arange(len(told))
    known = told != NONE
    left = np.maximum.accumulate(np.where(known, at, -1))
    right = np.minimum.accumulate(np.where(known, at, len(told))[::-1])[::-1]
    has_left = (left >= 0) & (segment[left] == segment)
    safe = np.minimum(right, len(told) - 1)
    has_right = (right < len(told)) & (segment[safe] == segment)
    by_left = np.where(has_left, told[left], NONE)
    by_right = np.where(has_right, told[safe], NONE)
    sure = (by_left == by_right) & has_left
    result = np.where(sure, by_left, told)
    one_sided = np.where(has_left & has_right, NONE, np.where(has_left, by_left, by_right))
    lean = _leaning(result, np.where(result == NONE, one_sided, NONE), name)
    by_left = np.where(has_left, by_left, np.where(by_right == BACKWARD, FORWARD, by_right))
    by_right = np.where(has_right, by_right, np.where(by_left == BACKWARD, FORWARD, by_left))
    agreed = (result == NONE) & (by_left == by_right)
    result[agreed] = by_left[agreed]
    for low, high in _stretches(result == NONE, segment):
        known_left = bool(has_left[low]) and (by_left[low] == FORWARD or not has_right[low])
        border = low + _border(lean[low:high], int(by_left[low]), last=known_left)
        before, after = int(by_left[low]), int(by_right[low])
        if before == NONE:  # nothing in the whole segment is known
            before = after = FORWARD if lean[low:high].sum() >= 0 else BACKWARD
        result[low:border], result[border:high] = before, after
    return result


def _stretches(held: Bools, segment: Ints) -> list[tuple[int, int]]:
    """Ranges of units that are held, each in one segment."""
    begins = held & np.concatenate(([True], ~held[:-1] | (np.diff(segment) != 0)))
    ends = held & np.concatenate((~held[1:] | (np.diff(segment) != 0), [True]))
    return list(zip(np.flatnonzero(begins).tolist(), (np.flatnonzero(ends) + 1).tolist(), strict=True))


def _border(lean: Floats, before: int, *, last: bool) -> int:
    """How many units of a stretch go with the direction before it; of places as good the last or the first."""
    sign = 1 if before == FORWARD else -1
    gain = sign * np.concatenate(([0.0], np.cumsum(lean)))
    best = np.flatnonzero(gain >= gain.max() - 1e-9)
    return int(best[-1 if last else 0])


def _leaning(sure: Ints, likely: Ints, name: Ints) -> Floats:
    """For each unit how much its name leans to forwards, in -1 ... 1.

    It is where the name stands between known units that counts, and only without that where it stands beside one.
    """
    most = int(name.max(initial=0)) + 1
    lean = np.zeros(most)
    for told in (likely, sure):
        forward = np.bincount(name[told == FORWARD], minlength=most)
        backward = np.bincount(name[told == BACKWARD], minlength=most)
        seen = forward + backward > 0
        lean[seen] = (forward[seen] - backward[seen]) / (forward[seen] + backward[seen])
    result: Floats = lean[name]
    return result
