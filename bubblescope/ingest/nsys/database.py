"""An SQLite file, never written: which tables and columns it has, and its numbers as columns.

Exports of different ages have different tables and columns, and leave out what would be empty. So nothing
is taken for granted: a column that is not there reads as absent values, a table that is not there as no rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.command import export_again
from bubblescope.ingest.sqlite import DAMAGE, connect
from bubblescope.ingest.stream import Progress
from bubblescope.ingest.tables import LONGEST
from bubblescope.model.columns import Times

__all__ = ["ABSENT", "Database", "Rows", "Table", "present", "quoted"]

ABSENT = -(2**63)
"""Stands for a number that is NULL, or of a column that is not there."""

_CHUNK = 5_000  # rows at a time: few enough that their objects stay in the caches of a processor
_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # SQLite's file format, section 3; zeros once all is written


@dataclass(frozen=True, slots=True)
class Table:
    """What is wanted of a table, whichever versions of it there are: columns of integers, and of texts or blobs."""

    name: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table: `numbers` are int64 with ABSENT for NULL, `texts` bytes or None."""

    numbers: Mapping[str, Times]
    texts: Mapping[str, Sequence[bytes | None]]


class Database:
    """An SQLite file open for reading; context manager.

    It is opened as immutable: SQLite takes no lock and leaves no journal, also in a folder that cannot be
    written. What a writer left in a log or journal beside the file is not read; `unmerged` tells of it.

    Raises InputError where the file cannot be opened or read.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.bytes = path.stat().st_size
        self._progress = progress or (lambda _: None)
        self.unmerged = _begins(path, "-wal", b"") or _begins(path, "-journal", _JOURNAL)
        with self._readable():
            self._connection = connect(path)
            try:
                self._connection.execute("PRAGMA trusted_schema = OFF")
                self._tables = self._probe()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(self._tables)

    def versions(self, name: str) -> tuple[str, ...]:
        """The tables of that name, with or without the number of a version: `X`, `X2`, `X_V3`."""
        pattern = re.compile(rf"{re.escape(name)}(_?V?\d+)?", re.IGNORECASE)
        return tuple(table for table in self._tables if pattern.fullmatch(table))

    def has(self, name: str, column: str | None = None) -> bool:
        """Whether there is a table of that name, and in it the column."""
        return any(column is None or column in self._tables[table] for table in self.versions(name))

    def is_key(self, name: str, column: str) -> bool:
        """Whether rows are found by that column without a search."""
        return all(self._tables[table].get(column, False) for table in self.versions(name))

    def rows(self, table: Table, where: str = "", parameters: Sequence[Any] = ()) -> Iterator[Rows]:
        """The rows of all versions of a table, some at a time, in no particular order.

        `where` is a condition on columns that the caller knows to be there.
        """
        for name in self.versions(table.name):
            yield from self._rows_of(name, table, f" WHERE {where}" if where else "", parameters)

    def _rows_of(self, name: str, table: Table, where: str, parameters: Sequence[Any]) -> Iterator[Rows]:
        there = self._tables[name]
        shown = [_number(column) if column in there else str(ABSENT) for column in table.numbers]
        shown += [_text(column) if column in there else "NULL" for column in table.texts]
        query = f"SELECT {', '.join(shown)} FROM {quoted(name)}{where}"  # noqa: S608 - names from the schema, quoted
        with self._readable(), closing(self._connection.execute(query, parameters)) as cursor:
            while rows := cursor.fetchmany(_CHUNK):
                yield _columns(rows, table)

    def advance(self, share: float) -> None:
        """Tell which share of the file has been read."""
        self._progress(round(self.bytes * share))

    def _probe(self) -> dict[str, dict[str, bool]]:
        """The columns of each real table, each with whether it is the key that SQLite finds rows by.

        Views and virtual tables are left out: an export has none, and what they compute is not for us to run.
        """
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        found: dict[str, dict[str, bool]] = {}
        for (raw,) in self._connection.execute(query).fetchall():
            name = raw.decode("utf-8", "replace")
            columns = self._connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
            found[name] = {
                column.decode("utf-8", "replace"): bool(key) and kind.upper() == b"INTEGER"
                for _, column, kind, _, _, key in columns
            }
        return found

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except DAMAGE as error:
            why = f" ({error})" if isinstance(error, sqlite3.Error) else ""
            raise InputError(
                f"{self.path}: expected an export of Nsight Systems, found a damaged SQLite database{why}",
                hint=f"Export the report again: {export_again(self.path)}",
            ) from error


def present(numbers: Times) -> Times:
    """The numbers, 0 where one is absent."""
    return np.where(numbers == ABSENT, 0, numbers)


def _begins(path: Path, suffix: str, magic: bytes) -> bool:
    """Whether a file of that suffix lies beside another, and begins so, or at all."""
    beside = path.with_name(path.name + suffix)
    if not beside.is_file():
        return False
    with beside.open("rb") as file:
        head = file.read(len(_JOURNAL))
    return len(head) > 0 and head.startswith(magic)


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def _number(column: str) -> str:
    return f"ifnull({quoted(column)}, {ABSENT})"


def _text(column: str) -> str:
    return f"substr({quoted(column)}, 1, {LONGEST})"


def _columns(rows: list[tuple[Any, ...]], table: Table) -> Rows:
    width = len(table.numbers)
    if not table.texts:
        flat = _integers(list(chain.from_iterable(rows)))
        return Rows(dict(zip(table.numbers, flat.reshape(-1, width).T, strict=True)), {})
    columns = list(zip(*rows, strict=True))
    numbers = {name: _integers(column) for name, column in zip(table.numbers, columns, strict=False)}
    return Rows(numbers, dict(zip(table.texts, map(_texts, columns[width:]), strict=True)))


def _integers(values: Sequence[Any]) -> Times:
    """Numbers as int64. SQLite keeps what it was given whatever the column says: text and fractions count, too."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.array([_integer(value) for value in values], np.int64)


def _integer(value: Any) -> int:
    """A number towards zero; ABSENT where it is none."""
    try:
        number = Decimal(value.decode("ascii").strip() if isinstance(value, bytes) else value)
    except (TypeError, ValueError, InvalidOperation):
        return ABSENT
    fits = number.is_finite() and ABSENT <= number < -ABSENT  # compared before it is spelled out in all its digits
    return int(number) if fits else ABSENT


def _texts(values: Sequence[Any]) -> Sequence[bytes | None]:
    """Texts or blobs; what is of another type counts as absent, for it is damage."""
    if values.count(None) == len(values):
        return values
    return [value if isinstance(value, bytes) else None for value in values]
