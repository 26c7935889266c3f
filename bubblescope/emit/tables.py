"""An export of Nsight Systems as a file: the tables of its schema 3.25.0, filled and serialized."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import chain
from typing import Any

__all__ = ["MACHINE", "SCHEMA_VERSION", "Row", "Strings", "database", "global_id"]

SCHEMA_VERSION = "3.25.0"
MACHINE = 1 << 48  # the first virtual machine, as every id of a process or thread begins

Row = Mapping[str, Any]
"""The values of a row by column; the others are NULL."""

# Columns as exports have them, by their name and type; what always is NULL here may be left out.
COLUMNS = {
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_SYSTEM_ENV": (
        "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, "
        "value TEXT NOT NULL"
    ),
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
        "totalMemory INTEGER, smCount INTEGER, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
        "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
        "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, "
        "cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
        "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
        "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, "
        "localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "
        "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, graphId INTEGER, "
        "tensorSizeMinusOneElements TEXT NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
        "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, "
        "srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, "
        "graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, "
        "color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, "
        "uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, "
        "floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT"
    ),
    "NVTX_PAYLOAD_SCHEMAS": (
        "domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER, numEntries INTEGER, "
        "payloadSize INTEGER, alignTo INTEGER"
    ),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, flags INTEGER, type INTEGER, "
        "name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER"
    ),
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
}


def global_id(pid: int, tid: int = 0) -> int:
    """A thread as exports number it; without a thread, its process."""
    return MACHINE | pid << 24 | tid


class Strings:
    """The texts that rows name by number."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def ident(self, text: str) -> int:
        """The number of a text."""
        return self.known.setdefault(text, len(self.known))

    def rows(self) -> Iterable[Row]:
        """The table of them all, once every other row is made."""
        return ({"id": ident, "value": text} for text, ident in self.known.items())


def database(tables: Mapping[str, Iterable[Row]], strings: Strings) -> bytes:
    """The file of some tables, and of the texts that making their rows named; a table without rows is not there."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, rows in tables.items():
            _fill(connection, name, rows)
        _fill(connection, "StringIds", strings.rows())
        connection.commit()
        return connection.serialize()


def _fill(connection: sqlite3.Connection, name: str, rows: Iterable[Row]) -> None:
    """Make a table as soon as there is a row for it."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    columns = [column.split()[0] for column in COLUMNS[name].split(", ")]
    connection.execute(f"CREATE TABLE {name} ({COLUMNS[name]})")
    marks = ", ".join("?" * len(columns))
    values = (tuple(map(row.get, columns)) for row in chain([first], rows))
    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)  # noqa: S608 - names of the table above
