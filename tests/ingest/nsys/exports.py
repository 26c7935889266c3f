"""Small exports of Nsight Systems from literal rows.

    export(path, kernel("gemm", 20, 30, correlation=1), launch("cudaLaunchKernel_v7000", 2, 5, correlation=1))

Times are nanoseconds as the test writes them; a row is its table and its columns, and a table has the columns that
its rows name, without types, so that values stand in the file as they are given.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

KERNELS, COPIES, FILLS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
LAUNCHES, GRAPHS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGES, ENTRIES = "NVTX_EVENTS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"
SESSION, ENVIRONMENT, CAPTURE = "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE"
OPTIONS, OLD_OPTIONS, DIAGNOSTICS = "META_DATA_EXPORT", "EXPORT_META_DATA", "DIAGNOSTIC_EVENT"
GPUS, DEVICES, MPI = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "MPI_RANKS"

Row = tuple[str, dict[str, Any]]


class Text(str):
    """A text that stands in the table of strings; the row holds its number."""

    __slots__ = ()


def process(pid):
    """The `globalPid` of a process, on the first virtual machine."""
    return 1 << 48 | pid << 24


def thread(pid, tid=None):
    """The `globalTid` of a thread; without its number that of the main one."""
    return process(pid) | (pid if tid is None else tid)


def kernel(name, start, end, *, pid=10, device=0, stream=7, correlation=None, **more) -> Row:
    """A kernel."""
    return KERNELS, {
        **_ran(start, end, pid=pid, device=device, stream=stream, correlation=correlation),
        "demangledName": Text(name),
        "shortName": Text(f"short {name}"),
        **more,
    }


def copied(kind, start, end, *, pid=10, device=0, stream=7, correlation=None, **more) -> Row:
    """A copy; the kind is a number of `ENUM_CUDA_MEMCPY_OPER`."""
    return COPIES, {
        **_ran(start, end, pid=pid, device=device, stream=stream, correlation=correlation),
        "copyKind": kind,
        **more,
    }


def filled(start, end, *, pid=10, device=0, stream=7, correlation=None, **more) -> Row:
    """A memset."""
    return FILLS, {**_ran(start, end, pid=pid, device=device, stream=stream, correlation=correlation), **more}


def graph(start, end, *, pid=10, device=0, stream=7, correlation=None, **more) -> Row:
    """A graph as one block, as it is recorded by default."""
    return GRAPHS, {
        **_ran(start, end, pid=pid, device=device, stream=stream, correlation=correlation),
        "graphId": 1,
        **more,
    }


def launch(name, start, end, *, pid=10, tid=None, correlation=None, **more) -> Row:
    """A call of the runtime or the driver."""
    row = {"start": start, "end": end, "globalTid": thread(pid, tid), "correlationId": correlation}
    return LAUNCHES, {**row, "nameId": None if name is None else Text(name), **more}


def pushed(text, start, end, *, pid=10, tid=None, kind=59, domain=0, **more) -> Row:
    """A range; a `Text` stands in the table of strings, as those of NCCL do."""
    row = {"start": start, "end": end, "eventType": kind, "globalTid": thread(pid, tid), "domainId": domain}
    by_id = isinstance(text, Text)
    return RANGES, {**row, "text": None if by_id else text, "textId": text if by_id else None, **more}


def domain(name, number=1, *, pid=10) -> Row:
    """The event that names a domain."""
    return pushed(name, 0, None, pid=pid, kind=75, domain=number)


def entry(name, kind, offset, *, layout=9, domain=1) -> Row:
    """A field of a payload."""
    return ENTRIES, {"domainId": domain, "schemaId": layout, "type": kind, "name": name, "offset": offset}


def variable(name, value) -> Row:
    """A variable of the environment, as the target told it."""
    return ENVIRONMENT, {"name": name, "value": value}


def captured(text) -> Row:
    """A variable of the environment, as the recorder kept it: `NAME="value"`."""
    return CAPTURE, {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": text}


def began(moment) -> Row:
    """When the session began, in nanoseconds since the epoch."""
    return SESSION, {"utcEpochNs": moment}


def told(text, severity=2) -> Row:
    """What nsys says of the recording; 2 is a warning."""
    return DIAGNOSTICS, {"severity": severity, "text": text}


def export(
    path: Path,
    *rows: Row,
    keyed: bool = True,
    without: Mapping[str, Collection[str]] | None = None,
    renamed: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> Path:
    """Write an export.

    Args:
        path: where to.
        rows: its rows, of any tables.
        keyed: whether the table of strings has a primary key.
        without: columns of tables that are left out.
        renamed: what tables are called instead.
        seed: of the order of rows, in which they stand as given without.
    """
    rows, numbers = tuple(rows), {}
    tables: dict[str, list[dict[str, Any]]] = {}
    for name, row in rows:
        kept = {column: value for column, value in row.items() if column not in (without or {}).get(name, ())}
        for column, value in kept.items():
            if isinstance(value, Text):
                kept[column] = numbers.setdefault(str(value), 5 + 3 * len(numbers))
        tables.setdefault((renamed or {}).get(name, name), []).append(kept)
    strings = [{"id": number, "value": text} for text, number in numbers.items()]
    if strings:
        tables["StringIds"] = strings + tables.get("StringIds", [])
    with closing(sqlite3.connect(path)) as database:
        for name, content in tables.items():
            if seed is not None:
                random.Random(seed).shuffle(content)  # noqa: S311 - an order, no secret
            create(database, name, content, key="id" if keyed and name == "StringIds" else None)
        database.commit()
    return path


def create(database, name, content, key=None):
    """A table of rows; columns that a row lacks are NULL in it."""
    columns = list(dict.fromkeys(column for row in content for column in row))
    shown = [f'"{column}" INTEGER PRIMARY KEY' if column == key else f'"{column}"' for column in columns]
    database.execute(f'CREATE TABLE "{name}" ({", ".join(shown)})')
    places = ", ".join("?" * len(columns))
    database.executemany(
        f'INSERT INTO "{name}" VALUES ({places})',  # noqa: S608 - names that tests wrote
        [tuple(row.get(column) for column in columns) for row in content],
    )


def spelled(trace) -> Counter:
    """The rows of a trace with all they refer to, in no order."""
    found: Counter = Counter()
    for name in ("ops", "annotations", "launches", "kernels"):
        block = getattr(trace, name)
        for row in range(len(block)):
            thread = trace.threads[block.thread[row]] if hasattr(block, "thread") else None
            comm = trace.comms[block.comm[row]] if hasattr(block, "comm") and block.comm[row] >= 0 else None
            rest = tuple(
                int(getattr(block, column)[row])
                for column in ("correlation", "kind", "lane", "sequence")
                if hasattr(block, column)
            )
            text = trace.names[block.name[row]]
            found[name, text, int(block.start[row]), int(block.end[row]), thread, comm, rest] += 1
    return found


def codes(trace) -> set[str]:
    """The codes of a trace's findings."""
    return {finding.code for finding in trace.findings}


def _ran(start, end, *, pid, device, stream, correlation):
    return {
        "start": start,
        "end": end,
        "deviceId": device,
        "streamId": stream,
        "correlationId": correlation,
        "globalPid": process(pid),
    }
