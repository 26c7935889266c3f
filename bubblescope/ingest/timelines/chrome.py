"""Chrome lists of slices that somebody's own code named: their names and arguments say what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from bubblescope.ingest.mending import mend
from bubblescope.ingest.pause import collector_paused
from bubblescope.ingest.ranges import Halves
from bubblescope.ingest.stream import WINDOW, Buffer, Place, Progress, Stream
from bubblescope.ingest.tables import Pairs, Table
from bubblescope.ingest.timelines.findings import Ignored
from bubblescope.ingest.timelines.rows import PLACES, UNKNOWN, Rows, told_for_all
from bubblescope.ingest.timelines.words import LIMITS, Meaning, Role, field_of, meaning, places
from bubblescope.ingest.times import INVALID, InexactError, from_decimals, from_numbers
from bubblescope.ingest.walk import Events, walk
from bubblescope.ingest.windows import windows
from bubblescope.model.columns import Ints, Times
from bubblescope.model.trace import Finding

__all__ = ["Slices", "read"]

_ARGUMENTS = ("step", "microbatch", "chunk", "slice", "peer", *PLACES)
_NAMES = ("thread_name", "process_name")
_INSTANT = Decimal(0)  # exact among decimals, and a number among doubles
Columns = dict[str, np.ndarray[Any, Any]]


class _Event(Struct, gc=False):
    ph: str = ""
    name: str = ""
    pid: int | float | str | None = ""
    tid: int | float | str | None = ""
    ts: int | float = float("nan")
    dur: int | float = float("nan")
    args: Any = None


class _Exact(_Event, gc=False):
    ts: Decimal = Decimal("NaN")  # type: ignore[assignment]
    dur: Decimal = Decimal("NaN")  # type: ignore[assignment]


_FAST = msgspec.json.Decoder(list[_Event])
_EXACT = msgspec.json.Decoder(list[_Exact])
_EACH = msgspec.json.Decoder(list[Raw])
_ONE = msgspec.json.Decoder(_Exact)


class Slices:
    """What was read of a file: the rows, process and thread of each lane, how many events there were, findings."""

    def __init__(self, rows: Rows, lanes: Sequence[tuple[str, str]], events: int, findings: list[Finding]) -> None:
        self.rows = rows
        self.lanes = lanes
        self.events = events
        self.findings = findings


def read(path: Path, *, progress: Progress | None = None, window: int = WINDOW) -> Slices:
    """The slices of a list or of `traceEvents`; raises InputError where the file is broken."""
    collected = _Collector(path)
    with Stream(path, progress) as stream, collector_paused():
        buffer = Buffer(stream, window)
        for part in walk(buffer, ()):
            if isinstance(part, Events):
                _events(buffer, collected)
        return collected.finish(stream.repairs.findings(path))


def _events(buffer: Buffer, collected: _Collector) -> None:
    def decode(text: memoryview, _place: Place) -> bool:
        try:
            collected.add(_FAST.decode(text), from_numbers)
        except (msgspec.DecodeError, InexactError):
            collected.add(_each(text, collected), from_decimals)
        return True

    for _ in windows(buffer, decode):
        pass


def _each(text: memoryview, collected: _Collector) -> list[Any]:
    """The events of a list with exact times; those that are no events are counted and left out."""
    with suppress(msgspec.DecodeError):
        return _EXACT.decode(text)
    events = [_one(raw) for raw in [bytes(each) for each in _EACH.decode(text)]]  # none of them holds on to the text
    usable = [event for event in events if event is not None]
    collected.unusable += len(events) - len(usable)
    return usable


def _one(raw: bytes) -> _Exact | None:
    """An event, mended where it must be; None if it is none."""
    with suppress(msgspec.DecodeError):
        return _ONE.decode(raw)
    found = mend(raw)
    with suppress(msgspec.DecodeError):
        return None if found is None else _ONE.decode(found.text)
    return None


class _Collector:
    """Takes the events of one file, window by window."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unusable = 0
        self.events = 0
        self._lanes = Pairs()
        self._names: Table[str] = Table()
        self._halves = Halves(("meaning", *_ARGUMENTS))
        self._meanings: Table[Meaning] = Table()
        self._parts: list[Columns] = []
        self._told: dict[str, dict[tuple[str, str], dict[str, int]]] = {name: {} for name in _NAMES}
        self._ignored = Ignored()

    def add(self, events: list[Any], micros: Callable[[Sequence[Any]], Times]) -> None:
        """Keep the slices among some events; raises InexactError, having kept none."""
        known = [(event, meaning(event.name)) for event in events if event.ph in ("X", "B", "E", "i", "I", "R")]
        whole = [(event, said) for event, said in known if event.ph == "X" or said.role == Role.STEP]
        halves = [(event, said) for event, said in known if event.ph in ("B", "E") and said.role != Role.STEP]
        ours = [(event, said) for event, said in whole if said.role != Role.NONE]
        start = micros([event.ts for event, _ in ours])
        length = micros([event.dur if event.ph == "X" else _INSTANT for event, _ in ours])
        times = micros([event.ts for event, _ in halves])
        self.events += len(events)
        self._ignored.add(event.name for event, said in whole if said.role == Role.NONE and event.ph == "X")
        good = (start != INVALID) & (length != INVALID) & (length >= 0)
        self.unusable += int(np.count_nonzero(~good))
        columns = {**self._columns(ours), "start": start, "end": start + np.where(good, length, 0)}
        self._parts.append({name: column[good] for name, column in columns.items()})
        if halves:
            self._add_halves(halves, times)
        for event in events:
            if event.ph == "M" and event.name in _NAMES and isinstance(event.args, dict):
                self._place(event)

    def _add_halves(self, halves: list[tuple[Any, Meaning]], times: Times) -> None:
        columns = self._columns(halves)
        columns |= {
            "time": times,
            "closes": np.array([event.ph == "E" for event, _ in halves]),
            "name": self._names.numbers((event.name for event, _ in halves), len(halves)),
        }
        good = times != INVALID
        self.unusable += int(np.count_nonzero(~good))
        self._halves.add({name: column[good] for name, column in columns.items()})

    def _columns(self, events: list[tuple[Any, Meaning]]) -> Columns:
        args: dict[str, list[int]] = {name: [] for name in _ARGUMENTS}
        for event, _ in events:
            told = _arguments(event.args) if isinstance(event.args, dict) else {}
            for name, column in args.items():
                column.append(told.get(name, UNKNOWN))
        return {
            **{name: np.array(column, np.int64) for name, column in args.items()},
            "thread": self._lanes.numbers([e.pid for e, _ in events], [e.tid for e, _ in events]),
            "meaning": self._meanings.numbers((said for _, said in events), len(events)),
        }

    def _place(self, event: Any) -> None:
        """Note where a process or thread says that it stands."""
        key = (str(event.pid), str(event.tid) if event.name == "thread_name" else "")
        said = places(str(event.args.get("name", "")))
        if said:
            self._told[event.name].setdefault(key, {}).update(said)

    def finish(self, damage: Sequence[Finding]) -> Slices:
        """All that was kept, with what is to be said of the file's damage."""
        ranges = self._halves.pair(self._names[""])
        meanings = list(self._meanings)
        parts = list(self._parts)
        if ranges is not None:
            ours = np.array([said.role != Role.NONE for said in meanings])[ranges.columns["meaning"]]
            parts.append({name: column[ours] for name, column in ranges.columns.items()})
            self.unusable += ranges.unpaired
        names = ("start", "end", "thread", "meaning", *_ARGUMENTS)
        columns = {name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in parts)]) for name in names}
        lanes = list(self._lanes.texts)
        rows = self._placed(_rows(columns, meanings), lanes)
        return Slices(rows, lanes, self.events, [*damage, *self._findings()])

    def _placed(self, rows: Rows, lanes: Sequence[tuple[str, str]]) -> Rows:
        """The rows, each with what its own lane or its process tells of all."""
        processes: Table[str] = Table()
        process = processes.numbers((pid for pid, _ in lanes), len(lanes))
        rows = rows.replace(process=process[rows.lane])
        threads = [self._told["thread_name"].get(lane, {}) for lane in lanes]
        owners = [self._told["process_name"].get((pid, ""), {}) for pid, _ in lanes]
        for name in PLACES:
            known = [mine.get(name, own.get(name, UNKNOWN)) for mine, own in zip(threads, owners, strict=True)]
            told = np.array(known, np.int64)
            column = np.where(getattr(rows, name) >= 0, getattr(rows, name), told[rows.lane])
            if name != "stage":  # a lane of one stage need not be all that its process holds
                column = told_for_all(told_for_all(column, rows.lane), rows.process)
            rows = rows.replace(**{name: column})
        return rows

    def _findings(self) -> list[Finding]:
        found = self._ignored.findings(self.path)
        if self.unusable:
            message = f"{self.unusable} events have no usable time, lack their other half or are no events; left out"
            found.append(Finding("unusable-rows", "warning", message, str(self.path)))
        return found


def _arguments(args: dict[str, Any]) -> dict[str, int]:
    """The numbers among the arguments that we know, by field."""
    told: dict[str, int] = {}
    for key, given in args.items():
        field = field_of(key)
        number = _number(given, LIMITS[field]) if field in _ARGUMENTS else UNKNOWN
        if field is not None and number != UNKNOWN:
            told.setdefault(field, number)
    return told


def _number(given: Any, limit: int) -> int:
    if isinstance(given, str) and given.isdecimal() and len(given) < 20:
        given = int(given)
    if isinstance(given, float) and given.is_integer():  # as tables with gaps make of whole numbers
        given = int(given)
    return given if type(given) is int and 0 <= given <= limit else UNKNOWN


def _rows(columns: Columns, meanings: Sequence[Meaning]) -> Rows:
    """Rows of columns; what a name says counts where the arguments do not."""
    said = columns["meaning"]
    by_name: dict[str, Ints] = {
        name: np.array([getattr(each, name) for each in meanings] or [0])[said]
        for name in ("role", "kind", "direction", "call", "stage", "microbatch", "slice")
    }
    either = {
        name: np.where(columns[name] >= 0, columns[name], by_name[name]) for name in ("stage", "microbatch", "slice")
    }
    return Rows(
        start=columns["start"],
        end=columns["end"],
        lane=columns["thread"],
        step=columns["step"],
        chunk=columns["chunk"],
        peer=columns["peer"],
        role=by_name["role"],
        kind=by_name["kind"],
        direction=by_name["direction"],
        call=by_name["call"],
        **either,
        **{name: columns[name] for name in ("rank", "pp", "dp", "tp")},
    )
