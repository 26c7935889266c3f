"""Exports of Nsight Systems read with nothing but SQL and struct."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace

from bubblescope.emit import write

KERNELS, LAUNCHES, RANGES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"


class Export:
    """The tables of a file, as lists of dictionaries; texts in place of their numbers."""

    def __init__(self, path):
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            select = "SELECT * FROM {}".format
            self.tables = {name: [dict(row) for row in connection.execute(select(name))] for name in names}
            self.columns = {name: columns(connection, name) for name in names}
        self.text = {row["id"]: row["value"] for row in self.tables["StringIds"]}

    def __getitem__(self, name):
        return self.tables[name]

    def named(self, name):
        """The rows of a table, each with its name: that of a kernel, a function or a range."""
        key = {KERNELS: "demangledName", LAUNCHES: "nameId", RANGES: "textId"}[name]
        return [{**row, "name": row.get("text") or self.text[row[key]]} for row in self[name]]

    def calls(self):
        """NCCL's own ranges, in order, each with its payload."""
        found = [row for row in self.named(RANGES) if row["domainId"] == 1 and row["eventType"] == 59]
        return sorted(({**row, "payload": self.payload(row)} for row in found), key=lambda row: row["start"])

    def payload(self, row):
        """The values of a range by name, from JSON or from bytes; None where there are none."""
        if row["jsonText"] is not None:
            return json.loads(row["jsonText"])
        if row["binaryData"] is None:
            return None
        domain, _, schema, _, size, whole = struct.unpack_from("<4I2Q", row["binaryData"])
        assert (domain, whole, len(row["binaryData"])) == (1, 32 + size, 32 + size)
        values = {}
        for entry in self["NVTX_PAYLOAD_SCHEMA_ENTRIES"]:
            if entry["schemaId"] == schema:
                code = {5: "<i", 18: "<Q", 22: "<Q"}.get(entry["type"], "<i")  # all others are enumerations
                values[entry["name"]] = struct.unpack_from(code, row["binaryData"], 32 + (entry["offset"] or 0))[0]
        return values


def columns(connection, name):
    """What a table's columns are: name, type, whether NULL is refused, place in the primary key."""
    return [(row[1], row[2], row[3], row[5]) for row in connection.execute(f"PRAGMA table_info({name})")]


def exports(folder, job, **more):
    """A job's files as nsys leaves them, read."""
    return [Export(path) for path in write(replace(job, recorder="nsys", **more), folder)]


def span(row):
    """When something was."""
    return row["start"], row["end"]
