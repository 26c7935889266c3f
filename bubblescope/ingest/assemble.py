"""From what was collected of a file to its `RankTrace`: whole ranges, one time base, tables in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.blocks import Blocks, natural, on_time_base, real_launches, renumber
from bubblescope.ingest.categories import Kind
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.described import described
from bubblescope.ingest.metadata import Members, identify
from bubblescope.ingest.plausible import plausible
from bubblescope.ingest.ranges import Ranges
from bubblescope.ingest.tables import Rows
from bubblescope.model.trace import Annotations, Finding, RankTrace, Source, Thread

__all__ = ["assemble"]


def assemble(path: Path, size: int, collected: Collector, told: Members, damage: Sequence[Finding] = ()) -> RankTrace:
    """The trace, with what is to be said of its `damage`; raises InputError if it holds nothing that can be used."""
    kineto = told.marks or collected.kineto
    unpaired = _close_ranges(collected)
    blocks = _blocks(collected, kineto=kineto)
    if not (len(blocks[0]) or len(blocks[1]) or len(blocks[3])):
        raise _nothing(path, collected)

    blocks, absolute, lost = on_time_base(blocks, told.base)
    blocks, names = renumber(blocks, "name", list(collected.names), str)
    blocks, threads = renumber(blocks, "thread", list(collected.threads.texts), natural)
    blocks, _ = renumber(blocks, "lane", list(collected.lanes.texts), natural)
    blocks, comms = renumber(blocks, "comm", list(collected.comms.table), repr)
    identity, findings = identify(path, told)
    identity, odd = described(identity, (names[number] for number in np.unique(blocks[1].name)), path)
    trace = RankTrace(
        source=Source(str(path), "kineto" if kineto else "chrome", size, collected.events),
        identity=replace(identity, clock=identity.host if absolute else None),
        absolute=absolute,
        names=tuple(names),
        threads=tuple(Thread(*key, tuple(collected.thread_names.get(key, ()))) for key in threads),
        comms=tuple(comms),
        findings=(
            *damage,
            *findings,
            *odd,
            *_findings(path, unpaired),
        ),
        **dict(zip(("ops", "annotations", "launches", "kernels", "frames"), blocks, strict=True)),  # type: ignore[arg-type]
    )
    return plausible(trace, collected.unplaced + lost)


def _blocks(collected: Collector, *, kineto: bool) -> Blocks:
    """Operators, annotations, launches, kernels and frames."""
    annotations = [collected.annotations.finish()] + ([] if kineto else [collected.others.finish()])
    kernels = collected.kernels.finish()
    launches = real_launches(collected.launches.finish(), kernels, list(collected.names))
    return [collected.ops.finish(), Annotations.concat(annotations), launches, kernels, collected.frames.finish()]


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


def _nothing(path: Path, collected: Collector) -> InputError:
    return InputError(
        f"{path}: expected kernels, operators or annotations, found none among {collected.events} events",
        hint="Record with ProfilerActivity.CPU, and with ProfilerActivity.CUDA where there is a GPU.",
    )


def _findings(path: Path, unpaired: int) -> list[Finding]:
    told = (("unpaired-events", unpaired, "events begin or end a range without its other half and were left out"),)
    return [Finding(code, "warning", f"{count} {text}", str(path)) for code, count, text in told if count]
