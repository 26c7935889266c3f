"""NVTX ranges: what users, frameworks, torch's `emit_nvtx` and NCCL named on host threads."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

import numpy as np

from bubblescope.ingest.nsys.calls import calls, full_name, members
from bubblescope.ingest.nsys.database import ABSENT, Database, Rows, present
from bubblescope.ingest.nsys.owned import Owned
from bubblescope.ingest.nsys.payloads import Payload, Payloads
from bubblescope.ingest.nsys.schema import DOMAIN, NVTX, RANGES, process_of
from bubblescope.ingest.nsys.strings import Strings
from bubblescope.ingest.tables import Table as Numbers
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.names import parted
from bubblescope.model.trace import Annotations, CommArgs, Membership, Ops

__all__ = ["Ranges", "ranges"]

_NCCL = "NCCL"

# Operators of torch and of what is built on it: a name space and no blanks, unlike `FSDP::pre_forward (layer)`.
_OPERATOR = re.compile(r"\w+::(?:engine::evaluate_function: )?[\w.:~]+")


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of a file.

    Attributes:
        annotations: what somebody named.
        ops: operators of torch, as `emit_nvtx` shows them, and calls of NCCL; `comm` indexes `comms`.
        comms: the calls of NCCL.
        members: the communicators of each process.
        open: ranges without an end: the recording ended inside them.
        untold: sends and receives of NCCL that do not say their peer.
    """

    annotations: Owned[Annotations]
    ops: Owned[Ops]
    comms: tuple[CommArgs, ...] = ()
    members: dict[int, frozenset[Membership]] = field(default_factory=dict)
    open: int = 0
    untold: int = 0


class _Texts:
    """What is made of each text: the number of its plain name, autograd's number, and whether it names an operator."""

    def __init__(self, names: Numbers[str]) -> None:
        self._names = names
        self._number, self._sequence, self._operator = array("q"), array("q"), array("b")
        self._known: dict[bytes, int] = {}
        self._plain: dict[str, tuple[int, bool]] = {}  # number of a plain name, and whether it may be an operator's

    def __call__(self, raw: bytes | None) -> int:
        """The number of a text; -1 of none. Those of operators that are counted come once, and are not remembered."""
        if raw is None:
            return -1
        number = self._known.get(raw)
        if number is None:
            number = self._add(raw)
        return number

    def _add(self, raw: bytes) -> int:
        text = raw.decode("utf-8", "replace")
        name, sequence = parted(text) if b", " in raw else (text, -1)
        suffixed = len(name) < len(text)
        known = self._plain.get(name)
        if known is None:
            known = self._plain[name] = self._names[name], _OPERATOR.fullmatch(name) is not None
        number = len(self._number)
        self._number.append(known[0])
        self._sequence.append(sequence)
        self._operator.append(suffixed and (sequence >= 0 or known[1]))
        if not suffixed:
            self._known[raw] = number
        return number

    def columns(self) -> tuple[Ints, Times, Bools]:
        """Name, number of autograd, and whether it is an operator, of every text; the last row answers to -1."""
        number, sequence = np.append(self._number, self._names[""]), np.append(self._sequence, -1)
        return number.astype(np.int64), sequence.astype(np.int64), np.append(self._operator, 0).astype(bool)


def ranges(database: Database, strings: Strings, names: Numbers[str]) -> Ranges:
    """All ranges, in the order of their start; plain names are added to `names`."""
    collector = _Collector(strings, names, Payloads(database))
    kinds = ", ".join(map(str, (*RANGES, DOMAIN)))
    where = f'"eventType" IN ({kinds})' if database.has(NVTX.name, "eventType") else ""
    for rows in database.rows(NVTX, where):
        collector.add(rows)
    return collector.finish()


_COLUMNS = ("start", "end", "eventType", "globalTid", "domainId", "textId", "jsonTextId")


class _Collector:
    """Takes the rows of a file; texts that stand in the table of strings are looked up at the end, all at once."""

    def __init__(self, strings: Strings, names: Numbers[str], payloads: Payloads) -> None:
        self._strings, self._names, self._payloads = strings, names, payloads
        self._parts: dict[str, list[Times]] = {key: [] for key in (*_COLUMNS, "text", "payload")}
        self._text = _Texts(names)
        self._numbers: Numbers[Payload] = Numbers()
        self._open = 0

    def add(self, rows: Rows) -> None:
        """Keep those rows that have a beginning and an end, and those that name a domain."""
        numbers, texts = rows.numbers, rows.texts
        begun = (numbers["start"] != ABSENT) & (numbers["eventType"] != DOMAIN)
        if np.any(numbers["eventType"] != ABSENT):
            begun &= np.isin(numbers["eventType"], RANGES)
        ended = numbers["end"] != ABSENT
        self._open += int((begun & ~ended).sum())
        keep = np.flatnonzero((begun & ended) | (numbers["eventType"] == DOMAIN))
        for key in _COLUMNS:
            self._parts[key].append(numbers[key][keep])
        text, json, blob = texts["text"], texts["jsonText"], texts["binaryData"]
        chosen = keep.tolist()
        payloads = [-1 if json[row] is None is blob[row] else self._payload(json[row], blob[row]) for row in chosen]
        self._parts["text"].append(np.array([self._text(text[row]) for row in chosen], np.int64))
        self._parts["payload"].append(np.array(payloads, np.int64))

    def finish(self) -> Ranges:
        """The ranges of all rows."""
        columns = {key: np.concatenate([np.empty(0, np.int64), *self._parts.pop(key)]) for key in list(self._parts)}
        self._look_up(columns)
        names, sequence, is_operator = self._text.columns()
        columns["name"] = self._full_names(names[columns["text"]], columns)
        rows = np.flatnonzero(columns["eventType"] != DOMAIN)
        rows = rows[np.lexsort((-columns["end"][rows], columns["start"][rows]))]
        columns = {key: column[rows] for key, column in columns.items()}
        payload, payloads = columns["payload"], list(self._numbers)
        called = calls(columns["name"], payload, list(self._names), payloads)
        thread = present(columns["globalTid"])
        process = process_of(thread)
        start, end = columns["start"], columns["end"]
        unnumbered = np.zeros(len(rows), np.int64)  # threads are numbered when the ranks are told apart
        notes = Annotations(start, end, columns["name"], unnumbered)
        no_thread = np.full(len(rows), -1)
        ops = Ops(start, end, columns["name"], unnumbered, sequence[columns["text"]], no_thread, called.comm)
        operator = is_operator[columns["text"]] | called.is_call
        return Ranges(
            annotations=Owned(process, notes, thread).take(~operator),
            ops=Owned(process, ops, thread).take(operator),
            comms=called.comms,
            members=members(process, payload, payloads),
            open=self._open,
            untold=called.untold,
        )

    def _payload(self, json: bytes | None, blob: bytes | None) -> int:
        payload = self._payloads.of_json(json) if json is not None else self._payloads.of_blob(blob or b"")
        return self._numbers[payload] if payload != Payload() else -1

    def _look_up(self, columns: dict[str, Times]) -> None:
        """Fill in texts and payloads that stand in the table of strings."""
        for into, ids, number in (
            ("text", "textId", self._text),
            ("payload", "jsonTextId", lambda raw: self._payload(raw, None)),
        ):
            rows = np.flatnonzero((columns[into] < 0) & (columns[ids] != ABSENT))
            columns[into][rows] = self._strings.numbered(columns[ids][rows], number)

    def _full_names(self, name: Ints, columns: dict[str, Times]) -> Ints:
        """The names, those in NCCL's domain as its functions; a process numbers its own domains."""
        table = list(self._names)
        process = process_of(present(columns["globalTid"]))
        makes = np.flatnonzero(columns["eventType"] == DOMAIN)
        makes = makes[[table[number] == _NCCL for number in name[makes].tolist()]]
        ours = set(zip(process[makes].tolist(), columns["domainId"][makes].tolist(), strict=True))
        rows = np.flatnonzero(np.isin(columns["domainId"], columns["domainId"][makes]))
        pairs = zip(process[rows].tolist(), columns["domainId"][rows].tolist(), strict=True)
        rows = rows[[pair in ours for pair in pairs]]
        bare, place = np.unique(name[rows], return_inverse=True)
        result = name.copy()
        result[rows] = np.array([self._names[full_name(table[number])] for number in bare.tolist()], np.int64)[place]
        return result
