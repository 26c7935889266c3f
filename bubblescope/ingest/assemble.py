"""From what was collected of a file to its `RankTrace`: whole ranges, one time base, tables in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.categories import Kind
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.described import described
from bubblescope.ingest.metadata import Members, identify
from bubblescope.ingest.ranges import Ranges
from bubblescope.ingest.tables import Rows
from bubblescope.model.columns import Ints
from bubblescope.model.trace import Annotations, Finding, Kernels, Launches, Ops, RankTrace, Source, Thread

__all__ = ["assemble"]

_EPOCH = 10**18  # ns; a wall clock shows more since 2001, and no machine has been up for so long
_LAST = 2**63 - 1
_LAUNCHES = re.compile(r"(?i)launch|memcpy|memset|enqueue")

K = TypeVar("K")
Blocks = list[Ops | Annotations | Launches | Kernels]


def assemble(path: Path, size: int, collected: Collector, told: Members) -> RankTrace:
    """The trace; raises InputError if it holds nothing that can be used."""
    kineto = told.marks or collected.kineto
    unpaired = _close_ranges(collected)
    annotations = [collected.annotations.finish()] + ([] if kineto else [collected.others.finish()])
    ops, kernels = collected.ops.finish(), collected.kernels.finish()
    launches = _real_launches(collected.launches.finish(), kernels, list(collected.names))
    blocks: Blocks = [ops, Annotations.concat(annotations), launches, kernels, collected.frames.finish()]
    if not (len(blocks[0]) or len(blocks[1]) or len(kernels)):
        raise _nothing(path, collected)

    blocks, absolute, lost = _on_time_base(blocks, told.base)
    blocks, names = _renumber(blocks, "name", list(collected.names), str)
    blocks, threads = _renumber(blocks, "thread", list(collected.threads.texts), _natural)
    blocks, _ = _renumber(blocks, "lane", list(collected.lanes.texts), _natural)
    blocks, comms = _renumber(blocks, "comm", list(collected.comms.table), repr)
    identity, findings = identify(path, told)
    identity, odd = described(identity, (names[number] for number in np.unique(blocks[1].name)), path)
    return RankTrace(
        source=Source(str(path), "kineto" if kineto else "chrome", size, collected.events),
        identity=identity,
        absolute=absolute,
        names=tuple(names),
        threads=tuple(Thread(*key, tuple(collected.thread_names.get(key, ()))) for key in threads),
        comms=tuple(comms),
        findings=(
            *findings,
            *odd,
            *_findings(path, collected, unpaired=unpaired, implausible=collected.implausible + lost),
        ),
        **dict(zip(("ops", "annotations", "launches", "kernels", "frames"), blocks, strict=True)),  # type: ignore[arg-type]
    )


def _close_ranges(collected: Collector) -> int:
    """Add the ranges given in halves to the blocks they belong to; how many halves found no partner."""
    ranges = collected.halves.pair(collected.names[""])
    if ranges is None:
        return 0
    _pick(ranges, Kind.OP, collected.ops)
    _pick(ranges, Kind.ANNOTATION, collected.annotations)
    _pick(ranges, Kind.LAUNCH, collected.launches)
    _pick(ranges, Kind.OTHER, collected.others)
    for kind in (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET):
        _pick(ranges, kind, collected.kernels)
    return ranges.unpaired


def _pick(ranges: Ranges, kind: Kind, rows: Rows[Any]) -> None:
    ours = ranges.columns["kind"] == kind
    if ours.any():
        columns = ranges.columns | {"kind": ranges.columns["kind"] - np.int8(Kind.KERNEL)}
        rows.add(**{name: columns[name][ours] for name in rows.columns})


def _real_launches(calls: Launches, kernels: Kernels, names: Sequence[str]) -> Launches:
    """Those calls of the runtime that put work on a GPU, going by what they started or else by their name."""
    by_name = np.array([bool(_LAUNCHES.search(name)) for name in names], dtype=np.bool_)
    started = np.isin(calls.correlation, kernels.correlation[kernels.correlation >= 0])
    return calls.take(started | by_name[calls.name]) if len(calls) else calls


def _on_time_base(blocks: Blocks, base: int | None) -> tuple[Blocks, bool, int]:
    """The blocks counted from the epoch if the file allows; whether it does; how many events lie beyond all time."""
    late = sum(int((block.start > _EPOCH).sum()) for block in blocks)
    absolute = base is not None or 2 * late > sum(map(len, blocks))
    shift = base or 0
    moved: Blocks = []
    for block in blocks:
        fits = block.end <= _LAST - shift
        ours = block if fits.all() else block.take(fits)
        moved.append(ours.replace(start=ours.start + shift, end=ours.end + shift) if shift else ours)
    return moved, absolute, sum(map(len, blocks)) - sum(map(len, moved))


def _renumber(blocks: Blocks, column: str, table: list[K], rank: Callable[[K], Any]) -> tuple[Blocks, list[K]]:
    """Keep of a table what the blocks refer to, in order, whatever the order of the events was."""
    ours = [getattr(block, column, None) for block in blocks]
    used = np.zeros(len(table) + 1, dtype=np.bool_)  # the last place catches -1, which stays -1
    for numbers in ours:
        if numbers is not None:
            used[numbers] = True
    kept = sorted(np.flatnonzero(used[:-1]).tolist(), key=lambda number: rank(table[number]))
    places: Ints = np.full(len(used), -1, dtype=np.int32)
    places[kept] = np.arange(len(kept))
    renumbered: Blocks = [
        block if numbers is None else block.replace(**{column: places[numbers]})
        for block, numbers in zip(blocks, ours, strict=True)
    ]
    return renumbered, [table[number] for number in kept]


def _natural(pair: tuple[str, str]) -> list[tuple[int, str]]:
    return [(int(text), text) if text.isdecimal() and len(text) < 30 else (-1, text) for text in pair]


def _nothing(path: Path, collected: Collector) -> InputError:
    return InputError(
        f"{path}: expected kernels, operators or annotations, found none among {collected.events} events",
        hint="Record with ProfilerActivity.CPU, and with ProfilerActivity.CUDA where there is a GPU.",
    )


def _findings(path: Path, collected: Collector, *, unpaired: int, implausible: int) -> list[Finding]:
    told = (
        ("repaired", collected.repaired, "events were no objects and were left out"),
        ("unpaired-events", unpaired, "events begin or end a range without its other half and were left out"),
        (
            "implausible-times",
            implausible,
            "events had times that cannot be; the length was taken as 0, or they were left out",
        ),
    )
    return [Finding(code, "warning", f"{count} {text}", str(path)) for code, count, text in told if count]
