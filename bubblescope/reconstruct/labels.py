"""Actions that somebody named: ranges whose text says stage, kind or micro-batch.

A dialect is a row of a table: a pattern with the groups `kind`, `stage`, `microbatch` and, for
sends and receives, `direction`. A label is host time, and lasts while its receive waits, so it
never measures anything: it only says which launches belong to the action.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.options import LabelRule
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import Finding, RankTrace

__all__ = ["DIALECTS", "Dialect", "Labels", "action_labels", "message_labels", "unmatched"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one framework names its pipeline work; `kind` fixes the kind that the pattern has no group for."""

    name: str
    pattern: str
    kind: Kind | None = None


DIALECTS: tuple[Dialect, ...] = (
    # torch/distributed/pipelining/schedules.py: _PipelineScheduleRuntime (2.9 and later), then ScheduleGPipe.
    Dialect("torch stages", r"PP:(?P<stage>\d{1,4})(?P<kind>[FBIW])(?P<microbatch>\d{1,6})(\.(?P<slice>\d{1,6}))?"),
    Dialect("torch gpipe", r"(?P<kind>Forward|Backward) (?P<microbatch>\d{1,6})"),
)

MESSAGE_DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "torch stages",
        r"PP:(?P<stage>\d{1,4})(?P<direction>SEND|RECV)_(?P<kind>[FB])(?P<microbatch>\d{1,6})(\.(?P<slice>\d{1,6}))?",
    ),
)

_OVERLAPPED = r"PP:\((?P<first>.{2,40});(?P<second>.{2,40})\)OVERLAP_F_B"  # torch/distributed/pipelining, _Action
_KINDS = {"F": Kind.F, "B": Kind.B, "I": Kind.I, "W": Kind.W, "Forward": Kind.F, "Backward": Kind.B}
_DIRECTIONS = {"SEND": Messages.SEND, "RECV": Messages.RECV}


_Ids = tuple[int, ...]
"""Kind, stage, micro-batch, slice and direction of a label."""


@dataclass(frozen=True, eq=False)
class Labels(Columns):
    """Labelled host ranges in time order; ids that the text does not tell are -1.

    A range that names two actions is two rows with one `block`.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)
    direction: Ints = column(np.int8)
    block: Ints = column(np.int32)


def action_labels(trace: RankTrace, rules: Sequence[LabelRule] = ()) -> Labels:
    """Labels of actions: the user's own, and for kinds that no rule names those of the first dialect that has any."""
    own = _read(trace, [Dialect(f"--label {rule.kind}", rule.pattern, Kind[rule.kind]) for rule in rules])
    named = np.unique(own.kind)
    known = next((found for d in DIALECTS if len(found := _read(trace, [d]))), Labels.empty())
    both = Labels.concat((own, known.take(~np.isin(known.kind, named))))
    return both.take(np.lexsort((both.end, both.start)))


def unmatched(trace: RankTrace, rules: Sequence[LabelRule]) -> tuple[Finding, ...]:
    """A warning for every rule of the user that no range of the trace answers to."""
    names = [trace.names[i] for i in np.unique(trace.annotations.name)]
    idle = [rule for rule in rules if not any(re.search(rule.pattern, name) for name in names)]
    return tuple(
        Finding("unmatched-label", "warning", f"--label {rule.kind}={rule.pattern} matches no range", trace.source.path)
        for rule in idle
    )


def message_labels(trace: RankTrace) -> Labels:
    """Labels of sends and receives."""
    return _read(trace, MESSAGE_DIALECTS)


def _read(trace: RankTrace, dialects: Sequence[Dialect]) -> Labels:
    known = {i: found for i, name in enumerate(trace.names) if (found := _named(name, dialects))}
    rows = trace.annotations.take(np.isin(trace.annotations.name, list(known)))
    rows = rows.take(np.lexsort((rows.end, rows.start)))
    count = np.array([len(known[name]) for name in rows.name], np.int64)
    ids = np.array([found for name in rows.name for found in known[name]], np.int64).reshape(-1, 5)
    row = np.repeat(np.arange(len(rows)), count)
    kind, stage, microbatch, part, direction = ids.T
    block = np.where(count[row] > 1, row, -1)
    return Labels(rows.start[row], rows.end[row], kind, stage, microbatch, part, direction, block)


def _named(name: str, dialects: Sequence[Dialect]) -> list[_Ids]:
    """What a label names: an action, two overlapped ones, or none."""
    both = re.fullmatch(_OVERLAPPED, name, re.ASCII)
    parts = [name] if both is None else [f"PP:{both['first']}", f"PP:{both['second']}"]
    found = [_parse(part, dialects) for part in parts]
    return [ids for ids in found if ids is not None] if None not in found else []


def _parse(name: str, dialects: Sequence[Dialect]) -> _Ids | None:
    for dialect in dialects:
        match = (
            re.fullmatch(dialect.pattern, name, re.ASCII) if dialect.kind is None else re.search(dialect.pattern, name)
        )
        if match is not None:
            return _ids(match, dialect)
    return None


def _ids(match: re.Match[str], dialect: Dialect) -> _Ids:
    groups = match.groupdict()
    if not groups and match.re.groups:
        groups = {"microbatch": match[1]}
    kind = _KINDS[groups["kind"]] if dialect.kind is None else dialect.kind
    ids = (int(groups[g]) if _is_id(groups.get(g)) else -1 for g in ("stage", "microbatch", "slice"))
    return (int(kind), *ids, _DIRECTIONS.get(groups.get("direction") or "", -1))


def _is_id(text: str | None) -> bool:
    """Whether a group of a label is a number that a stage or a micro-batch can have."""
    return text is not None and len(text) <= 6 and text.isascii() and text.isdecimal()
