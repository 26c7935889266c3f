"""Which tables an SQLite database holds; nothing is written, neither to it nor beside it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from bubblescope.errors import InputError

__all__ = ["DAMAGE", "connect", "is_nsight_export", "tables"]

DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises; the second where SQLite's message quotes bytes of the file that are no text."""

_LONGEST = 16 << 20  # bytes of a value, which SQLite holds whole even where only its beginning is asked for
_OF_NSIGHT = {"META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS"}
_ACTIVITIES = "CUPTI_ACTIVITY_KIND_"
_TOGETHER = {"StringIds", "NVTX_EVENTS"}
"""Nsight Systems makes a table only where it has rows, so that no single one is always there."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that reads only; texts come as bytes.

    Immutable: no lock, no journal, no look at what lies beside it; so it works where nobody may write.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    return connection


def tables(path: Path) -> frozenset[str] | None:
    """The names of the tables and views of a database; None where it is damaged.

    Raises:
        InputError: SQLite cannot open the file, whatever is in it.
    """
    try:
        with contextlib.closing(connect(path)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    except DAMAGE as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CANTOPEN:
            raise InputError(f"{path}: cannot be opened by SQLite: {error}", hint="Is its path too long?") from error
        return None
    return frozenset(name.decode("utf-8", "replace") for (name,) in rows)


def is_nsight_export(names: frozenset[str]) -> bool:
    """Whether a database of these tables was exported by Nsight Systems."""
    return bool(names & _OF_NSIGHT) or names >= _TOGETHER or any(name.startswith(_ACTIVITIES) for name in names)
