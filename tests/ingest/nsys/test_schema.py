"""Ids of processes and threads, and the tables that are asked for."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest.nsys import schema
from bubblescope.ingest.nsys.database import Table

NUMBERS = st.integers(0, 2**24 - 1)


@given(st.integers(0, 127), st.integers(0, 255), NUMBERS, NUMBERS)
def test_ids_are_taken_apart(hardware, machine, pid, tid):
    """Hardware, virtual machine, process and thread stand in 8, 8, 24 and 24 bits."""
    thread = hardware << 56 | machine << 48 | pid << 24 | tid
    (process,) = schema.process_of(np.array([thread])).tolist()
    assert process == thread - tid
    assert schema.pid_of(thread) == schema.pid_of(process) == pid
    assert schema.tid_of(thread) == tid


def test_all_tables_are_listed():
    """`TABLES` is all that is read, each once."""
    values = [value for name in schema.__all__ if name != "TABLES" for value in [getattr(schema, name)]]
    tables = [value for value in values if isinstance(value, Table)] + list(schema.EXPORT)
    assert set(schema.TABLES) == set(tables)
    assert len({table.name for table in schema.TABLES}) == len(schema.TABLES)


def test_columns_are_those_of_recorded_exports(shared):
    """Whatever is asked for stands in an export that Nsight Systems wrote, under that name."""
    real: dict[str, set[str]] = {}
    for path in sorted(shared.glob("real/nsys/*.sqlite")):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                real.setdefault(name, set()).update(row[1] for row in database.execute(f"PRAGMA table_info({name})"))
    unseen = {table.name for table in schema.TABLES} - real.keys()
    assert unseen == {schema.GRAPHS.name, schema.MPI_RANKS.name, "EXPORT_META_DATA"}
    for table in schema.TABLES:
        if table.name not in unseen:
            assert {*table.numbers, *table.texts} <= real[table.name], table.name
