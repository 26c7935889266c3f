"""What ran on GPUs, and the calls that put it there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bubblescope.ingest.blocks import launches_work
from bubblescope.ingest.nsys.database import ABSENT, Database, Table, present
from bubblescope.ingest.nsys.owned import Owned
from bubblescope.ingest.nsys.schema import GRAPHS, KERNELS, MEMCPY, MEMSET, RUNTIME, process_of
from bubblescope.ingest.nsys.strings import Strings, decoded
from bubblescope.ingest.tables import Table as Numbers
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import Kernels, Launches

__all__ = ["Work", "launches", "work"]

_VERSION = re.compile(r"_v\d+$")
_CALLS = "cu%"  # of CUDA's runtime and driver
_SHORT = Table(KERNELS.name, ("shortName",))
GRAPH = "CUDA graph"
FILL = "Memset (Device)"

# ENUM_CUDA_MEMCPY_OPER of an export, in the words of the PyTorch Profiler.
_COPIES = {
    1: "Memcpy HtoD (Host -> Device)",
    2: "Memcpy DtoH (Device -> Host)",
    3: "Memcpy HtoA (Host -> Array)",
    4: "Memcpy AtoH (Array -> Host)",
    8: "Memcpy DtoD (Device -> Device)",
    9: "Memcpy HtoH (Host -> Host)",
    10: "Memcpy PtoP (Device -> Device)",
    11: "Memcpy HtoD (Unified -> Device)",
    12: "Memcpy DtoH (Device -> Unified)",
}
COPY = "Memcpy"


@dataclass(frozen=True, slots=True)
class Work:
    """What ran on the GPUs of a file.

    Attributes:
        kernels: kernels, copies, fills, and graphs that hide theirs; `lane` numbers the pairs of device and stream.
        device: the device of each.
        lanes: device and stream of each lane.
        implausible: rows left out, as their times cannot be.
        graphs: rows of graphs whose kernels are not shown.
    """

    kernels: Owned[Kernels]
    device: Times
    lanes: tuple[tuple[str, str], ...]
    implausible: int
    graphs: int


def work(database: Database, strings: Strings, names: Numbers[str]) -> Work:
    """All that ran on a GPU, in the order of its start; names are added to `names`."""
    kernels, copies = _read(database, KERNELS), _read(database, MEMCPY)
    fills, graphs = _read(database, MEMSET), _read(database, GRAPHS)
    called = kernels["demangledName"]
    if np.any(called == ABSENT):
        called = np.where(called == ABSENT, _read(database, _SHORT)["shortName"], called)
    different, copied = np.unique(copies["copyKind"], return_inverse=True)
    of_copy = np.array([names[_COPIES.get(kind, COPY)] for kind in different.tolist()], dtype=np.int64)
    parts = (
        (kernels, strings.numbered(called, lambda text: names[decoded(text)]), Kernels.KERNEL),
        (copies, of_copy[copied], Kernels.MEMCPY),
        (fills, np.full(len(fills["start"]), names[FILL] if len(fills["start"]) else 0), Kernels.MEMSET),
        (graphs, np.full(len(graphs["start"]), names[GRAPH] if len(graphs["start"]) else 0), Kernels.KERNEL),
    )
    columns = {key: np.concatenate([part[key] for part, _, _ in parts]) for key in _SHARED}
    columns["name"] = np.concatenate([name for _, name, _ in parts])
    columns["kind"] = np.concatenate([np.full(len(part["start"]), kind, np.int8) for part, _, kind in parts])
    good = _plausible(columns["start"], columns["end"])
    rows = np.flatnonzero(good)
    rows = rows[np.lexsort((columns["correlationId"][rows], columns["start"][rows]))]
    columns = {key: column[rows] for key, column in columns.items()}
    lane, lanes = _lanes(columns["deviceId"], columns["streamId"])
    block = Kernels(
        start=columns["start"],
        end=columns["end"],
        name=columns["name"],
        lane=lane,
        correlation=np.maximum(columns["correlationId"], -1),
        kind=columns["kind"],
        comm=np.full(len(rows), -1),
    )
    owned = Owned(present(columns["globalPid"]), block)
    return Work(owned, columns["deviceId"], lanes, len(good) - len(rows), len(graphs["start"]))


def launches(database: Database, strings: Strings, names: Numbers[str]) -> Owned[Launches]:
    """The calls that put work on a GPU, going by their names, in the order of their start.

    Others, which may be more, are not even fetched. Those without a name are taken: what they started will tell.
    """
    where, called = "", {ABSENT: ""}
    if database.has(RUNTIME.name, "nameId"):
        called = {i: _VERSION.sub("", name) for i, name in strings.like(_CALLS).items() if launches_work(name)}
        where = f'"nameId" IS NULL OR "nameId" IN ({", ".join(map(str, called))})'
    columns = _joined([dict(rows.numbers) for rows in database.rows(RUNTIME, where)], RUNTIME.numbers)
    keep = np.flatnonzero(columns["start"] != ABSENT)
    order = keep[np.lexsort((columns["correlationId"][keep], columns["start"][keep]))]
    columns = {key: column[order] for key, column in columns.items()}
    ids, place = np.unique(columns["nameId"], return_inverse=True)
    number = np.array([names[called.get(i, "")] for i in ids.tolist()], np.int64)
    threads = present(columns["globalTid"])
    block = Launches(
        start=columns["start"],
        end=np.where(columns["end"] == ABSENT, columns["start"], columns["end"]),
        name=number[place],
        thread=np.zeros(len(order), np.int64),
        correlation=np.maximum(columns["correlationId"], -1),
    )
    return Owned(process_of(threads), block, threads)


_SHARED = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")


def _read(database: Database, table: Table) -> dict[str, Times]:
    return _joined([dict(rows.numbers) for rows in database.rows(table)], table.numbers)


def _joined(parts: list[dict[str, Times]], columns: Iterable[str]) -> dict[str, Times]:
    """Parts as one, column after column, so that memory never holds all twice."""
    return {
        key: np.concatenate([part.pop(key) for part in parts]) if parts else np.empty(0, np.int64) for key in columns
    }


def _plausible(start: Times, end: Times) -> Bools:
    """CUPTI writes 0 where it did not learn a time."""
    good: Bools = (start != ABSENT) & (end != ABSENT) & (end >= start) & ((start != 0) | (end != 0))
    return good


def _lanes(device: Times, stream: Times) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """The number of each pair, and the pairs."""
    order = np.lexsort((stream, device))
    first = np.append(True, (np.diff(device[order]) != 0) | (np.diff(stream[order]) != 0))[: len(order)]
    lane = np.empty(len(order), np.int64)
    lane[order] = np.cumsum(first) - 1
    leads = order[first]
    pairs = zip(device[leads].tolist(), stream[leads].tolist(), strict=True)
    return lane, tuple((str(a), str(b)) for a, b in pairs)
