"""The host events of a process that drives several GPUs, told apart by what was launched inside them.

A range is of those GPUs for which its own thread launched kernels inside it; copies tell where no kernel does. One in
which its thread launched nothing, as the label around a backward that autograd's threads run, is of the GPU that its
thread drives elsewhere; where that are several or none, of those that threads without ranges of their own launched for
meanwhile. Marks that concern the whole process are of all GPUs that any thread launched for. What then has no GPU is of
all. An operator that launched nothing is of the GPU of its thread's next launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Bools, Ints, Times, distinct
from bubblescope.model.trace import Annotations, Kernels, Launches, Ops

__all__ = ["Hosted", "shared_out"]

_OF_ALL_THREADS = re.compile(r"ProfilerStep#|Optimizer\.|iter_\d")
"""Marks of torch's profiler and optimizers, and of steps, which one thread sets for all."""

Table = npt.NDArray[np.bool_]
"""Rows by devices."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """The host events of one process."""

    ops: Ops
    annotations: Annotations
    launches: Launches
    frames: Annotations


def shared_out(
    hosted: Hosted, names: Sequence[str], kernels: Kernels, device: Ints, devices: Sequence[int]
) -> list[Hosted]:
    """What each of the devices has of the host events; `device` is that of each kernel of the process."""
    asked = _Asked(hosted.launches, kernels, device, devices)
    notes, calls = hosted.annotations, hosted.frames
    mute = ~np.isin(hosted.launches.thread, notes.thread)
    of_all = np.array([_OF_ALL_THREADS.match(name) is not None for name in names], np.bool_)
    marks = of_all[notes.name][:, None] if len(notes) else np.zeros((0, 1), np.bool_)
    ops = asked.inside(hosted.ops)
    tables = (
        np.where(ops.any(axis=1, keepdims=True), ops, asked.next_of(hosted.ops)),
        _or_all(np.where(marks, asked.meanwhile(notes), asked.of_ranges(notes, mute))),
        asked.next_of(hosted.launches),
        _or_all(asked.of_ranges(calls, mute)),
    )
    ops, ranges, launches, frames = tables
    return [
        Hosted(
            hosted.ops.take(ops[:, at]),
            notes.take(ranges[:, at]),
            hosted.launches.take(launches[:, at]),
            calls.take(frames[:, at]),
        )
        for at in range(len(devices))
    ]


class _Asked:
    """The launches of a process by the device of what they started."""

    def __init__(self, launches: Launches, kernels: Kernels, device: Ints, devices: Sequence[int]) -> None:
        self.launches, self.count = launches, len(devices)
        self.place, self.kernel = _started(launches, kernels, device, devices)
        self.moments = distinct(launches.start)
        rows = np.flatnonzero(self.place >= 0)
        self.rows = rows[np.argsort(launches.start[rows], kind="stable")]
        threads = int(max((launches.thread.max(initial=-1), 0))) + 1
        self.home = np.zeros((threads, self.count), np.bool_)
        for some in (rows[self.kernel[rows]], rows):  # copies tell where no kernel does
            missing = ~np.any(self.home, axis=1)[launches.thread[some]]
            self.home[launches.thread[some][missing], self.place[some][missing]] = True

    def inside(self, block: Ops | Annotations) -> Table:
        """The devices that the own thread of each row launched for inside it: kernels, or else copies."""
        kernels, all_of = (
            self._within(block, rows, own=True) for rows in (self.rows[self.kernel[self.rows]], self.rows)
        )
        return np.where(kernels.any(axis=1, keepdims=True), kernels, all_of)

    def of_ranges(self, block: Annotations, mute: Bools) -> Table:
        """The devices of ranges, as the first lines say; `mute` are launches of threads without ranges."""
        own, home = self.inside(block), self.at_home(block)
        others = self._within(block, self.rows[mute[self.rows]], own=False)
        away = np.where((home.sum(axis=1, keepdims=True) != 1) & others.any(axis=1, keepdims=True), others, home)
        return np.where(own.any(axis=1, keepdims=True), own, away)

    def meanwhile(self, block: Annotations) -> Table:
        """The devices that any thread launched for inside each row."""
        return self._within(block, self.rows, own=False)

    def at_home(self, block: Annotations) -> Table:
        """The devices that the thread of each row ever launches for."""
        known = block.thread < len(self.home)
        return self.home[np.where(known, block.thread, 0)] & known[:, None]

    def next_of(self, block: Ops | Launches) -> Table:
        """The device of the next launch of the thread of each row, else of the last before; all without any."""
        rows = self.rows[np.argsort(self.launches.thread[self.rows], kind="stable")]
        found = np.ones((len(block), self.count), np.bool_)
        if not len(rows):
            return found
        thread = self.launches.thread[rows]
        key, wanted = self._key(thread, self.launches.start[rows]), self._key(block.thread, block.start)
        at = np.searchsorted(key, wanted)
        later, sooner = np.minimum(at, len(rows) - 1), np.maximum(at - 1, 0)
        row = np.where(thread[later] == block.thread, later, sooner)
        told = thread[row] == block.thread
        found[told] = self.place[rows[row[told]]][:, None] == np.arange(self.count)
        return found

    def _within(self, block: Ops | Annotations, rows: Ints, *, own: bool) -> Table:
        """The devices for which some of the launches lie inside each row; of `own` thread or of any."""
        table = np.zeros((len(block), self.count), np.bool_)
        thread = self.launches.thread if own else np.zeros(len(self.launches), np.int64)
        mine = block.thread if own else np.zeros(len(block), np.int64)
        first, last = self._key(mine, block.start), self._key(mine, block.end, "right")
        for number in range(self.count):
            ours = rows[self.place[rows] == number]
            keys = np.sort(self._key(thread[ours], self.launches.start[ours]))
            table[:, number] = np.searchsorted(keys, last) > np.searchsorted(keys, first)
        return table

    def _key(self, thread: Ints, moment: Times, side: Literal["left", "right"] = "left") -> Times:
        """One number for thread and moment, in the order of both; to the `right` it lies behind the moment."""
        return thread.astype(np.int64) * (len(self.moments) + 1) + np.searchsorted(self.moments, moment, side)


def _started(launches: Launches, kernels: Kernels, device: Ints, devices: Sequence[int]) -> tuple[Ints, Bools]:
    """For each launch the place of its device among the devices, -1 where it started nothing; and if that was a kernel.

    A graph that runs on several counts for the first that ran.
    """
    place = np.full(len(kernels), -1)
    for number, one in enumerate(devices):
        place[device == one] = number
    rows = np.flatnonzero((kernels.correlation >= 0) & (place >= 0))
    rows = rows[np.lexsort((kernels.start[rows], kernels.correlation[rows]))]
    if not len(rows):
        return np.full(len(launches), -1), np.zeros(len(launches), np.bool_)
    numbers = kernels.correlation[rows]
    at = np.minimum(np.searchsorted(numbers, launches.correlation), len(rows) - 1)
    met = numbers[at] == launches.correlation
    return np.where(met, place[rows[at]], -1), met & (kernels.kind[rows[at]] == Kernels.KERNEL)


def _or_all(table: Table) -> Table:
    """The same, rows without a device being of all."""
    return table | ~table.any(axis=1, keepdims=True)
