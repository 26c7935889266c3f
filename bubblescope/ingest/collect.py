"""Events to columns: what is kept of a trace, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from bubblescope.ingest.categories import Kind, Kinds
from bubblescope.ingest.events import Arguments, Event, Window
from bubblescope.ingest.ranges import Halves
from bubblescope.ingest.tables import LONGEST, Comms, Names, Pairs, Rows, Triples
from bubblescope.ingest.times import INVALID, from_decimals, from_numbers
from bubblescope.model.columns import Times
from bubblescope.model.frames import find
from bubblescope.model.layer_names import MODULE, read_layer
from bubblescope.model.trace import Annotations, Kernels, Launches, Ops

__all__ = ["Collector"]

Micros = Callable[[Sequence[Any]], Times]
Columns = dict[str, Any]

_NO_ARGUMENTS = Arguments()
_MOST_FRAMES = 100_000  # names remembered: a program has fewer functions, and a damaged file does not fill the memory
_WHOLE = (Kind.DROP, Kind.FRAME)  # of these no halves are kept
_OF_PROCESSES = frozenset({"process_name", "process_labels"})
_KINETO = (Kind.OP, Kind.ANNOTATION, Kind.LAUNCH, Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


class _Wanted(dict[str, bool]):
    """Which frames are of known functions or of layers; looks at each name once."""

    def __missing__(self, name: str) -> bool:
        wanted = find(name) is not None or (name.startswith(MODULE) and read_layer(name) is not None)
        if len(self) < _MOST_FRAMES:
            self[name] = wanted
        return wanted


class Collector:
    """Takes the windows of one file and keeps of them what the model has a place for.

    Times are still as the file gives them, in nanoseconds from its own origin.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.threads = Pairs()
        self.lanes = Triples()  # the process that the event names, the device, the stream
        self.comms = Comms()
        self.thread_names: dict[tuple[str, str], dict[str, None]] = {}
        self.process_names: dict[str, dict[str, None]] = {}
        self.ops = Rows(Ops)
        self.annotations = Rows(Annotations)
        self.others = Rows(Annotations)
        self.frames = Rows(Annotations)
        self.launches = Rows(Launches)
        self.kernels = Rows(Kernels)
        self.halves = Halves()
        self.events = 0
        self.unplaced = 0  # events without a usable time
        self.kineto = False
        self._kinds = Kinds()
        self._wanted = _Wanted()

    def add(self, window: Window) -> None:
        """Keep the events of a window; raises `InexactError`, having kept none, if it must be decoded exactly."""
        blocks = self._whole(window.whole)
        halves, names = self._rest(window.rest)
        micros: Micros = from_decimals if window.exact else from_numbers
        start, end = _times(list(chain.from_iterable(blocks)), micros)
        half_times = micros([event.ts for event in halves])

        self.events += window.count + len(window.dropped)
        self.kineto = self.kineto or any(blocks[:4]) or any(self._kinds[half.cat] in _KINETO for half in halves)
        adders = (
            self._add_ops,
            self._add_annotations,
            self._add_launches,
            self._add_kernels,
            self._add_others,
            self._add_frames,
        )
        at = 0
        for add, block in zip(adders, blocks, strict=True):
            rows = slice(at, at := at + len(block))
            self._add(add, block, start[rows], end[rows])
        self._add_halves(halves, half_times)
        for event in names:
            self._name(event)

    def absorb(self, other: Collector) -> None:
        """Take over what was collected of the text that follows."""
        places = {
            "name": self.names.absorb(other.names),
            "thread": self.threads.texts.absorb(other.threads.texts),
            "lane": self.lanes.texts.absorb(other.lanes.texts),
            "comm": self.comms.table.absorb(other.comms.table),
        }
        for block in ("ops", "annotations", "others", "frames", "launches", "kernels", "halves"):
            getattr(self, block).absorb(getattr(other, block), places)
        for thread, names in other.thread_names.items():
            self.thread_names.setdefault(thread, {}).update(names)
        for process, names in other.process_names.items():
            self.process_names.setdefault(process, {}).update(names)
        self.events += other.events
        self.unplaced += other.unplaced
        self.kineto = self.kineto or other.kineto

    def _whole(self, events: list[Event]) -> list[list[Event]]:
        """The events that tell a start and a length, by block, each in the order of the file."""
        bins: list[list[Event]] = [[] for _ in Kind]
        bins[Kind.MEMCPY] = bins[Kind.MEMSET] = bins[Kind.KERNEL]
        kinds, of = self._kinds, dict[str, list[Event]]()  # a dict of its own is looked up at half the cost of `kinds`
        for event in events:
            category = event.cat
            if category not in of:
                of[category] = bins[kinds[category]]
            of[category].append(event)
        wanted = self._wanted  # there may be more frames than of everything else
        bins[Kind.FRAME] = [event for event in bins[Kind.FRAME] if wanted[event.name]]
        return [bins[kind] for kind in (Kind.OP, Kind.ANNOTATION, Kind.LAUNCH, Kind.KERNEL, Kind.OTHER, Kind.FRAME)]

    def _rest(self, rest: list[Any]) -> tuple[list[Any], list[Any]]:
        """Halves of events, in the order of the file, which decides between equal times; and names of threads."""
        kinds = self._kinds
        halves = [event for event in rest if event.ph != "M" and kinds[event.cat] not in _WHOLE]
        return halves, [event for event in rest if event.ph == "M" and kinds[event.cat] == Kind.OTHER]

    def _add(self, add: Callable[[list[Event], Columns], None], block: list[Event], start: Times, end: Times) -> None:
        valid = start != INVALID
        if not valid.all():
            self.unplaced += len(block) - int(valid.sum())
            block = [event for event, good in zip(block, valid.tolist(), strict=True) if good]
            start, end = start[valid], end[valid]
        if block:
            add(block, {"start": start, "end": end})

    def _add_ops(self, block: list[Event], columns: Columns) -> None:
        args = [event.args or _NO_ARGUMENTS for event in block]
        self.ops.add(
            **self._named(block, columns),
            thread=self._threads(block),
            sequence=np.fromiter([arg.sequence for arg in args], np.int64, len(args)),
            forward_thread=np.fromiter([arg.forward_thread for arg in args], np.int32, len(args)),
            comm=self.comms.numbers(args),
        )

    def _add_annotations(self, block: list[Event], columns: Columns) -> None:
        self.annotations.add(**self._named(block, columns), thread=self._threads(block))

    def _add_others(self, block: list[Event], columns: Columns) -> None:
        self.others.add(**self._named(block, columns), thread=self._threads(block))

    def _add_frames(self, block: list[Event], columns: Columns) -> None:
        self.frames.add(**self._named(block, columns), thread=self._threads(block))

    def _add_launches(self, block: list[Event], columns: Columns) -> None:
        self.launches.add(
            **self._named(block, columns),
            thread=self._threads(block),
            correlation=_correlations([event.args or _NO_ARGUMENTS for event in block]),
        )

    def _add_kernels(self, block: list[Event], columns: Columns) -> None:
        args = [event.args or _NO_ARGUMENTS for event in block]
        kinds = self._kinds
        self.kernels.add(
            **self._named(block, columns),
            lane=self._lanes(block, args),
            correlation=_correlations(args),
            kind=np.fromiter([kinds[event.cat] for event in block], np.int8, len(block)) - np.int8(Kind.KERNEL),
            comm=self.comms.numbers(args),
        )

    def _add_halves(self, block: list[Any], times: Times) -> None:
        if not block:
            return
        args = [event.args or _NO_ARGUMENTS for event in block]
        kinds = self._kinds
        valid = times != INVALID
        self.unplaced += int((~valid).sum())
        columns = {
            "time": times,
            "closes": np.array([event.ph == "E" for event in block]),
            "kind": np.array([kinds[event.cat] for event in block], dtype=np.int8),
            "name": self.names.numbers((event.name for event in block), len(block)),
            "thread": self._threads(block),
            "lane": self._lanes(block, args),
            "sequence": np.fromiter([arg.sequence for arg in args], np.int64, len(args)),
            "forward_thread": np.fromiter([arg.forward_thread for arg in args], np.int32, len(args)),
            "correlation": _correlations(args),
            "comm": self.comms.numbers(args),
        }
        self.halves.add({name: column[valid] for name, column in columns.items()})

    def _named(self, block: list[Event], columns: Columns) -> Columns:
        return columns | {"name": self.names.numbers([event.name for event in block], len(block))}

    def _threads(self, block: list[Event]) -> Any:
        return self.threads.numbers([event.pid for event in block], [event.tid for event in block])

    def _lanes(self, block: list[Event], args: list[Arguments]) -> Any:
        pids = [event.pid for event in block]
        devices = [pid if arg.device is None else arg.device for pid, arg in zip(pids, args, strict=True)]
        streams = [event.tid if arg.stream is None else arg.stream for event, arg in zip(block, args, strict=True)]
        return self.lanes.numbers(pids, devices, streams)

    def _name(self, event: Event) -> None:
        """Note what a row of metadata calls a thread or a process."""
        args = event.args or _NO_ARGUMENTS
        text = args.labels if event.name == "process_labels" else args.name
        if not isinstance(text, str):
            return
        pid, text = str(event.pid)[:LONGEST], text[:LONGEST].strip()
        if event.name == "thread_name":
            self.thread_names.setdefault((pid, str(event.tid)[:LONGEST]), {})[text] = None
        elif event.name in _OF_PROCESSES:
            self.process_names.setdefault(pid, {})[text] = None


def _times(block: list[Event], micros: Micros) -> tuple[Times, Times]:
    """Starts and ends; a start is INVALID where the event cannot be placed."""
    start = micros([event.ts for event in block])
    length = micros([event.dur for event in block])
    bad = (start == INVALID) | (length == INVALID)
    end = np.where(bad, INVALID, start + np.where(bad, 0, length))
    return np.where(bad, INVALID, start), end


def _correlations(args: list[Arguments]) -> Times:
    return np.fromiter([arg.correlation for arg in args], np.int64, len(args))
