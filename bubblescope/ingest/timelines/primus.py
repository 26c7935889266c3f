"""AMD Primus' dumps of a pipeline: one JSON a rank, by step lists of starts and ends, in ms from the step's own start.

`primus_settings` reads what is told beside them.

`{"1": {"total": 7557.0, "memory": 84.3, "fwd_start": [...], "fwd_end": [...], "bwd_start": [...], "bwd_end": [...]}}`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from bubblescope.errors import InputError
from bubblescope.ingest.document import LONGEST_KEPT, BrokenError, broken, enter, members, value
from bubblescope.ingest.metadata import named
from bubblescope.ingest.stream import Buffer, Progress, Stream
from bubblescope.ingest.timelines import primus_settings
from bubblescope.ingest.times import INVALID, from_numbers
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Times
from bubblescope.model.slices import ActionSlices, RankSlices, Slices
from bubblescope.model.trace import Coordinate, Identity, Source

__all__ = ["is_dump", "read"]

_STEP = re.compile(r"\d{1,18}")
_MARKS = (b'"fwd_start"', b'"bwd_start"')
_HINT = "Dump it again; docs/timelines.md shows the lists that are expected."


class _Step(Struct):
    """A step; times in milliseconds from its own start."""

    fwd_start: list[float]
    fwd_end: list[float]
    bwd_start: list[float]
    bwd_end: list[float]
    total: float = 0.0


def is_dump(key: str, head: bytes) -> bool:
    """Whether a document whose first key is `key`, and which goes on with `head`, is such a dump."""
    return _STEP.fullmatch(key) is not None and all(mark in head for mark in _MARKS)


def read(path: Path, *, progress: Progress | None = None) -> Iterator[RankSlices]:
    """The one rank of a dump; raises InputError where its lists are no times or differ in length."""
    actions, extents = [], []
    with Stream(path, progress) as stream:
        buffer = Buffer(stream)
        enter(buffer)
        for key, at, text in _members(buffer):
            if _STEP.fullmatch(key):
                mine, extent = _step(path, key, text, at)
                actions.append(mine)
                extents.append(extent)
        if not sum(map(len, actions)):
            raise broken(buffer, buffer.start, "a step with forwards")
        damage = stream.repairs.findings(path)
    identity, findings = named(path, Identity())
    if identity.rank is not None:  # one file for each position of one pipeline
        identity = replace(identity, coordinates=(Coordinate("pp", identity.rank, 0),))
    settings, odd = primus_settings.beside(path)
    forwards = {int((each.kind == Kind.F).sum()) for each in actions}
    identity, conflicts = primus_settings.applied(settings, identity, forwards, path)
    done = ActionSlices.concat(actions)
    yield RankSlices(
        source=Source(str(path), "timeline", stream.bytes, len(done)),
        identity=identity,
        absolute=False,
        restarts=True,
        pipelined=True,
        actions=done,
        extents=Slices.concat(extents),
        findings=(*damage, *findings, *odd, *conflicts),
    )


def _members(buffer: Buffer) -> Iterator[tuple[str, int, bytes]]:
    """Each key, where its value lies and the text of that, as far as the document is whole."""
    told = False
    try:
        for key in members(buffer):
            at = buffer.whereabouts
            yield key, at, value(buffer, LONGEST_KEPT)
            told = True
    except BrokenError:
        if not told:
            raise
        buffer.repairs.end(f"the text is broken at byte {buffer.whereabouts}; what follows is left out")


def _step(path: Path, key: str, text: bytes, at: int) -> tuple[ActionSlices, Slices]:
    """The actions of a step, and how long it took in all."""
    try:
        step = msgspec.json.decode(text, type=_Step)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: step {key} (byte {at}): {error}", hint=_HINT) from error
    parts = [
        _actions(path, key, kind, starts, ends)
        for kind, starts, ends in (
            (Kind.F, step.fwd_start, step.fwd_end),
            (Kind.B, step.bwd_start, step.bwd_end),
        )
    ]
    total = _nanos([step.total])
    return ActionSlices.concat(parts), Slices(np.zeros(1, np.int64), np.maximum(total, 0), np.array([int(key)]))


def _actions(path: Path, key: str, kind: Kind, starts: Sequence[float], ends: Sequence[float]) -> ActionSlices:
    start, end = _nanos(starts), _nanos(ends)
    word = f"{path}: step {key}: {'forwards' if kind == Kind.F else 'backwards'}"
    if len(start) != len(end):
        raise InputError(f"{word}: expected as many ends as starts, found {len(end)} and {len(start)}", hint=_HINT)
    bad = np.flatnonzero((start == INVALID) | (end < start))
    if len(bad):
        where = int(bad[0])
        raise InputError(f"{word}: number {where} lasts from {starts[where]} to {ends[where]} ms", hint=_HINT)
    unknown = np.full(len(start), -1)
    of_all = np.full(len(start), int(key)), np.full(len(start), int(kind))
    return ActionSlices(start, end, *of_all, unknown, unknown, unknown, unknown)


def _nanos(millis: Sequence[float]) -> Times:
    """Milliseconds to nanoseconds; these count from a step's start, so that doubles hold them."""
    return from_numbers([value * 1000.0 for value in millis])
