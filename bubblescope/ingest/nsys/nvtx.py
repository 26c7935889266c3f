"""NVTX ranges: what users, frameworks, torch's `emit_nvtx` and NCCL named on host threads."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bubblescope.ingest.nsys.database import ABSENT, Database, Rows, present
from bubblescope.ingest.nsys.owned import Owned
from bubblescope.ingest.nsys.payloads import Payload, Payloads
from bubblescope.ingest.nsys.schema import DOMAIN, NVTX, RANGES, process_of
from bubblescope.ingest.nsys.strings import Strings, decoded
from bubblescope.ingest.tables import Table as Numbers
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.names import parted
from bubblescope.model.trace import Annotations, CommArgs, Membership, Ops

__all__ = ["Ranges", "ranges"]

# NCCL's own ranges carry the names of its functions (NVIDIA/nccl, src/collectives.cc); newer tracing drops "nccl".
_OPERATIONS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AlltoAll": "all_to_all", "Gather": "gather", "Scatter": "scatter", "Send": "send",
    "Recv": "recv",
}  # fmt: skip
_FUNCTION = re.compile(rf"nccl(?:{'|'.join(_OPERATIONS)}|GroupStart|GroupEnd|Comm(?:Init|Split|Shrink|Grow)\w*)")
_BARE = re.compile(rf"(?:{'|'.join(_OPERATIONS)}|GroupStart|GroupEnd)")
_NCCL = "NCCL"
_BY_MEMBER = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
"""Operations of which NCCL tells the bytes that belong to one member."""

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


_COLUMNS = ("start", "end", "globalTid", "domainId", "textId", "jsonTextId")


class _Collector:
    """Takes the rows of a file; texts that stand in the table of strings are looked up at the end, all at once."""

    def __init__(self, strings: Strings, names: Numbers[str], payloads: Payloads) -> None:
        self._strings, self._names, self._payloads = strings, names, payloads
        self._parts: dict[str, list[Ints]] = {key: [] for key in (*_COLUMNS, "name", "payload")}
        self._text = _Texts(names)
        self._numbers: Numbers[Payload] = Numbers()
        self._domains: dict[tuple[int, int], str] = {}
        self._open = 0

    def add(self, rows: Rows) -> None:
        """Keep those rows that have a beginning and an end."""
        numbers, texts = rows.numbers, rows.texts
        self._name_domains(rows)
        lasting = np.isin(numbers["eventType"], RANGES) | (numbers["eventType"] == ABSENT)
        begun = lasting & (numbers["start"] != ABSENT)
        keep = begun & (numbers["end"] != ABSENT)
        self._open += int((begun & ~keep).sum())
        chosen = np.flatnonzero(keep).tolist()
        for key in _COLUMNS:
            self._parts[key].append(numbers[key][keep])
        text = texts["text"]
        self._parts["name"].append(np.array([self._text(text[row]) for row in chosen], np.int64))
        json, blob = texts["jsonText"], texts["binaryData"]
        payloads = [-1 if json[row] is None is blob[row] else self._payload(json[row], blob[row]) for row in chosen]
        self._parts["payload"].append(np.array(payloads, np.int64))

    def finish(self) -> Ranges:
        """The ranges of all rows."""
        columns = {key: np.concatenate([np.empty(0, np.int64), *self._parts.pop(key)]) for key in list(self._parts)}
        order = np.lexsort((-columns["end"], columns["start"]))
        columns = {key: column[order] for key, column in columns.items()}
        later = (columns["name"] < 0) & (columns["textId"] != ABSENT)
        columns["name"][later] = self._strings.numbered(columns["textId"][later], self._text)
        told = (columns["payload"] < 0) & (columns["jsonTextId"] != ABSENT)
        columns["payload"][told] = self._strings.numbered(
            columns["jsonTextId"][told], lambda raw: self._payload(raw, None)
        )
        thread = present(columns["globalTid"])
        process = process_of(thread)
        number, sequence, is_operator = self._text.columns()
        number = self._prefixed(number[columns["name"]], columns["domainId"], process)
        calls = self._calls(number)
        comm, comms = self._comms(calls, columns["payload"])
        end = np.maximum(columns["end"], columns["start"])
        operator = is_operator[columns["name"]] | (calls >= 0)
        threads = np.zeros(len(order), np.int64)  # numbered when the ranks are told apart
        annotations = Annotations(columns["start"], end, number, threads)
        ops = Ops(columns["start"], end, number, threads, sequence[columns["name"]], np.full(len(order), -1), comm)
        return Ranges(
            annotations=Owned(process, annotations, thread).take(~operator),
            ops=Owned(process, ops, thread).take(operator),
            comms=comms,
            members=self._members(process, columns["payload"]),
            open=self._open,
            untold=self._untold(calls, columns["payload"]),
        )

    def _payload(self, json: bytes | None, blob: bytes | None) -> int:
        payload = self._payloads.of_json(json) if json is not None else self._payloads.of_blob(blob or b"")
        return self._numbers[payload] if payload != Payload() else -1

    def _name_domains(self, rows: Rows) -> None:
        numbers = rows.numbers
        for row in np.flatnonzero(numbers["eventType"] == DOMAIN).tolist():
            text, id_ = rows.texts["text"][row], numbers["textId"][row : row + 1]
            text = text if text is not None else self._strings.of(id_[id_ != ABSENT]).get(int(id_[0]), b"")
            process = int(process_of(numbers["globalTid"][row : row + 1])[0])
            self._domains[process, int(numbers["domainId"][row])] = decoded(text)

    def _prefixed(self, name: Ints, domain: Times, process: Times) -> Ints:
        """Names of NCCL's domain as those of its functions, whether it writes them in full or not."""
        ours: Bools = np.zeros(len(name), bool)
        for (owner, number), called in self._domains.items():
            ours |= (process == owner) & (domain == number) & (called == _NCCL)
        result = name.copy()
        table = list(self._names)
        for bare in np.unique(name[ours]).tolist():
            if _BARE.fullmatch(table[bare]):
                result[ours & (name == bare)] = self._names[f"nccl{table[bare]}"]
        return result

    def _calls(self, name: Ints) -> Ints:
        """For each range the number of NCCL's function, or -1."""
        is_call = np.fromiter((_FUNCTION.fullmatch(text) is not None for text in self._names), bool)
        return np.where(is_call[name], name, -1) if len(is_call) else np.full(len(name), -1)

    def _comms(self, call: Ints, payload: Ints) -> tuple[Ints, tuple[CommArgs, ...]]:
        """The call of each range that says with whom or how much."""
        table: Numbers[CommArgs] = Numbers()
        names, payloads = list(self._names), list(self._numbers)
        sizes = {told.communicator: told.ranks for told in payloads if told.communicator and told.ranks >= 0}
        comm = np.full(len(call), -1)
        rows = np.flatnonzero((call >= 0) & (payload >= 0))
        different, index = np.unique(np.stack((call[rows], payload[rows])), axis=1, return_inverse=True)
        numbers = []
        for name, told in different.T.tolist():
            args = _args(names[name], payloads[told], sizes)
            numbers.append(-1 if args is None else table[args])
        if len(rows):
            comm[rows] = np.array(numbers)[index.reshape(-1)]
        return comm, tuple(table)

    def _members(self, process: Times, payload: Ints) -> dict[int, frozenset[Membership]]:
        told = [Membership(p.communicator, p.rank, p.ranks) if p.rank >= 0 else None for p in self._numbers]
        rows = np.flatnonzero(payload >= 0)
        found: dict[int, set[Membership]] = {}
        for owner, number in zip(process[rows].tolist(), payload[rows].tolist(), strict=True):
            member = told[number]
            if member is not None and member.communicator and member.rank < member.ranks:
                found.setdefault(owner, set()).add(member)
        return {owner: frozenset(members) for owner, members in found.items()}

    def _untold(self, call: Ints, payload: Ints) -> int:
        names: Sequence[str] = list(self._names)
        talks = np.array([name in {"ncclSend", "ncclRecv"} for name in names], bool)
        peers = np.array([*(p.peer >= 0 for p in self._numbers), False])
        return int((talks[call] & (call >= 0) & ~peers[payload]).sum()) if names else 0


def _args(name: str, told: Payload, sizes: dict[str, int]) -> CommArgs | None:
    """The call that a function of NCCL and its payload make; None if it moves nothing, or to an unknown peer."""
    op = _OPERATIONS.get(name.removeprefix("nccl"))
    if op is None or (op in {"send", "recv"} and told.peer < 0):
        return None
    members = sizes.get(told.communicator, -1)
    share = 1 if op not in _BY_MEMBER else members
    return CommArgs(
        op=op,
        group=told.communicator,
        group_size=members,
        elements=told.size * share if told.size >= 0 and share > 0 else -1,
        dtype="uint8",
        peer=told.peer,
    )
