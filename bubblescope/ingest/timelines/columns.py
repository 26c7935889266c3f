"""What the columns of a table are: fields by their names, units at the end of a name, and what is lacking."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bubblescope.ingest.timelines.words import alias_rank, field_of

__all__ = ["HINT", "IDS", "Column", "Layout", "layout"]

HINT = (
    "Name the columns rank (or stage), kind, start_us and end_us (or duration_us), and step, stage and microbatch "
    "where they are known; docs/timelines.md has an example."
)
IDS = ("rank", "pp", "dp", "tp", "stage", "chunk", "step", "microbatch", "slice", "peer")
_TIMES = ("start", "end", "duration")
_LONGEST = 40
_NAMED = 8
_LONGEST_NAME = 200  # characters; the header of what is no table may be one name, in which a unit is sought long

_UNITS = {
    1: "ns nsec nsecs nanosecond nanoseconds nanos",
    10**3: "us µs μs usec usecs microsecond microseconds micros",
    10**6: "ms msec msecs millisecond milliseconds millis",
    10**9: "s sec secs second seconds",
}
_SCALE = {unit: scale for scale, units in _UNITS.items() for unit in units.split()}
_WITH_UNIT = re.compile(rf"(.*\S)[\s_.(\[-]+({'|'.join(map(re.escape, _SCALE))})[)\]]?", re.IGNORECASE)

_DIALECTS: tuple[tuple[frozenset[str], Mapping[str, str], int], ...] = (
    # ByteDance-Seed/StragglerAnalysis, trace-*.parquet: seconds, and a stage is a position of the pipeline.
    (frozenset({"optype", "start_ts", "duration", "dp_rank", "stage", "mc", "mb_id"}), {"stage": "pp"}, 10**9),
)
"""Columns that only one program writes together: what they mean there, and the unit of times that name none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is used; `scale` are the nanoseconds of its unit, 0 where it holds no times."""

    index: int
    name: str
    field: str
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What a header says: the columns by field, those that mean nothing, and in words what is missing.

    `doubled` are columns that would tell what another does, and that other one; `width` counts all columns.

    `meant` is whether it looks like a table of slices at all.
    """

    columns: Mapping[str, Column]
    ignored: tuple[str, ...]
    doubled: tuple[tuple[str, str], ...]
    width: int
    lacking: tuple[str, ...]
    meant: bool

    @property
    def quoted(self) -> str:
        """The first of the columns that mean nothing, as they may be printed."""
        shown = ", ".join(repr(name[:_LONGEST]) for name in self.ignored[:_NAMED])
        return f"{shown}, ..." if len(self.ignored) > _NAMED else shown


def layout(header: Sequence[str], typed: Mapping[str, int] | None = None) -> Layout:
    """The layout of a table; `typed` are the nanoseconds of the unit of columns whose type tells it."""
    names = [name.strip().strip('"').strip()[:_LONGEST_NAME] for name in header]
    dialect = next((known for known in _DIALECTS if known[0] <= set(names)), (frozenset(), {}, 0))
    found: dict[str, Column] = {}
    unitless: dict[str, str] = {}
    for index, name in enumerate(names):
        column = _column(index, name, dialect, typed or {})
        if column is None:
            continue
        if column.field in _TIMES and not column.scale:
            unitless.setdefault(column.field, name)
        elif column.field not in found or alias_rank(_bare(name)) < alias_rank(_bare(found[column.field].name)):
            found[column.field] = column
    used = {column.index for column in found.values()}
    known = {at: column.field for at, name in enumerate(names) if (column := _column(at, name, dialect, typed or {}))}
    doubled = {at: found[field] for at, field in known.items() if at not in used and field in found}
    return Layout(
        columns=found,
        ignored=tuple(name for index, name in enumerate(names) if index not in used and index not in doubled),
        doubled=tuple((names[index], counts.name) for index, counts in doubled.items()),
        width=len(names),
        lacking=tuple(_lacking(found, unitless)),
        meant=_meant(found.keys() | unitless.keys()),
    )


def _meant(told: Collection[str]) -> bool:
    """Whether a table with these fields looks like one of slices: enough is known to say what lacks."""
    fields = frozenset(told)
    placed = bool(fields & {"rank", "pp", "stage"})
    return len(fields & {"kind", *_TIMES}) > 1 or len(fields) > 2 or (placed and "kind" in fields)


def _column(
    index: int, name: str, dialect: tuple[frozenset[str], Mapping[str, str], int], typed: Mapping[str, int]
) -> Column | None:
    field = dialect[1].get(name) or field_of(name) or field_of(_bare(name))
    if field not in _TIMES:
        whole = field_of(name) if name not in dialect[1] else field
        return Column(index, name, whole) if whole is not None else None
    unit = _WITH_UNIT.fullmatch(name)
    scale = typed.get(name) or (_SCALE[unit[2].lower()] if unit else dialect[2])
    return Column(index, name, field, scale)


def _bare(name: str) -> str:
    """The name without its unit."""
    unit = _WITH_UNIT.fullmatch(name)
    return unit[1] if unit else name


def _lacking(found: Mapping[str, Column], unitless: Mapping[str, str]) -> list[str]:
    """What a table needs and does not have, in words."""
    words = []
    if not found.keys() & {"rank", "pp", "stage"}:
        words.append("rank or stage")
    if "kind" not in found:
        words.append("kind")
    if "start" not in found:
        words.append(_of_time("start", unitless))
    if not found.keys() & {"end", "duration"}:
        words.append(_of_time("end", unitless) if "end" in unitless else _of_time("duration", unitless))
    return words


def _of_time(field: str, unitless: Mapping[str, str]) -> str:
    name = unitless.get(field)
    if name is None:
        return field
    return f"{field} with its unit (call {name!r} {name}_us, or _ns, _ms, _s)"
