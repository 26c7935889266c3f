"""Kernels that say they ran on when the next one of their stream had begun: a stream runs one at a time.

A successor bounds an end from above, and so does every other kernel of the name: the earlier of the two is taken for
the end.
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

_FEWEST_WORK, _FEW_WORK = 3, 0.05
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
    """

    rows: Ints
    end: Times
    longest: int
    overlapping: int


def overruns(kernels: Kernels, names: tuple[str, ...]) -> Overruns:
    """Which kernels overrun; what has no length overruns nothing, and bounds nothing."""
    lasting = np.flatnonzero(kernels.end > kernels.start)
    lane, start, end = kernels.lane[lasting], kernels.start[lasting], kernels.end[lasting]
    following = _following(lane, start)
    late = end - _SLACK > following
    if not late.any():
        return Overruns(lasting[:0], end[:0], 0, 0)
    wrong = late & _serial(lane, late, communicating(kernels, names)[lasting])
    longest = int((end - following)[wrong].max(initial=0))
    usual = _longest(kernels.name[lasting], end - start, wrong)
    cut = np.minimum(following[wrong], start[wrong] + np.minimum(usual, following[wrong] - start[wrong]))
    return Overruns(lasting[wrong], cut, longest, int(np.sum(late & ~wrong)))


def _following(lane: Ints, start: Times) -> Times:
    """When the next kernel of the same stream begins that does not begin together with this one."""
    order = np.lexsort((start, lane))
    new = (lane[order][1:] != lane[order][:-1]) | (start[order][1:] != start[order][:-1])
    first = np.flatnonzero(np.append(True, new)[: len(order)])
    begun, of = np.append(start[order][first], _NEVER), np.append(lane[order][first], -1)
    moment = np.where(of[1:] == of[:-1], begun[1:], _NEVER)
    following = np.empty(len(order), np.int64)
    following[order] = np.repeat(moment, np.diff(np.append(first, len(order))))
    return following


def _serial(lane: Ints, late: Bools, communicates: Bools) -> Bools:
    """For each kernel whether its stream is one, as far as kernels of its sort tell: few of them are late."""
    sort = 2 * lane.astype(np.int64) + communicates
    count, hit = np.bincount(sort), np.bincount(sort[late], minlength=int(sort.max()) + 1)
    limit = np.where(
        np.arange(len(count)) % 2 == 0,
        np.maximum(_FEWEST_WORK, _FEW_WORK * count),
        np.maximum(_FEWEST_COMMUNICATION, _FEW_COMMUNICATION * count),
    )
    serial: Bools = (hit <= limit)[sort]
    return serial


def _longest(name: Ints, length: Times, wrong: Bools) -> Times:
    """For each wrong kernel how long the longest other one of its name is, as far as there is any."""
    known = np.full(int(name.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(known, name[~wrong], length[~wrong])
    of = known[name[wrong]]
    return np.where(of < 0, _NEVER, of)
