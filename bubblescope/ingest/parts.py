"""The ranks of a Chrome trace: its events by the process that asked for them and the device on which they ran."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.blocks import natural
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.launchers import UNTOLD, AmbiguousError, Calls, Gpus, launchers, named
from bubblescope.ingest.namesakes import at_once, namesakes
from bubblescope.ingest.owners import FEW, MOST, Owner, check_count, owners, too_many
from bubblescope.ingest.shares import Hosted, shared_out
from bubblescope.ingest.tables import whole
from bubblescope.model.columns import Bools, Ints
from bubblescope.model.trace import Annotations, Kernels, Ops

__all__ = ["Part", "Parts", "parted"]

_SEPARATE = "Give the trace of each rank as a file of its own."
_RANK = re.compile(r"(?i)(?:^|[^a-z])rank[\s_:=-]*(\d{1,6})(?!\d)")
_SAME_NUMBERS = "processes of the same id launched them, with the same numbers"
_COMMUNICATES = re.compile(r"c10d::|_c10d_functional::|record_param_comms$")
_STEP = re.compile(r"ProfilerStep#")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The events of one rank.

    Attributes:
        hosted: what its process did on the host.
        kernels: what ran on its device.
        process: the process; None where the file does not tell.
        device: the number of the device, as the file has it; None without one.
        alone: whether its process drives no other device.
        rank: as names in the file say; None where they say none.
    """

    hosted: Hosted
    kernels: Kernels
    process: str | None = None
    device: str | None = None
    alone: bool = True
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The ranks of a file, of how many processes they are, and how many of its events are of none of them."""

    ranks: Sequence[Part]
    processes: int = 1
    strays: int = 0


def parted(path: Path, hosted: Hosted, kernels: Kernels, collected: Collector) -> Parts:
    """The ranks of a file.

    A file of one rank keeps the host events of all processes.

    Raises:
        InputError: the file holds several ranks, and nothing tells which events are whose; or more than anyone's.
    """
    file = _File(path, hosted, kernels, collected)
    if not np.any((kernels.kind == Kernels.KERNEL) & (kernels.end > kernels.start)):
        return file.by_process()
    return file.whole() if file.of_one() else file.by_device()


_LARGEST_DEVICE = 1 << 12
"""No host has as many; a number from here on is no device but damage."""

Lane = tuple[str, str, str]
"""The process that an event names, its device and its stream."""


def _on_devices(lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes, those of a device that cannot be on the other one of their process, or on that of its number."""
    known: dict[str, set[str]] = {}
    for pid, device, _ in lanes:
        if _is_device(device):
            known.setdefault(pid, set()).add(device)
    sole = {pid: next(iter(devices)) for pid, devices in known.items() if len(devices) == 1}
    return [(pid, device if _is_device(device) else sole.get(pid, pid), stream) for pid, device, stream in lanes]


def _is_device(text: str) -> bool:
    """Whether a text may name a device: ids of processes stand for them where none is told, and are larger."""
    return re.fullmatch(r"-?\d+", text) is None or whole(text, _LARGEST_DEVICE) is not None


_UNASKED = 0.1
"""Share of the kernels of the busiest rank below which those that no process of the file asked for are strays."""


def _asked_for(found: Sequence[Owner], process: Ints, device: Ints) -> Sequence[Owner]:
    """The ranks without stray kernels, where the processes of others are known."""
    count = {owner: int(owner.ran(process, device).sum()) for owner in found}
    if all(owner.process == UNTOLD for owner in found):
        return found
    return [o for o in found if o.process != UNTOLD or count[o] >= _UNASKED * max(count.values())]


class _File:
    """All events of a file, and the processes and GPUs that they name."""

    def __init__(self, path: Path, hosted: Hosted, kernels: Kernels, collected: Collector) -> None:
        self.path, self.hosted, self.kernels = path, hosted, kernels
        self.texts, self.said = list(collected.names), collected.process_names
        threads, lanes = list(collected.threads.texts), _on_devices(list(collected.lanes.texts))
        self.pids = sorted({pid for pid, _ in threads}, key=lambda pid: natural((pid,)))
        number = {pid: at for at, pid in enumerate(self.pids)}
        self.process_of = np.array([number[pid] for pid, _ in threads], np.int64)  # by thread
        self.launcher = self.process_of[hosted.launches.thread]
        self.gpus = sorted({lane[:2] for lane in lanes}, key=natural)
        self.lanes = lanes
        place = {gpu: at for at, gpu in enumerate(self.gpus)}
        self.gpu = np.array([place[lane[:2]] for lane in lanes], np.int64)[kernels.lane]

    def of_one(self) -> bool:
        """Whether all that ran, ran on one GPU for one process."""
        return len(np.unique(self.gpu)) == 1 and len(np.unique(self.launcher)) < 2

    def whole(self) -> Parts:
        """The file as one rank, of the process that launched its kernels, or the only one."""
        if namesakes(self.hosted.launches, self.kernels):
            raise self._refused(_SAME_NUMBERS)
        self._check_steps(dict.fromkeys(range(len(self.pids)), 1))
        known = np.unique(self.launcher).tolist() or range(len(self.pids))
        process = self.pids[known[0]] if len(known) == 1 else None
        return Parts([Part(hosted=self.hosted, kernels=self.kernels, process=process)])

    def by_device(self) -> Parts:
        """The ranks of a file with kernels."""
        process = self._launchers()
        devices = sorted({device for _, device in self.gpus}, key=lambda device: natural((device,)))
        number = {device: at for at, device in enumerate(devices)}
        place = np.array([number[device] for _, device in self.gpus], np.int64)[self.gpu]
        device = np.where(process == UNTOLD, len(devices) + self.gpu, place)  # what nobody asked for is by itself
        ran = self.kernels.kind == Kernels.KERNEL
        found = _asked_for(owners(process[ran], device[ran]), process[ran], device[ran])
        check_count(self.path, [owner for owner in found if owner.process != UNTOLD], _SEPARATE)
        if len(found) > MOST:
            raise too_many(self.path, len(found), _SEPARATE)
        ours = [(owner, owner.ran(process, device)) for owner in self._in_order(found, process, device)]
        if len(ours) == 1:
            kept = replace(self.whole().ranks[0], kernels=self.kernels.take(ours[0][1]))
            return Parts([kept], strays=int((~ours[0][1]).sum()))
        self._check_namesakes(found, process)
        return self._told_apart(ours, device)

    def _check_namesakes(self, found: Sequence[Owner], process: Ints) -> None:
        """Raise InputError where one id stands for more processes than tell."""
        gpus = Counter(owner.process for owner in found if owner.process != UNTOLD)
        for number in gpus:
            launches = self.hosted.launches.take(self.launcher == number)
            if namesakes(launches, self.kernels.take(process == number)):
                raise self._refused(_SAME_NUMBERS)
        self._check_steps(gpus)

    def _check_steps(self, most: Mapping[int, int]) -> None:
        """Raise InputError where a process is in more steps of one name at a time than it has ranks, or than one."""
        notes = self.hosted.annotations
        marks = notes.take(self._named(_STEP)[notes.name]) if len(notes) else notes
        depths = at_once(marks, self.process_of[marks.thread]).tolist()
        if any(depth > most.get(number, 1) for number, depth in enumerate(depths)):
            raise self._refused("a process is in one step several times at once, as where several have the same id")

    def _in_order(self, found: Sequence[Owner], process: Ints, device: Ints) -> Sequence[Owner]:
        """The ranks by GPU where each has its own; where several nodes count theirs alike, by process, then by GPU."""
        gpus = {owner: np.unique(self.gpu[owner.ran(process, device)]).tolist() for owner in found}
        held = [gpu for owner in found if owner.process != UNTOLD for gpu in gpus[owner]]
        alike = len(set(held)) < len(held)
        turn = {o: (o.process if o.process != UNTOLD else len(self.pids)) if alike else 0 for o in found}
        return sorted(found, key=lambda owner: (turn[owner], gpus[owner][0], owner.process))

    def by_process(self) -> Parts:
        """The ranks of a file without kernels: the processes that mark steps, or that communicate if none does."""
        ops, notes = self.hosted.ops, self.hosted.annotations
        count = np.bincount(self.process_of[ops.thread], minlength=len(self.pids))
        signs = (self._with(notes, _STEP), self._with(ops, _COMMUNICATES))
        ranks = next((sign for sign in signs if sign.any()), np.zeros(len(self.pids), np.bool_)) & (count > 0)
        found = np.flatnonzero(ranks & (count >= FEW * count[ranks].max(initial=0))).tolist()
        if len(found) < 2:
            return self.whole()
        if len(found) > MOST:
            raise too_many(self.path, len(found), _SEPARATE)
        self._check_steps(dict.fromkeys(found, 1))
        return self._parts([(Owner(at, UNTOLD), self._of_process(at), self.kernels.take(slice(0))) for at in found])

    def _with(self, rows: Ops | Annotations, pattern: re.Pattern[str]) -> Bools:
        """Which processes have rows of such a name."""
        named = self.process_of[rows.thread[self._named(pattern)[rows.name]]] if len(rows) else rows.thread
        return np.bincount(named, minlength=len(self.pids)) > 0

    def _named(self, pattern: re.Pattern[str]) -> Bools:
        """Which texts begin so."""
        return np.array([pattern.match(text) is not None for text in self.texts], np.bool_)

    def _launchers(self) -> Ints:
        """The process that launched each kernel, as a number of `pids`, or UNTOLD."""
        count = np.bincount(self.gpu, minlength=len(self.gpus))
        looked = np.flatnonzero(count >= FEW * count.max()).tolist()
        if len(looked) > MOST:
            raise too_many(self.path, len(looked), _SEPARATE)
        order, edges = np.argsort(self.gpu, kind="stable"), np.append(0, np.cumsum(count))
        rows = [order[edges[at] : edges[at + 1]] for at in looked]
        pids = [self.gpus[at][0] for at in looked]
        gpus = Gpus(rows, pids, list(map(self._rank, pids)))
        calls = Calls(self.hosted.launches, self.launcher, self.pids, list(map(self._rank, self.pids)))
        try:
            process = launchers(self.kernels, gpus, calls)
        except AmbiguousError as error:
            raise self._refused(str(error)) from error
        hosts = np.unique(self.process_of[np.concatenate([self.hosted.ops.thread, self.hosted.annotations.thread])])
        if len(looked) > 1 and len(hosts) and np.all(process == UNTOLD):
            owner = named(gpus, calls, hosts.tolist())
            if len(owner) < len(looked):
                raise self._refused("it has no launches of the kernels")
            for at, mine in enumerate(rows):
                process[mine] = owner[at]
        return process

    def _refused(self, why: str) -> InputError:
        message = f"{self.path}: the file holds several ranks, and nothing tells which events are whose: {why}"
        return InputError(message, hint=_SEPARATE)

    def _told_apart(self, ours: Sequence[tuple[Owner, Bools]], device: Ints) -> Parts:
        """The ranks, each with what its process did on the host for its device."""
        shares: dict[int, dict[int, Hosted]] = {}
        for number in {owner.process for owner, _ in ours}:
            rows = np.flatnonzero(np.any([held for owner, held in ours if owner.process == number], axis=0))
            devices = [owner.device for owner, _ in ours if owner.process == number]
            hosted = self._of_process(number)
            several = len(devices) > 1 and number != UNTOLD
            mine = (
                shared_out(hosted, self.texts, self.kernels.take(rows), device[rows], devices)
                if several
                else [hosted] * len(devices)
            )
            shares[number] = dict(zip(devices, mine, strict=True))
        return self._parts(
            [(owner, shares[owner.process][owner.device], self.kernels.take(held)) for owner, held in ours]
        )

    def _of_process(self, number: int) -> Hosted:
        """The host events of a process; of none of them if it is UNTOLD."""
        blocks = (self.hosted.ops, self.hosted.annotations, self.hosted.launches, self.hosted.frames)
        return Hosted(*(block.take(self.process_of[block.thread] == number) for block in blocks))  # type: ignore[arg-type]

    def _parts(self, found: Sequence[tuple[Owner, Hosted, Kernels]]) -> Parts:
        """The ranks, with who each is as far as the file tells, and how much is of none of them."""
        processes = [owner.process for owner, *_ in found]
        parts = [
            self._part(owner, hosted, kernels, alone=processes.count(owner.process) == 1)
            for owner, hosted, kernels in found
        ]
        said = [part.rank for part in parts]
        parts = [part if said.count(part.rank) == 1 else replace(part, rank=None) for part in parts]
        ours = np.isin(self.process_of, processes)
        blocks = (self.hosted.ops, self.hosted.annotations, self.hosted.launches, self.hosted.frames)
        strays = sum(int(np.sum(~ours[block.thread])) for block in blocks)
        ran = sum(len(kernels) for _, _, kernels in found)
        return Parts(parts, len(set(processes) - {UNTOLD}), strays + len(self.kernels) - ran)

    def _part(self, owner: Owner, hosted: Hosted, kernels: Kernels, *, alone: bool) -> Part:
        """A rank; names of a process say that of its only one."""
        host = None if owner.process == UNTOLD else self.pids[owner.process]
        pid, device = self.lanes[int(kernels.lane[0])][:2] if len(kernels) else (None, None)
        said = [self._rank(text) for text in (pid, host if alone else None) if text is not None]
        return Part(
            hosted=hosted,
            kernels=kernels,
            process=host,
            device=device,
            alone=alone,
            rank=next((rank for rank in said if rank is not None), None),
        )

    def _rank(self, pid: str) -> int | None:
        """The rank that the id or the names of a process say."""
        texts = (pid, *self.said.get(pid, ()))
        ranks = {int(match[1]) for text in texts if (match := _RANK.search(text))}
        return ranks.pop() if len(ranks) == 1 else None
