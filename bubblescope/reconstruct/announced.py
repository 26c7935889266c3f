"""Messages that only lead up to another: the shape of a tensor, or one tensor of several that are one output.

Where sizes are told, a few integers before a far larger tensor are its shape (`Talk.between_stages`). Where nothing
tells them, numbers do: a rank of a pipeline sends or receives alone before its first backward and behind its last one,
so that messages which always follow each other by twos, with no kernel between, are two for each that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.units import NO_HOST

__all__ = ["announcements"]


def announcements(sent: Talk, work: Times, forwards: int) -> Bools:
    """Which messages lead up to the one behind them, where no message tells its size.

    Args:
        sent: sends and receives, in host order; of those that one kernel holds all or none lead up to another.
        work: host moments at which what computes was asked for, sorted.
        forwards: how many forwards ran. What is left must be more, as a rank alternates: with one micro-batch a step a
            send and a receive would look like a pair.
    """
    none = np.zeros(len(sent.row), bool)
    _, first, kernel = np.unique(sent.kernel, return_index=True, return_inverse=True)
    host = sent.units.host[first]
    if not len(first) or np.any(sent.bytes >= 0) or np.any(host == NO_HOST):
        return none
    run = np.searchsorted(work, host)
    lanes = list(_lanes(sent, first))
    common = gcd(*(length for lane in lanes for length in np.unique(run[lane], return_counts=True)[1].tolist()))
    count = next((k for k in range(common, 1, -1) if common % k == 0 and len(first) > forwards * k), 1)
    if count == 1:
        return none
    leads = np.zeros(len(first), bool)
    for lane in lanes:
        place = np.arange(len(lane)) - np.searchsorted(run[lane], run[lane])
        leads[lane] = place % count < count - 1
    found: Bools = leads[kernel.reshape(-1)]
    return found


def _lanes(sent: Talk, rows: Ints) -> Iterator[Ints]:
    """Which of the kernels, each given by a row of what it holds, go one way: one peer and direction, one stream."""
    number: dict[tuple[object, ...], int] = {}
    ways = [(call.op, call.src, call.dst, call.group, call.ranks) for call in sent.calls]
    way = np.array([number.setdefault(each, len(number)) for each in ways], np.int64)
    key = way[sent.row[rows]] << 32 | (sent.units.lane[rows] + 1)
    for each in np.unique(key).tolist():
        yield np.flatnonzero(key == each)
