"""Tables as text: comma, tab or semicolon between the columns, their names in the first line."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.stream import Progress, Stream
from bubblescope.ingest.timelines.columns import HINT, Layout, layout
from bubblescope.ingest.timelines.rows import parted
from bubblescope.ingest.timelines.table import CELL, CHUNK, TORN, Collector, ids, times
from bubblescope.model.slices import RankSlices
from bubblescope.model.trace import Source

__all__ = ["header", "is_wide", "read"]

_DELIMITERS = ",\t;"
_SAYS_DELIMITER = re.compile(r'"?sep=([^"\w ])"?', re.IGNORECASE)  # the first line that Excel writes and reads
_LONGEST = 64 << 10


def header(head: bytes) -> Layout | None:
    """The layout of a text that begins with `head`; None where its first line is no header of slices."""
    names, _ = _first(io.StringIO(head.decode(_encoding(head), "replace"), newline=""))
    found = layout(names)
    return found if found.meant else None


def is_wide(head: bytes) -> bool:
    """Whether a file that begins so is text in UTF-16, as Excel and PowerShell write it."""
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _encoding(head: bytes) -> str:
    return "utf-16" if is_wide(head) else "utf-8-sig"


def _first(text: io.TextIOBase) -> tuple[list[str], str]:
    """The names of the columns, with which a text begins, and what stands between them."""
    line = text.readline(_LONGEST).strip("\r\n")
    said = _SAYS_DELIMITER.fullmatch(line)
    if said:
        line = text.readline(_LONGEST).strip("\r\n")
    delimiter = said[1] if said else max(_DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def read(path: Path, *, progress: Progress | None = None) -> Iterator[RankSlices]:
    """The ranks of a table; raises InputError where it lacks a column or holds nothing that can be used."""
    with Stream(path, progress) as stream:
        source = io.BufferedReader(_Raw(stream), CHUNK)
        text = io.TextIOWrapper(source, _encoding(source.peek(2)), "replace", newline="")
        names, delimiter = _first(text)
        collected = Collector(path, found := layout(names))
        lines = csv.reader(text, delimiter=delimiter)
        try:
            while block := list(islice(lines, CHUNK)):
                collected.add(_chunk([row for row in block if row], found))
        except csv.Error as error:
            raise InputError(f"{path}: line {lines.line_num + 1}: {error}", hint=HINT) from error
        rows, findings = collected.finish()
        findings = [*stream.repairs.findings(path), *findings]
        read_from = Source(str(path), "table", stream.bytes, collected.rows)
    return parted(rows, read_from, findings=findings)


def _chunk(block: Sequence[Sequence[str]], found: Layout) -> dict[str, Any]:
    """The columns of some rows; what a row is short of is empty, and one that has more is torn."""
    width = found.width
    chunk: dict[str, Any] = {TORN: np.array([any(row[width:]) for row in block], bool)}
    even = block if all(len(row) == width for row in block) else [(*row, *[""] * width)[:width] for row in block]
    columns = list(zip(*even, strict=True)) or [()] * width
    chunk[CELL] = lambda field, row: columns[found.columns[field].index][row]
    for field, column in found.columns.items():
        values = columns[column.index]
        chunk[field] = (
            values if field == "kind" else times(values, column.scale) if column.scale else ids(values, field)
        )
    return chunk


class _Raw(io.RawIOBase):
    """A stream as Python's text layer wants it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        return self._stream.readinto(memoryview(target))
