"""The rows of a timeline, whatever its format, and how they are parted by rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.blocks import EPOCH
from bubblescope.ingest.metadata import named
from bubblescope.ingest.tables import MOST_RANKS
from bubblescope.ingest.timelines.words import CALLS, Role
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.slices import ActionSlices, CallSlices, MessageSlices, RankSlices, Slices
from bubblescope.model.trace import Coordinate, Finding, Identity, RankSource, Source

__all__ = ["PLACES", "UNKNOWN", "Rows", "parted", "told_for_all"]

S = TypeVar("S", bound=Slices)

UNKNOWN = -1
PLACES = ("rank", "pp", "dp", "tp", "stage")
"""What a lane or a process may tell of all of its rows."""

_HINT = "docs/timelines.md says what slices are called, and how they name their rank."


@dataclass(frozen=True, eq=False)
class Rows(Columns):
    """Slices of a file. `lane` and `process` number the threads and processes of formats that have them."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    role: Ints = column(np.int8)
    step: Times = column(np.int64, absent=UNKNOWN)
    kind: Ints = column(np.int8, absent=UNKNOWN)
    direction: Ints = column(np.int8, absent=UNKNOWN)
    call: Ints = column(np.int32, absent=UNKNOWN)
    stage: Ints = column(np.int32, absent=UNKNOWN)
    chunk: Ints = column(np.int32, absent=UNKNOWN)
    microbatch: Ints = column(np.int32, absent=UNKNOWN)
    slice: Ints = column(np.int32, absent=UNKNOWN)
    peer: Ints = column(np.int32, absent=UNKNOWN)
    rank: Ints = column(np.int32, absent=UNKNOWN)
    pp: Ints = column(np.int32, absent=UNKNOWN)
    dp: Ints = column(np.int32, absent=UNKNOWN)
    tp: Ints = column(np.int32, absent=UNKNOWN)
    lane: Ints = column(np.int32, absent=UNKNOWN)
    process: Ints = column(np.int32, absent=UNKNOWN)


def parted(
    rows: Rows, source: Source, lanes: Sequence[tuple[str, str]] = (), findings: Sequence[Finding] = ()
) -> Iterator[RankSlices]:
    """The ranks of a file, one after the other; raises InputError where no forward is among the rows.

    Args:
        rows: all rows of the file.
        source: the file.
        lanes: process and thread of each lane.
        findings: what is to be said of the file; the first rank says it.
    """
    path = source.path
    rank, coordinates, told_by = _ranks(rows, lanes)
    absolute = bool(2 * np.count_nonzero(rows.start > EPOCH) > len(rows))
    restarts = _restarts(rows, rank)
    lost = (rank == UNKNOWN) | (restarts & (rows.step < 0))
    said = [*findings, *_lost(path, int(lost.sum()))]
    if not np.any((rows.role == Role.ACTION) & (rows.kind == Kind.F) & ~lost):
        why = "".join(f"; {finding.message}" for finding in said)
        raise InputError(f"{path}: expected forwards of a pipeline, found none{why}", hint=_HINT)
    order = np.argsort(rank, kind="stable")
    order = order[~lost[order]]
    numbers, first = np.unique(rank[order], return_index=True)
    said += [*_several(rows.take(order), first, numbers, path), *_from_one(rows, path)]
    for number, index in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
        identity, more = _identity(Path(path), (number, told_by), coordinates.get(number, ()), len(numbers) > 1)
        yield _slices(
            rows.take(index), source, identity, (absolute, restarts), (*said, *more) if number == numbers[0] else more
        )


def _slices(
    rows: Rows, source: Source, identity: Identity, clock: tuple[bool, bool], findings: Sequence[Finding]
) -> RankSlices:
    """The rows of one rank by what they are; calls that do not occur are left out."""
    calls = rows.call[rows.role == Role.COLLECTIVE]
    used, place = np.unique(calls, return_inverse=True)
    collectives = _as(CallSlices, rows, Role.COLLECTIVE)
    return RankSlices(
        source=source,
        identity=identity,
        absolute=clock[0],
        restarts=clock[1],
        actions=_as(ActionSlices, rows, Role.ACTION),
        messages=_as(MessageSlices, rows, Role.MESSAGE),
        collectives=collectives.replace(call=place),
        optimizer=_as(Slices, rows, Role.OPTIMIZER),
        extents=_as(Slices, rows, Role.STEP),
        calls=tuple(CALLS[call] for call in used.tolist()),
        findings=tuple(findings),
    )


def _as(block: type[S], rows: Rows, role: Role) -> S:
    mine = rows.take(rows.role == role)
    return block(*(getattr(mine, field.name) for field in fields(block)))


def _identity(
    path: Path, rank: tuple[int, RankSource | None], coordinates: tuple[Coordinate, ...], merged: bool
) -> tuple[Identity, list[Finding]]:
    """Who a rank is, by its number and what tells it; those of one file share its clock."""
    number, told_by = rank
    identity = Identity(
        rank=None if told_by is None else number,
        rank_source=told_by,
        coordinates=coordinates,
        clock=str(path) if merged else None,
    )
    return (identity, []) if merged else named(path, identity)


def _lost(path: str, count: int) -> list[Finding]:
    if not count:
        return []
    message = (
        f"{count} slices tell neither rank nor stage, or no step where every step counts from 0; they are left out"
    )
    return [Finding("unusable-rows", "warning", message, path)]


def _several(rows: Rows, first: Ints, numbers: Ints, path: str) -> list[Finding]:
    """A word on ranks whose rows stand at several places; the rows of a rank begin at `first`."""
    found = []
    for axis in ("pp", "dp", "tp"):
        at = getattr(rows, axis)
        low = np.minimum.reduceat(np.where(at < 0, np.iinfo(at.dtype).max, at), first)
        high = np.maximum.reduceat(at, first)
        several = np.flatnonzero(low < high)
        if len(several):
            one = several[0]
            message = (
                f"rows of one rank name several places, on {len(several)} of {len(first)} ranks; rank {numbers[one]} "
                f"stands at {axis} {low[one]} and {high[one]}: several ranks are taken as one; number ranks over all "
                "replicas, or leave their column out, so that the places number them"
            )
            found.append(Finding("overlapping-slices", "warning", message, path))
    return found


def _from_one(rows: Rows, path: str) -> list[Finding]:
    """A word on ids that seem to count from 1: all from there on are seen, and 0 is not."""
    acting = rows.take(rows.role == Role.ACTION)
    ids = {"stages": acting.stage, "micro-batches": acting.microbatch, "ranks": acting.rank}
    odd = [name for name, values in ids.items() if values.min(initial=2) == 1 and _unbroken(values)]
    if not odd:
        return []
    message = (
        f"{' and '.join(odd)} seem to count from 1, and are taken to count from 0, so that number 0 counts as missing; "
        "write them from 0"
    )
    return [Finding("ids-from-one", "warning", message, path)]


def _unbroken(values: Ints) -> bool:
    """Whether values whose least is 1 are several, and all up to the largest."""
    used = np.unique(values)
    return len(used) > 1 and int(used[-1]) == len(used)


Told = tuple[Ints, dict[int, tuple[Coordinate, ...]], RankSource | None]
"""The rank of each row, where each rank stands, and what tells the numbers: None where they are only those of an order.

`label` are numbers made of the places, which `align.places` makes again of those of all files.
"""


def _ranks(rows: Rows, lanes: Sequence[tuple[str, str]]) -> Told:
    """Who each row is of.

    A row of a table that does not tell what others do is of no rank; a lane of a list may stand for all of its rows.
    """
    acting = rows.role == Role.ACTION
    told = np.all if lanes else np.any
    if told(rows.rank[acting] >= 0):
        pp = _positions(rows, acting)
        placed = pp[acting].min(initial=0) >= 0
        return rows.rank, _coordinates(rows.replace(pp=pp), rows.rank) if placed else {}, "metadata"
    pp = rows.pp
    if np.all(pp[acting] < 0) and told(rows.stage[acting] >= 0) and (not lanes or _crowded(rows)):
        pp = rows.stage  # one stage a rank: nothing tells otherwise
    if told(pp[acting] >= 0) or not lanes:
        rank = _megatron(pp, rows.dp, rows.tp)
        return rank, _coordinates(rows.replace(pp=pp), rank), "label"
    return _by_lane(rows, lanes, acting)


def _positions(rows: Rows, acting: Ints) -> Ints:
    """Where each rank stands in its pipeline: as told, else by its first stage, where replicas are told apart."""
    told = rows.take(acting & (rows.rank >= 0))
    if np.any(told.pp >= 0) or not len(told) or min(told.dp.min(), told.stage.min()) < 0:
        return rows.pp
    first = np.full(int(rows.rank.max()) + 1, np.iinfo(np.int32).max)
    np.minimum.at(first, told.rank, told.stage)
    return np.where(rows.rank >= 0, np.append(first, UNKNOWN)[rows.rank], UNKNOWN)


def _megatron(pp: Ints, dp: Ints, tp: Ints) -> Ints:
    """Ranks in Megatron's order: tensor-parallel ranks are neighbours, stages far apart.

    Megatron-LM, megatron/core/parallel_state.py. Numbers that no job has are damage: UNKNOWN.
    """
    width, depth = (max(int(axis.max(initial=0)) + 1, 1) for axis in (tp, dp))
    rank: Ints = (pp.astype(np.int64) * depth + np.maximum(dp, 0)) * width + np.maximum(tp, 0)
    return np.where((pp >= 0) & (rank < MOST_RANKS), rank, UNKNOWN)


def _coordinates(rows: Rows, rank: Ints) -> dict[int, tuple[Coordinate, ...]]:
    """Where each rank stands on the axes that the file tells; other files may hold more of each axis."""
    axes = {name: getattr(rows, name) for name in ("pp", "dp", "tp") if np.any(getattr(rows, name) >= 0)}
    numbers, first = np.unique(rank, return_index=True)
    return {
        number: tuple(Coordinate(name, int(axis[at]), 0) for name, axis in axes.items() if axis[at] >= 0)
        for number, at in zip(numbers.tolist(), first.tolist(), strict=True)
    }


def _crowded(rows: Rows) -> bool:
    """Whether actions of several stages overlap on one lane, so that it cannot be one rank."""
    rows = rows.take(rows.role == Role.ACTION)
    rows = rows.take(np.lexsort((rows.start, rows.lane)))
    again = (rows.lane[1:] == rows.lane[:-1]) & (rows.start[1:] < rows.end[:-1]) & (rows.stage[1:] != rows.stage[:-1])
    return bool(10 * np.count_nonzero(again) > len(rows))


def _by_lane(rows: Rows, lanes: Sequence[tuple[str, str]], acting: Ints) -> Told:
    """A rank for each process that acts, or for each thread where there is one process.

    Their ids are the ranks where they count from 0.
    """
    several = len(np.unique(rows.process[acting])) > 1
    key = rows.process if several else rows.lane
    used = np.unique(key[acting])
    ids = [next(lanes[lane][0 if several else 1] for lane in rows.lane[key == number][:1]) for number in used.tolist()]
    values = [int(text) if text.isdecimal() and len(text) < 7 else UNKNOWN for text in ids]
    counted = len(used) > 1 and sorted(values) == list(range(len(used)))
    number = np.array(values if counted else range(len(used)), np.int64)
    place = np.full(int(key.max(initial=0)) + 2, UNKNOWN)
    place[used] = number
    return place[key], {}, "metadata" if counted else None


def _restarts(rows: Rows, rank: Ints) -> bool:
    """Whether times count from the start of each step: on most ranks every step lies where the others do."""
    rows, rank = rows.take(rows.step >= 0), rank[rows.step >= 0]
    order = np.lexsort((rows.step, rank))
    rows, rank = rows.take(order), rank[order]
    if not len(rows):
        return False
    begin = np.flatnonzero(np.append(True, (np.diff(rank) != 0) | (np.diff(rows.step) != 0)))
    start, end = np.minimum.reduceat(rows.start, begin), np.maximum.reduceat(rows.end, begin)
    follows = rank[begin][1:] == rank[begin][:-1]
    back = start[1:] - start[:-1] < (end[:-1] - start[:-1]) / 2
    return bool(2 * np.count_nonzero(follows & back) > np.count_nonzero(follows))


def told_for_all(values: Ints, groups: Ints) -> Ints:
    """The values, each that is missing filled in by the one that its group tells, if it tells one only."""
    known = np.unique(np.stack((groups[values >= 0], values[values >= 0]), axis=1), axis=0)
    group, count = np.unique(known[:, 0], return_counts=True)
    single = known[np.isin(known[:, 0], group[count == 1])]
    table = np.full(int(groups.max(initial=0)) + 1, UNKNOWN)
    table[single[:, 0]] = single[:, 1]
    return np.where(values >= 0, values, table[groups])
