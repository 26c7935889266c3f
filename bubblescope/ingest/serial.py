"""Kernels that say they ran on when the next one of their stream had begun: a stream runs one at a time.

The successor bounds the end of such a kernel, and so do all others of its name: the earliest is taken for its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.kernel_names import communicating
from bubblescope.model.trace import Kernels

__all__ = ["Overruns", "overruns"]

_SLACK = 50_000
"""ns of overlap that are no fault. A programmatic dependent begins while the last blocks of the kernel before it run
(CUDA Programming Guide, Programmatic Dependent Launch), which takes some microseconds; times may be rounded to one."""

_FEWEST_WORK, _FEW_WORK = 3, 0.1
_FEWEST_COMMUNICATION, _FEW_COMMUNICATION = 1, 0.01
"""If more of a stream's kernels, and more than this share of them, overlap, then what the file calls a stream is none:
AMD's hardware queues take the work of several, and so may a graph's launch. Of communication fewer are enough: sends
and receives are what runs side by side, and the time of a kernel that waits for a peer is no work."""

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Overruns:
    """Kernels that end too late.

    Attributes:
        rows: of the kernels.
        end: when each ended at the latest.
        longest: by how much the worst of them overran, in nanoseconds.
        overlapping: how many overlap others on streams that seem to be several.
        doubtful: rows of those whose length counts, unless a graph launched them: its branches run side by side.
    """

    rows: Ints
    end: Times
    longest: int
    overlapping: int
    doubtful: Ints


def overruns(kernels: Kernels, names: tuple[str, ...]) -> Overruns:
    """Which kernels overrun; what has no length overruns nothing, and bounds nothing.

    Work is held against work, communication against communication, and what a graph launched against such: where two
    sorts share a queue of the hardware they may overlap.
    """
    lasting = np.flatnonzero(kernels.end > kernels.start)
    start, end = kernels.start[lasting], kernels.end[lasting]
    none = Overruns(lasting[:0], end[:0], 0, 0, lasting[:0])
    if not np.any(end - _SLACK > _following(kernels.lane[lasting], start)):  # as in most files
        return none
    communicates, together = communicating(kernels, names)[lasting], _together(kernels.correlation[lasting])
    queue = 4 * kernels.lane[lasting].astype(np.int64) + 2 * together + communicates
    following = _following(queue, start)
    late = end - _SLACK > following
    if not late.any():
        return none
    wrong = late & _serial(queue, late)
    longest = int((end - following)[wrong].max(initial=0))
    usual = _longest(kernels.name[lasting], end - start, wrong)
    cut = start[wrong] + np.minimum(usual, following[wrong] - start[wrong])
    kept = late & ~wrong
    doubtful = kept & ~communicates & ~together
    return Overruns(lasting[wrong], cut, longest, int(kept.sum()), lasting[doubtful])


def _following(queue: Ints, start: Times) -> Times:
    """When the next kernel of the same queue begins that does not begin together with this one."""
    order = np.lexsort((start, queue))
    new = (queue[order][1:] != queue[order][:-1]) | (start[order][1:] != start[order][:-1])
    first = np.flatnonzero(np.append(True, new)[: len(order)])
    begun, of = np.append(start[order][first], _NEVER), np.append(queue[order][first], -1)
    moment = np.where(of[1:] == of[:-1], begun[1:], _NEVER)
    following = np.empty(len(order), np.int64)
    following[order] = np.repeat(moment, np.diff(np.append(first, len(order))))
    return following


def _serial(queue: Ints, late: Bools) -> Bools:
    """For each kernel whether its queue runs one at a time: few of it are late."""
    count, hit = np.bincount(queue), np.bincount(queue[late], minlength=int(queue.max()) + 1)
    limit = np.where(
        np.arange(len(count)) % 2 == 0,
        np.maximum(_FEWEST_WORK, _FEW_WORK * count),
        np.maximum(_FEWEST_COMMUNICATION, _FEW_COMMUNICATION * count),
    )
    serial: Bools = (hit <= limit)[queue]
    return serial


def _longest(name: Ints, length: Times, wrong: Bools) -> Times:
    """For each wrong kernel how long the longest other one of its name is, as far as there is any."""
    known = np.full(int(name.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(known, name[~wrong], length[~wrong])
    of = known[name[wrong]]
    return np.where(of < 0, _NEVER, of)


def _together(correlation: Times) -> Bools:
    """Which kernels share their launch with others."""
    _, index, count = np.unique(correlation, return_inverse=True, return_counts=True)
    shared: Bools = (count[index] > 1) & (correlation >= 0)
    return shared
