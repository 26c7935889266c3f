"""Rows of a table, checked and collected chunk by chunk, whichever kind of file they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.tables import Table
from bubblescope.ingest.timelines.columns import HINT, IDS, Layout
from bubblescope.ingest.timelines.faults import Fault, of_id, of_time, shown
from bubblescope.ingest.timelines.findings import Ignored
from bubblescope.ingest.timelines.rows import UNKNOWN, Rows
from bubblescope.ingest.timelines.words import LIMITS, NOTHING, Meaning, Role, meaning
from bubblescope.ingest.times import INVALID, from_decimals
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Floats, Ints, Times
from bubblescope.model.trace import Finding

__all__ = ["BAD", "CELL", "CHUNK", "TORN", "Chunk", "Collector", "from_floats", "ids", "kept", "times"]

BAD = -2
"""An id that is no number from 0, nor missing."""

CHUNK = 1 << 16
"""Rows taken at a time."""

TORN = "torn"
"""Beside the fields of a chunk: which rows hold more than there are columns, so that none can be trusted."""

_BACKWARDS = "backwards"
_BY_NAME = ("role", "kind", "direction", "call", "stage", "microbatch", "slice")

CELL = "cell"
"""Beside the fields of a chunk: what the file holds at a field and a row of the chunk, as a function."""

Chunk = Mapping[str, Any]
"""By field: kinds as texts, ids as integers, times in nanoseconds."""


def times(values: Sequence[Any], scale: int) -> Times:
    """Nanoseconds of texts or numbers in a unit of `scale` nanoseconds; INVALID of what is no time.

    Where doubles lie a quarter of a nanosecond apart or less, they tell it as well as digits do, and sooner.
    """
    micros = Decimal(scale) / 1000
    try:
        doubles = np.array(list(map(float, values)))
    except (TypeError, ValueError):
        return from_decimals([_scaled(value, micros) for value in values])
    near = np.abs(doubles) <= 2.0**50 / scale  # False for NaN
    found = from_floats(np.where(near, doubles, 0.0), scale)
    for row in np.flatnonzero(~near).tolist():
        found[row] = from_decimals([_scaled(values[row], micros)])[0]
    return found


def from_floats(values: Floats, scale: int) -> Times:
    """Nanoseconds of doubles, whole units and fractions apart, so that nothing is rounded twice; else INVALID."""
    valid = np.abs(values) <= 2.0**52 * 1000 / scale  # False for NaN; the limit is that of bubblescope.ingest.times
    values = np.where(valid, values, 0.0)
    whole = np.floor(values)
    nanos = whole.astype(np.int64) * scale + np.rint((values - whole) * scale).astype(np.int64)
    return np.where(valid, nanos, INVALID)


def _scaled(value: Any, micros: Decimal) -> Decimal:
    try:
        return Decimal(str(value).strip()) * micros
    except ArithmeticError:
        return Decimal("NaN")


def ids(values: Sequence[Any], field: str) -> Ints:
    """Numbers of texts or numbers: UNKNOWN where there is none, BAD where it is no id."""
    known: dict[Any, int] = {}
    found = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        if value not in known:
            known[value] = _id(value, LIMITS[field])
        found[row] = known[value]
    return found


def kept(values: Ints, field: str) -> Ints:
    """The same of integers: UNKNOWN where negative, BAD where too large."""
    return np.where(values < 0, UNKNOWN, np.where(values > LIMITS[field], BAD, values))


def _id(value: Any, limit: int) -> int:
    text = "" if value is None else str(value).strip().lower()
    if text in NOTHING:
        return UNKNOWN
    try:
        number = Decimal(text)
    except ArithmeticError:
        return BAD
    whole = number.is_finite() and number.adjusted() < 19 and number == number.to_integral_value()
    return int(number) if whole and 0 <= number <= limit else BAD


class Collector:
    """Takes the chunks of one table."""

    def __init__(self, path: Path, layout: Layout) -> None:
        if layout.lacking:
            raise InputError(f"{path}: a table without a column for {', '.join(layout.lacking)}", hint=HINT)
        self.path = path
        self.rows = 0
        self._layout = layout
        self._parts: list[Rows] = []
        self._bad: dict[str, tuple[int, int, Fault]] = {}  # what is wrong: how many, the first, why
        self._ignored = Ignored()

    def add(self, chunk: Chunk) -> None:
        """Take some rows; those that cannot be are counted, and left out."""
        meanings: Table[Meaning] = Table()
        of_word = {word: meanings[_meaning(word)] for word in set(chunk["kind"])}
        said = np.array([of_word[word] for word in chunk["kind"]], np.int64)
        tables = {field: np.array([getattr(each, field) for each in meanings], np.int64) for field in _BY_NAME}
        ours = tables["role"][said] != Role.NONE
        self._ignored.add(str(chunk["kind"][row]) for row in np.flatnonzero(~ours).tolist())
        good = np.flatnonzero(ours & self._usable(chunk, ours))
        last = chunk["end"][good] if "end" in chunk else chunk["start"][good] + chunk["duration"][good]
        told = {field: chunk[field][good] for field in IDS if field in chunk}
        by_name = {field: table[said[good]] for field, table in tables.items()}
        for field in ("stage", "microbatch", "slice"):
            if field in told:
                by_name[field] = np.where(told[field] >= 0, told[field], by_name[field])
        self._parts.append(Rows(start=chunk["start"][good], end=last, **{**told, **by_name}))
        self.rows += len(said)

    def _usable(self, chunk: Chunk, ours: Bools) -> Bools:
        """Which of our rows can be, each of the others counted for the first reason against it."""
        last = "end" if "end" in chunk else "duration"
        length = chunk["end"] - chunk["start"] if "end" in chunk else chunk["duration"]
        checks = {
            TORN: chunk.get(TORN, False),
            "start": chunk["start"] == INVALID,
            last: chunk[last] == INVALID,
            _BACKWARDS: length < 0,
            **{field: chunk[field] == BAD for field in IDS if field in chunk},
        }
        good = ours.copy()
        for wrong, bad in checks.items():
            rows = np.flatnonzero(good & bad)
            if len(rows):
                row = int(rows[0])
                count, first, fault = self._bad.get(wrong) or (0, self.rows + row + 1, self._fault(wrong, chunk, row))
                self._bad[wrong] = count + len(rows), first, fault
                good[rows] = False
        return good

    def _fault(self, wrong: str, chunk: Chunk, row: int) -> Fault:
        """What is wrong with a row of a chunk."""
        if wrong == TORN:
            return Fault("it has more fields than there are columns", "a number is written with a decimal point")
        if wrong != _BACKWARDS:
            column = self._layout.columns[wrong]
            return (of_time if column.scale else of_id)(column, chunk[CELL](wrong, row))
        fields = ("start", "end") if "end" in chunk else ("duration",)
        told = [f"{self._layout.columns[field].name} is {shown(chunk[CELL](field, row))}" for field in fields]
        return Fault(f"it ends before it starts: {', '.join(told)}")

    def finish(self) -> tuple[Rows, list[Finding]]:
        """The rows, and what is to be said of the others; raises InputError where no forward is left."""
        rows = Rows.concat(self._parts)
        reasons = [f"row {first}: {fault.reason}" for _, first, fault in self._bad.values()]
        ignored = self._ignored.findings(self.path)
        if not np.any((rows.role == Role.ACTION) & (rows.kind == Kind.F)):
            why = [*reasons[:3], *(finding.message for finding in ignored)] or [f"none of its {self.rows} rows is one"]
            remedy = next((fault.remedy for *_, fault in self._bad.values() if fault.remedy), "")
            hint = f"{remedy[0].upper()}{remedy[1:]}. {HINT}" if remedy else HINT
            raise InputError(f"{self.path}: expected forwards in the table, found none: {'; '.join(why)}", hint=hint)
        where = str(self.path)
        found = [
            Finding("unusable-rows", "warning", f"rows left out: {count}; the first is row {first}: {fault}", where)
            for count, first, fault in self._bad.values()
        ]
        if self._layout.ignored:
            message = f"columns that mean nothing here are left aside: {self._layout.quoted}"
            found.append(Finding("ignored-columns", "info", message, where))
        for name, counts in self._layout.doubled[:1]:
            more = f"; so are {len(self._layout.doubled) - 1} more" if self._layout.doubled[1:] else ""
            which = "the first column of that name" if name == counts else shown(counts)
            message = f"{shown(name)} is left aside, because {which} tells the same{more}"
            found.append(Finding("ignored-columns", "info", message, where))
        return rows, [*found, *ignored]


def _meaning(kind: Any) -> Meaning:
    """What a kind says; in a table a small `f` is a forward too."""
    return meaning("" if kind is None else str(kind).upper())
