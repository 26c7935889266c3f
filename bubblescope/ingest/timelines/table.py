"""Rows of a table, checked and collected chunk by chunk, whichever kind of file they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.timelines.columns import HINT, IDS, Layout
from bubblescope.ingest.timelines.findings import Ignored
from bubblescope.ingest.timelines.rows import UNKNOWN, Rows
from bubblescope.ingest.timelines.words import LIMITS, Meaning, Role, meaning
from bubblescope.ingest.times import INVALID, from_decimals
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import Finding

__all__ = ["BAD", "CHUNK", "Chunk", "Collector", "ids", "kept", "times"]

BAD = -2
"""An id that is no number from 0, nor missing."""

CHUNK = 1 << 16
"""Rows taken at a time."""

_NOTHING = frozenset({"", "nan", "none", "null", "na", "n/a", "-1", "-1.0", "<na>"})
_LONGEST = 40

Chunk = Mapping[str, Any]
"""By field: kinds as texts, ids as integers, times in nanoseconds."""


def times(values: Sequence[Any], scale: int) -> Times:
    """Nanoseconds of texts or numbers in a unit of `scale` nanoseconds; INVALID of what is no time."""
    micros = Decimal(scale) / 1000
    return from_decimals([_scaled(value, micros) for value in values])


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
    if text in _NOTHING:
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
        self._bad: dict[str, tuple[int, int]] = {}  # reason: how many, the first
        self._ignored = Ignored()

    def add(self, chunk: Chunk) -> None:
        """Take some rows; those that cannot be are counted, and left out."""
        said = [_meaning(kind) for kind in chunk["kind"]]
        role = np.array([each.role for each in said], np.int8)
        ours = role != Role.NONE
        self._ignored.add(str(chunk["kind"][row]) for row in np.flatnonzero(~ours).tolist())
        start = chunk["start"]
        length = chunk["end"] - start if "end" in chunk else chunk["duration"]
        other = chunk["end" if "end" in chunk else "duration"]
        good = ours & ~self._reject(ours & (start == INVALID), "its start is no time")
        good &= ~self._reject(good & (other == INVALID), f"its {'end' if 'end' in chunk else 'duration'} is no time")
        good &= ~self._reject(good & (length < 0), "it ends before it starts")
        for field in IDS:
            if field in chunk:
                name = self._layout.columns[field].name
                good &= ~self._reject(good & (chunk[field] == BAD), f"its {name} is no whole number that can be")
        by_name = {
            name: np.array([getattr(each, name) for each in said], np.int64)
            for name in ("kind", "direction", "call", "stage", "microbatch", "slice")
        }
        told = {field: chunk[field] for field in IDS if field in chunk}
        for field in ("stage", "microbatch", "slice"):
            told[field] = np.where(
                told.get(field, by_name[field]) >= 0, told.get(field, by_name[field]), by_name[field]
            )
        named = {name: by_name[name][good] for name in ("kind", "direction", "call")}
        columns = {field: column[good] for field, column in told.items()}
        self._parts.append(Rows(start[good], (start + np.where(good, length, 0))[good], role[good], **columns, **named))
        self.rows += len(role)

    def _reject(self, bad: Bools, reason: str) -> Bools:
        rows = np.flatnonzero(bad)
        if len(rows):
            count, first = self._bad.get(reason, (0, self.rows + int(rows[0]) + 1))
            self._bad[reason] = count + len(rows), first
        return bad

    def finish(self) -> tuple[Rows, list[Finding]]:
        """The rows, and what is to be said of the others; raises InputError where no forward is left."""
        rows = Rows.concat(self._parts)
        reasons = [f"row {first}: {reason}" for reason, (_, first) in self._bad.items()]
        ignored = self._ignored.findings(self.path)
        if not np.any((rows.role == Role.ACTION) & (rows.kind == Kind.F)):
            why = [*reasons[:3], *(finding.message for finding in ignored)] or ["it has no rows"]
            raise InputError(f"{self.path}: expected forwards in the table, found none: {'; '.join(why)}", hint=HINT)
        found = [
            Finding("unusable-rows", "warning", f"{count} rows are left out, the first is row {first}: {reason}", where)
            for reason, (count, first) in self._bad.items()
            for where in [str(self.path)]
        ]
        if self._layout.ignored:
            shown = ", ".join(repr(name[:_LONGEST]) for name in self._layout.ignored[:8])
            more = ", ..." if len(self._layout.ignored) > 8 else ""
            message = f"columns that mean nothing here are left aside: {shown}{more}"
            found.append(Finding("ignored-columns", "info", message, str(self.path)))
        return rows, [*found, *ignored]


def _meaning(kind: Any) -> Meaning:
    """What a kind says; in a table a small `f` is a forward too."""
    return meaning("" if kind is None else str(kind).upper())
