"""Actions that somebody named: ranges whose text says stage, kind or micro-batch, in one of the known dialects.

A label is host time, and lasts while its receive waits, so it never measures anything: it only says
which launches belong to the action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.options import LabelRule
from bubblescope.model.trace import Annotations, Finding, RankTrace
from bubblescope.reconstruct.dialects import DIALECTS, MESSAGE_DIALECTS, RECOMPUTED, Dialect, Ids, of_rule, read
from bubblescope.reconstruct.pieces import passes

__all__ = [
    "Labels",
    "action_labels",
    "dialect_of",
    "labels_of",
    "message_labels",
    "pipeline_stages",
    "unmatched",
]

_BACKWARD = (Kind.B, Kind.I)


@dataclass(frozen=True, eq=False)
class Labels(Columns):
    """Labelled host ranges in time order; ids that the text does not tell are -1.

    A range that names two actions is two rows with one `block`. Rows with one `block` and one kind
    are pieces of one action.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)
    direction: Ints = column(np.int8)
    block: Ints = column(np.int32)
    chunk: Ints = column(np.int32, absent=-1)


def action_labels(trace: RankTrace, rules: Sequence[LabelRule] = ()) -> Labels:
    """Labels of actions: the user's own, and for kinds that no rule names those of the first dialect that has any."""
    own = labels_of(trace, trace.annotations, lambda text: of_rule(text, rules)) if rules else Labels.empty()
    named = np.unique(own.kind)
    known = next((found for d in DIALECTS if len(found := _spoken(trace, d))), Labels.empty())
    both = Labels.concat((own, known.take(~np.isin(known.kind, named))))
    return both.take(np.lexsort((both.end, both.start)))


def dialect_of(trace: RankTrace) -> str | None:
    """The name of the first dialect that any action of a trace is named in, None where there is none."""
    return next((dialect.name for dialect in DIALECTS if len(_spoken(trace, dialect))), None)


def pipeline_stages(trace: RankTrace) -> tuple[int, ...]:
    """The stages that labels name which only pipelines have, -1 where they name none; empty without such labels."""
    texts = [trace.names[i] for i in np.unique(trace.annotations.name)]
    for dialect in (*DIALECTS, *MESSAGE_DIALECTS):
        named = [] if dialect.shared else [ids for text in texts for ids in read(text, dialect.words)]
        if named and _makes_sense(dialect, {ids.kind for ids in named}, texts):
            return tuple(sorted({ids.stage for ids in named}))
    return ()


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
    spoken = (labels_of(trace, trace.annotations, lambda text, d=d: read(text, d.words)) for d in MESSAGE_DIALECTS)  # type: ignore[misc]
    return next((_plain_ids(found) for found in spoken if len(found)), Labels.empty())


def labels_of(trace: RankTrace, ranges: Annotations, read: Callable[[str], tuple[Ids, ...]]) -> Labels:
    """Those of the ranges whose text names something, with what it names."""
    known = {int(i): found for i in np.unique(ranges.name) if (found := read(trace.names[i]))}
    rows = ranges.take(np.isin(ranges.name, list(known)))
    rows = rows.take(np.lexsort((rows.end, rows.start)))
    count = np.array([len(known[name]) for name in rows.name], np.int64)
    ids = np.array([found for name in rows.name for found in known[name]], np.int64).reshape(-1, len(Ids._fields))
    row = np.repeat(np.arange(len(rows)), count)
    kind, stage, chunk, microbatch, part, direction = ids.T
    block = np.where(count[row] > 1, row, -1)
    return Labels(rows.start[row], rows.end[row], kind, stage, microbatch, part, direction, block, chunk)


def _spoken(trace: RankTrace, dialect: Dialect) -> Labels:
    """The labels of a trace in one dialect; none where they do not make sense as such."""
    found = labels_of(trace, trace.annotations, lambda text: read(text, dialect.words))
    named = set(found.kind.tolist())
    if not _makes_sense(dialect, named, (trace.names[i] for i in np.unique(trace.annotations.name))):
        return Labels.empty()
    if dialect.pieces is not None:
        return _in_passes(found, trace, dialect)
    if dialect.split and Kind.W in named:
        found = found.replace(kind=np.where(found.kind == Kind.B, Kind.I, found.kind))
    return _outermost(_plain_ids(_recomputed(found)))


def _makes_sense(dialect: Dialect, kinds: Collection[int], texts: Iterable[str]) -> bool:
    """Whether labels of these kinds, among these texts, mean what they do in the dialect."""
    if dialect.both and not (Kind.F in kinds and {*kinds} & {*_BACKWARD}):
        return False
    return not dialect.sign or any(re.fullmatch(dialect.sign, text) for text in texts)


def _in_passes(found: Labels, trace: RankTrace, dialect: Dialect) -> Labels:
    """Pieces, each with the pass that it is of as its block; what belongs to no pass is left out."""
    if not len(found) or dialect.pieces is None:
        return Labels.empty()
    before = labels_of(
        trace,
        trace.annotations,
        lambda text: (Ids(0),) if re.fullmatch(dialect.pieces.before, text) else (),  # type: ignore[union-attr]
    )
    block = passes(trace, dialect.pieces.around).of(found.start, np.isin(found.start, before.start))
    return found.replace(block=block).take(block >= 0)


def _plain_ids(found: Labels) -> Labels:
    """The same without ids that tell nothing apart: one chunk is the whole rank, slice 0 alone a whole micro-batch."""
    chunk = found.chunk if len(np.unique(found.chunk[found.chunk >= 0])) > 1 else np.full(len(found), -1)
    part = found.slice if np.any(found.slice > 0) else np.full(len(found), -1)
    return found.replace(chunk=chunk, slice=part)


def _recomputed(found: Labels) -> Labels:
    """The same with recomputation as a part of the backward that it is for, where that follows at once."""
    again = np.flatnonzero(found.kind == RECOMPUTED)
    start = found.start.copy()
    for row in again[again + 1 < len(found)].tolist():
        mine, following = ((int(found.microbatch[r]), int(found.chunk[r]), int(found.slice[r])) for r in (row, row + 1))
        if mine == following and found.kind[row + 1] in _BACKWARD:
            start[row + 1] = start[row]
    return found.replace(start=start).take(found.kind != RECOMPUTED)


def _outermost(found: Labels) -> Labels:
    """The same without ranges that lie in another of their kind and name no micro-batch: they are that action."""
    inner = np.zeros(len(found), bool)
    for kind in np.unique(found.kind):
        rows = np.flatnonzero((found.kind == kind) & (found.microbatch < 0) & (found.block < 0))
        rows = rows[np.lexsort((-found.end[rows], found.start[rows]))]
        reach = np.maximum.accumulate(found.end[rows])
        inner[rows[1:]] = found.end[rows[1:]] <= reach[:-1]
    keep: Bools = ~inner
    return found.take(keep)
