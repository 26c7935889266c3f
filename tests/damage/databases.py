"""What may stand in an SQLite export: edits of its rows and of its schema, by SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from random import Random

__all__ = ["ROWS", "edited"]

Edit = Callable[[sqlite3.Connection, Random], None]

_ODD = (
    *(None, "", "x", "7", "nan", "1e400", b"", b"\x00\xff", 0, -1, 1, 0.5, -1e300, 1e300, float("inf")),
    *(2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 59, 75, "\x1b[2J", "<b>", "=1+1", "PP:0F0", "x" * 100_000),
    *("ncclDevKernel_SendRecv", '{"Peer rank":-5}', b"\x01" * 48),
)
_MOST = 40
_SQL = (sqlite3.Error, UnicodeError, OverflowError)


def edited(data: bytes, edit: Edit, rng: Random) -> bytes:
    """The bytes of a database after an edit; as they were where SQLite refuses it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        try:
            connection.deserialize(data)
            edit(connection, rng)
            return connection.serialize()
        except _SQL:
            return data


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(connection: sqlite3.Connection, rng: Random) -> str:
    """A table, those of events more often than others."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    names = [name for (name,) in rows if isinstance(name, str) and not name.startswith("sqlite_")]
    busy = [name for name in names if name.startswith(("CUPTI", "NVTX", "StringIds"))]
    return rng.choice(busy if busy and rng.random() < 0.7 else names or ["none"])


def _column(connection: sqlite3.Connection, table: str, rng: Random) -> str:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
    return rng.choice(columns or ["none"])


def _where(connection: sqlite3.Connection, table: str, rng: Random) -> str:
    """A few rows, or one in so many."""
    (count,) = connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()  # noqa: S608
    if rng.random() < 0.3:
        return f"rowid % {rng.choice((1, 2, 7))} = 0"
    return f"rowid IN ({','.join(str(rng.randint(1, count or 1)) for _ in range(rng.randint(1, _MOST)))})"


def odd_cells(connection: sqlite3.Connection, rng: Random) -> None:
    """A column of some rows holds what it never should."""
    table = _table(connection, rng)
    column = _quoted(_column(connection, table, rng))
    rows = connection.execute(f"SELECT rowid FROM {_quoted(table)} WHERE {_where(connection, table, rng)}").fetchall()  # noqa: S608
    for (row,) in rows[:400]:
        with suppress(sqlite3.IntegrityError):
            connection.execute(f"UPDATE {_quoted(table)} SET {column} = ? WHERE rowid = ?", (rng.choice(_ODD), row))  # noqa: S608


def swapped_cells(connection: sqlite3.Connection, rng: Random) -> None:
    """A column holds what another should."""
    table = _table(connection, rng)
    a, b = (_quoted(_column(connection, table, rng)) for _ in range(2))
    where = _where(connection, table, rng)
    connection.execute(f"UPDATE OR IGNORE {_quoted(table)} SET {a} = {b}, {b} = {a} WHERE {where}")  # noqa: S608


def shifted_cells(connection: sqlite3.Connection, rng: Random) -> None:
    """Numbers are others than they were."""
    table = _table(connection, rng)
    column, by = _quoted(_column(connection, table, rng)), rng.choice((-1, 1, 10**6, -(10**9), 10**15, 2**62, -(2**62)))
    connection.execute(
        f"UPDATE OR IGNORE {_quoted(table)} SET {column} = {column} * {rng.choice((1, 1, 0, -1))} + {by} "  # noqa: S608
        f"WHERE {_where(connection, table, rng)}"
    )


def lost_rows(connection: sqlite3.Connection, rng: Random) -> None:
    """Some rows are missing."""
    table = _table(connection, rng)
    connection.execute(f"DELETE FROM {_quoted(table)} WHERE {_where(connection, table, rng)}")  # noqa: S608


def repeated_rows(connection: sqlite3.Connection, rng: Random) -> None:
    """Some rows stand there again."""
    table = _table(connection, rng)
    name, where = _quoted(table), _where(connection, table, rng)
    connection.execute(f"INSERT OR IGNORE INTO {name} SELECT * FROM {name} WHERE {where}")  # noqa: S608


def lost_table(connection: sqlite3.Connection, rng: Random) -> None:
    """A table is missing."""
    connection.execute(f"DROP TABLE {_quoted(_table(connection, rng))}")


def lost_column(connection: sqlite3.Connection, rng: Random) -> None:
    """A column is missing, or is called otherwise."""
    table = _table(connection, rng)
    column = _quoted(_column(connection, table, rng))
    how = f"DROP COLUMN {column}" if rng.random() < 0.5 else f'RENAME COLUMN {column} TO "other"'
    connection.execute(f"ALTER TABLE {_quoted(table)} {how}")


def view_for_table(connection: sqlite3.Connection, rng: Random) -> None:
    """A view stands where a table should."""
    table = _table(connection, rng)
    connection.execute(f'ALTER TABLE {_quoted(table)} RENAME TO "hidden"')
    connection.execute(f'CREATE VIEW {_quoted(table)} AS SELECT * FROM "hidden"')  # noqa: S608


def two_versions(connection: sqlite3.Connection, rng: Random) -> None:
    """A table stands there twice, under names of two versions."""
    table = _table(connection, rng)
    connection.execute(f"CREATE TABLE {_quoted(f'{table}_V2')} AS SELECT * FROM {_quoted(table)}")  # noqa: S608


ROWS: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        odd_cells,
        swapped_cells,
        shifted_cells,
        lost_rows,
        repeated_rows,
        lost_table,
        lost_column,
        view_for_table,
        two_versions,
    )
}
"""What happens to the rows and tables of an export."""
