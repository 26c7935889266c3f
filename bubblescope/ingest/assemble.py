"""From what was collected of a file to its `RankTrace`: whole ranges, one time base, tables in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.blocks import Blocks, natural, on_time_base, real_launches, renumber
from bubblescope.ingest.categories import Kind
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.described import described
from bubblescope.ingest.metadata import Members, identities
from bubblescope.ingest.parts import Part, parted
from bubblescope.ingest.plausible import plausible
from bubblescope.ingest.ranges import Ranges
from bubblescope.ingest.sessions import recordings
from bubblescope.ingest.shares import Hosted
from bubblescope.ingest.tables import Rows
from bubblescope.model.trace import Annotations, Finding, Identity, RankTrace, Severity, Source, Thread

__all__ = ["assemble"]


def assemble(
    path: Path, size: int, collected: Collector, told: Members, damage: Sequence[Finding] = ()
) -> list[RankTrace]:
    """The traces of the ranks, one for each recording of a rank; the first has what is to be said of the file.

    Args:
        path: the file.
        size: its bytes.
        collected: its events.
        told: the other members of its document.
        damage: what is to be said of its text.

    Raises:
        InputError: the file holds nothing that can be used, or several ranks that nothing tells apart.
    """
    kineto = told.marks or collected.kineto
    unpaired = _close_ranges(collected)
    blocks = _blocks(collected, kineto=kineto)
    if not (len(blocks[0]) or len(blocks[1]) or len(blocks[3])):
        raise _nothing(path, collected)

    blocks, absolute, lost = on_time_base(blocks, told.base)
    ops, annotations, launches, kernels, frames = blocks
    parts = parted(path, Hosted(ops, annotations, launches, frames), kernels, collected)  # type: ignore[arg-type]
    del blocks, ops, annotations, launches, kernels, frames
    who, odd = identities(path, told, parts, absolute=absolute)
    findings = [*damage, *odd, *_findings(path, {"unpaired-events": unpaired, "other-processes": parts.strays})]
    traces = []
    for part, identity in zip(parts.ranks, who, strict=True):
        source = Source(str(path), "kineto" if kineto else "chrome", size, collected.events)
        trace = _trace(part, collected, source, identity, absolute=absolute)
        named, strange = described(trace.identity, (trace.names[n] for n in np.unique(trace.annotations.name)), path)
        trace = replace(trace, identity=named, findings=(*findings, *strange))
        traces += recordings(plausible(trace, collected.unplaced + lost))
        findings, lost, collected.unplaced = [], 0, 0  # what concerns the file is said once
    return traces


def _trace(part: Part, collected: Collector, source: Source, identity: Identity, *, absolute: bool) -> RankTrace:
    """The events of a rank with tables of what they refer to."""
    hosted = part.hosted
    blocks: Blocks = [hosted.ops, hosted.annotations, hosted.launches, part.kernels, hosted.frames]
    blocks, names = renumber(blocks, "name", list(collected.names), str)
    blocks, threads = renumber(blocks, "thread", list(collected.threads.texts), natural)
    blocks, _ = renumber(blocks, "lane", list(collected.lanes.texts), natural)
    blocks, comms = renumber(blocks, "comm", list(collected.comms.table), repr)
    return RankTrace(
        source=source,
        identity=identity,
        absolute=absolute,
        names=tuple(names),
        threads=tuple(Thread(*key, tuple(collected.thread_names.get(key, ()))) for key in threads),
        comms=tuple(comms),
        **dict(zip(("ops", "annotations", "launches", "kernels", "frames"), blocks, strict=True)),  # type: ignore[arg-type]
    )


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


_WORDS: Mapping[str, tuple[Severity, str]] = {
    "unpaired-events": (
        "warning", "{count} events begin or end a range without its other half and were left out",
    ),
    "other-processes": (
        "info", "{count} events of other processes or devices are left out: they are too few for a rank",
    ),
}  # fmt: skip


def _findings(path: Path, counts: Mapping[str, int]) -> list[Finding]:
    return [
        Finding(code, _WORDS[code][0], _WORDS[code][1].format(count=count), str(path))
        for code, count in counts.items()
        if count
    ]
