"""Units of work: what ran, when, and when the host asked for it.

On a GPU a unit is a kernel, copy or fill, and the host asked for it at its launch. On a run
without a GPU it is an outermost operator, and the host is the one that works. Communication
stands apart, because a kernel that waits for a peer is not work, and so do copies between the
host and the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bubblescope.model.columns import Bools, Columns, Ints, Times, column, distinct
from bubblescope.model.kernel_names import communicating, moving_off_device
from bubblescope.model.names import matching
from bubblescope.model.trace import Annotations, Ops, RankTrace
from bubblescope.reconstruct.ranges import NONE, owners

__all__ = ["NO_HOST", "Gathered", "Units", "gather", "launched", "matching", "outermost"]

NO_HOST = -(2**63)
"""`Units.host` where no launch was recorded."""

_COMMUNICATION_OP = r"(c10d|_c10d_functional|_dtensor)::|record_param_comms$"
_GLOO_CALL = r"gloo:"


@dataclass(frozen=True, eq=False)
class Units(Columns):
    """Units in order of `host`, the time at which the host asked; `thread` is -1 where nothing tells it.

    `lane` is the stream that a unit ran on; -1 on a host.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    host: Times = column(np.int64)
    thread: Ints = column(np.int32)
    name: Ints = column(np.int32)
    comm: Ints = column(np.int32)
    lane: Ints = column(np.int32, absent=-1)

    def in_host_order(self) -> Units:
        """The same units, sorted by `host`, then by start."""
        return self.take(np.lexsort((self.start, self.host)))


class Gathered(NamedTuple):
    """A rank's units, each in host order; `copies` are those between the host and the device."""

    work: Units
    communication: Units
    copies: Units


def gather(trace: RankTrace) -> Gathered:
    """A rank's units by what they are."""
    units = _gpu_units(trace) if trace.on_gpu else _host_units(trace)
    return Gathered(*(each.in_host_order() for each in units))


def launched(trace: RankTrace) -> tuple[int, int]:
    """How many kernels there are, copies and fills apart, and how many of them have a launch."""
    kernels = trace.kernels.kind == trace.kernels.KERNEL
    return int(kernels.sum()), int(np.sum(kernels & (_launch_of(trace) >= 0)))


def _gpu_units(trace: RankTrace) -> Gathered:
    kernels = trace.kernels
    launch = _launch_of(trace)
    seen = launch >= 0
    host = (
        np.where(seen, trace.launches.start[launch], NO_HOST) if len(trace.launches) else np.full(len(kernels), NO_HOST)
    )
    thread = np.where(seen, trace.launches.thread[launch], -1) if len(trace.launches) else np.full(len(kernels), -1)
    units = Units(kernels.start, kernels.end, host, thread, kernels.name, kernels.comm, kernels.lane)
    communicates = communicating(kernels, trace.names)
    copies = ~communicates & moving_off_device(kernels, trace.names)
    return Gathered(units.take(~communicates & ~copies), units.take(communicates), units.take(copies))


def _launch_of(trace: RankTrace) -> Ints:
    """Row of the launch of each kernel, or -1; a graph's kernels share the launch of the graph.

    Of launches with one number that lie in one another the outer one is meant. Of those apart, as where two recordings
    were joined, it is the last that began before the kernel did, or else the first.
    """
    launches, kernels = trace.launches, trace.kernels
    rows = np.flatnonzero(launches.correlation >= 0)
    if not len(rows):
        return np.full(len(kernels), -1)
    order = rows[np.lexsort((launches.start[rows], launches.correlation[rows]))]
    number, start, end = launches.correlation[order], launches.start[order], launches.end[order]
    same = number[1:] == number[:-1]
    outer = np.append(True, ~(same & (start[1:] <= end[:-1])))
    order, number = order[outer], number[outer]
    wanted = kernels.correlation
    at = np.searchsorted(number, wanted)
    if np.any(number[1:] == number[:-1]):
        at = np.maximum(at, _before(number, launches.start[order], wanted, kernels.start))
    at = np.minimum(at, len(order) - 1)
    return np.where((wanted >= 0) & (number[at] == wanted), order[at], -1)


def _before(number: Times, start: Times, wanted: Times, moment: Times) -> Ints:
    """The last launch with the number, or one below it, that began by a moment; launches go by number, then start."""
    kinds = np.repeat((0, 1), (len(number), len(wanted)))
    order = np.lexsort((kinds, np.concatenate((start, moment)), np.concatenate((number, wanted))))
    passed = np.maximum.accumulate(np.where(kinds[order] == 0, order, -1))
    result = np.empty(len(wanted), np.int64)
    asking = kinds[order] == 1
    result[order[asking] - len(number)] = passed[asking]
    return result


def _host_units(trace: RankTrace) -> Gathered:
    ops, calls = trace.ops, trace.annotations
    communicates = matching(trace.names, _COMMUNICATION_OP)[ops.name]
    work = ops.take(outermost(ops) & ~communicates)
    calls = calls.take(matching(trace.names, _GLOO_CALL)[calls.name])
    posting = ops.take(communicates)
    begun = _since_posted(calls, posting.take(outermost(posting)))
    return Gathered(_on_host(work, work.comm), begun, Units.empty())


def _since_posted(calls: Annotations, posting: Ops) -> Units:
    """The calls of gloo in order, each begun with the operator that it was opened in, if there is one.

    torch opens the range of a call only when it has handed the message to gloo, which can take milliseconds
    (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp: `send` and `recv` make their work, which records, after the
    buffer's own), so that the other side may have it before.
    """
    units = _on_host(calls, np.full(len(calls), -1)).in_host_order()
    start = units.start.copy()
    for thread in distinct(units.thread).tolist():
        mine, theirs = np.flatnonzero(units.thread == thread), posting.take(posting.thread == thread)
        row = owners(theirs.start, theirs.end, units.host[mine])
        held = row != NONE
        start[mine[held]] = theirs.start[row[held]]
    return units.replace(start=start)


def _on_host(rows: Ops | Annotations, comm: Ints) -> Units:
    return Units(rows.start, rows.end, rows.start, rows.thread, rows.name, comm)


def outermost(ops: Ops) -> Bools:
    """Which operators lie in no other operator of their thread."""
    result = np.ones(len(ops), bool)
    for number in distinct(ops.thread).tolist():
        rows = np.flatnonzero(ops.thread == number)
        if np.any(ops.start[rows[1:]] <= ops.start[rows[:-1]]):
            rows = rows[np.lexsort((-ops.end[rows], ops.start[rows]))]
        reach = np.maximum.accumulate(ops.end[rows])
        result[rows[1:]] = ops.start[rows[1:]] >= reach[:-1]
    return result
