"""Databases that were made to be read wrong: no code of theirs runs, no number of theirs is believed."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from tests.damage.runs import analyzed
from tests.ingest.nsys.exports import KERNELS, LAUNCHES, RANGES, export, kernel, launch, pushed

ROWS = [
    *(kernel(f"gemm{i % 3}", 20 + i * 100, 90 + i * 100, correlation=i) for i in range(30)),
    *(launch("cudaLaunchKernel_v7000", 2 + i * 100, 5 + i * 100, correlation=i) for i in range(30)),
    *(pushed(f"PP:0{'FB'[i % 2]}{i // 2}", i * 100, i * 100 + 99) for i in range(30)),
]
FOR_EVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


@pytest.fixture
def spoil(tmp_path):
    """Run statements on an export, and analyze it: exit code, and what was said."""

    def run(*statements):
        path = export(tmp_path / "report.sqlite", *ROWS)
        with closing(sqlite3.connect(path)) as database:
            database.execute("BEGIN")
            for statement in statements:
                database.execute(statement)
            database.commit()
        before = path.read_bytes()
        outcome = analyzed([path], "--json")
        assert outcome.fault is None
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
        return outcome

    return run


@pytest.mark.parametrize("table", [RANGES, KERNELS, LAUNCHES, "StringIds"])
def test_views_that_never_end(spoil, table):
    """A view under the name of a table is none, so that nobody waits for its rows."""
    columns = "x AS id, x AS start, x + 1 AS end, x AS value, x AS correlationId"
    view = f'CREATE VIEW "{table}" AS {FOR_EVER} SELECT {columns} FROM c'  # noqa: S608
    spoil(f'ALTER TABLE "{table}" RENAME TO old', view)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t BEFORE UPDATE ON StringIds BEGIN SELECT load_extension('evil'); END",
        "CREATE TABLE DIAGNOSTIC_EVENT(severity, text AS (zeroblob(1000000000)))",
        "CREATE TABLE META_DATA_EXPORT(name DEFAULT (randomblob(1000000000)), value)",
        f"CREATE INDEX slow ON NVTX_EVENTS(start) WHERE start IN ({','.join(map(str, range(1000)))})",
        f"CREATE TABLE many({','.join(f'c{i}' for i in range(1900))})",
        'CREATE TABLE "a""; DROP TABLE StringIds; --"("b""")',
        'CREATE TABLE NVTX_EVENTS_V3("start" CHECK (start > 0), "end" UNIQUE, text COLLATE NOCASE)',
    ],
    ids=["trigger", "generated column", "default", "index", "columns", "names", "constraints"],
)
def test_code_in_a_schema_does_not_run(spoil, statement):
    """The rest is read as if it were not there."""
    assert spoil(statement).code == 0


@pytest.mark.parametrize("count", [3000])
@pytest.mark.parametrize("name", ["t{}", "NVTX_EVENTS_V{}", "CUPTI_ACTIVITY_KIND_KERNEL{}"])
def test_thousands_of_tables(spoil, name, count):
    """Also under names of versions of one that is read."""
    assert spoil(*(f'CREATE TABLE "{name.format(i)}"(start, "end", text)' for i in range(count))).code == 0


@pytest.mark.parametrize("size", [10**6, 20 * 10**6])
@pytest.mark.parametrize("make", ["printf('%.*c', {}, 'x')", "zeroblob({})"])
def test_enormous_values(spoil, make, size):
    """Of a name its beginning counts; one that takes more memory than any name is damage, and is not fetched."""
    outcome = spoil(f"UPDATE StringIds SET value = {make.format(size)}")  # noqa: S608
    assert outcome.code == (0 if size < 16 << 20 else 3)


HEADER = {
    "page size 0": (16, b"\x00\x00"),
    "page size 65536": (16, b"\x00\x01"),
    "log mode": (18, b"\x02\x02"),
    "versions": (18, b"\x09\x09"),
    "reserved": (20, b"\xff"),
    "2^31 pages": (28, b"\x7f\xff\xff\xff"),
    "2^32 pages": (28, b"\xff\xff\xff\xff"),
    "free list": (32, b"\x7f\xff\xff\xff\x00\x00\xff\xff"),
    "schema format": (44, b"\x00\x00\x00\x09"),
    "encoding": (56, b"\x00\x00\x00\x09"),
    "root page": (100, b"\x02"),
    "cells": (103, b"\xff\xff"),
}


@pytest.mark.parametrize(("offset", "value"), HEADER.values(), ids=HEADER)
def test_headers_that_lie(tmp_path, offset, value):
    """What they say of sizes reserves no memory."""
    path = export(tmp_path / "report.sqlite", *ROWS)
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    assert analyzed([path], "--json").fault is None


ODD = [
    *("'abc'", "1.5", "1e300", "9e999", "-9e999", "x'00ff'", "9223372036854775807", "-9223372036854775808", "NULL"),
    *("''", "'1e999999999'", "'0x10'", "'nan'", "'\u0661'", "-1", "0"),
]
COLUMNS = {
    KERNELS: ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName"),
    LAUNCHES: ("start", "end", "globalTid", "correlationId", "nameId"),
    RANGES: ("start", "end", "eventType", "globalTid", "domainId", "text", "textId"),
    "StringIds": ("value",),
}


@pytest.mark.parametrize(("table", "column"), [(table, column) for table, names in COLUMNS.items() for column in names])
def test_any_value_in_any_column(tmp_path, table, column):
    """In all rows, and in some."""
    for value in ODD:
        for where in ("1", "rowid % 3 = 0"):
            path = export(tmp_path / "report.sqlite", *ROWS)
            with closing(sqlite3.connect(path)) as database:
                database.execute(f'UPDATE "{table}" SET "{column}" = {value} WHERE {where}')  # noqa: S608
                database.commit()
            assert analyzed([path], "--json").fault is None, (value, where)
            path.unlink()


def test_more_ranks_than_any_host_has(tmp_path):
    """Kernels of thousands of processes are no recording of a host; looking at each would take hours."""
    rows = [kernel("gemm", i, i + 1, pid=i) for i in range(1, 3000)]
    outcome = analyzed([export(tmp_path / "report.sqlite", *rows)])
    assert outcome.code == 3
    assert "2999 processes and devices, more than 1024" in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("table", [RANGES, KERNELS])
def test_hundreds_of_thousands_of_different_rows(tmp_path, table):
    """Each with a name, a thread or a stream of its own: time grows with their number."""
    seconds = []
    for count in (50_000, 200_000):
        path = tmp_path / f"report{count}.sqlite"
        rows = {
            RANGES: lambda i: pushed(f"name{i}", i, i + 1, tid=i),
            KERNELS: lambda i: kernel(f"name{i}", 10 * i, 10 * i + 5, stream=i, correlation=i),
        }[table]
        export(path, *ROWS, *map(rows, range(1, count)))
        began = time.process_time()
        assert analyzed([path], "--json").code == 0
        seconds.append(time.process_time() - began)
    assert seconds[1] < 9 * max(seconds[0], 0.2)
