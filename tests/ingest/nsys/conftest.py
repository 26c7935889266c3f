"""Helpers: write a small export, and read it in the words of its rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bubblescope.ingest.nsys import read
from bubblescope.ingest.nsys.database import Database
from bubblescope.ingest.nsys.strings import Strings
from bubblescope.ingest.tables import Table
from tests.ingest.nsys.exports import export


@pytest.fixture
def save(tmp_path):
    """Write rows to an export of the given name."""

    def write(*rows, name="report.sqlite", **how):
        return export(tmp_path / name, *rows, **how)

    return write


@pytest.fixture
def opened(save):
    """Write rows, and open them as the modules of the reader want them: the database, its strings, a table of names."""
    databases = []

    def write(*rows, **how):
        database = Database(save(*rows, **how))
        databases.append(database)
        return SimpleNamespace(database=database, strings=Strings(database), names=Table())

    yield write
    for database in databases:
        database.__exit__(None, None, None)


@pytest.fixture
def traces(save):
    """Write rows, and read the ranks that they hold."""

    def write(*rows, **how):
        found = list(read(save(*rows, **how)))
        for trace in found:
            trace.self_check()
        return found

    return write


@pytest.fixture
def trace(traces):
    """Write the rows of one rank, and read it."""

    def write(*rows, **how):
        (found,) = traces(*rows, **how)
        return found

    return write
