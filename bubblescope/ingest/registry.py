"""Which reader takes which format. A new format is one module and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from bubblescope.errors import InputError
from bubblescope.ingest import chrome, nsys
from bubblescope.ingest.sniff import Kind, sniff
from bubblescope.ingest.stream import Progress
from bubblescope.ingest.timelines import csv, parquet, primus
from bubblescope.ingest.timelines import read as timelines
from bubblescope.ingest.timelines.words import tells_actions
from bubblescope.model.slices import RankSlices
from bubblescope.model.trace import RankTrace

__all__ = ["read"]


class Reader(Protocol):
    """Reads one file."""

    def __call__(self, path: Path, *, progress: Progress | None = None) -> Iterator[RankTrace | RankSlices]:
        """The events of the ranks of the file, one rank after the other; raises InputError."""


def _kineto(path: Path, *, progress: Progress | None = None) -> Iterator[RankTrace]:
    return iter(chrome.read_all(path, progress=progress))


def _chrome(path: Path, *, progress: Progress | None = None) -> Iterator[RankTrace | RankSlices]:
    """A profiler's trace, or a timeline: a list without kernels and operators in which slices are called forward."""
    traces = chrome.read_all(path, progress=progress)
    if any(trace.source.format == "chrome" and tells_actions(trace.names) for trace in traces):
        return timelines.read_chrome(path, progress=progress)
    return iter(traces)


_READERS: dict[Kind, Reader] = {
    "kineto": _kineto,
    "chrome": _chrome,
    "primus": primus.read,
    "csv": csv.read,
    "parquet": parquet.read,
    "nsys": nsys.read,
}


def read(path: str | Path, progress: Progress | None = None) -> Iterator[RankTrace | RankSlices]:
    """The events of each rank that a trace holds, whatever its format; of an instrumented timeline its slices.

    Raises InputError where it is no trace that can be read, which may show only when a rank is asked for.
    """
    path = Path(path)
    found = sniff(path)
    reader = _READERS.get(found.kind)
    if reader is None:
        raise InputError(f"{path}: expected a trace, found {found.looks_like}", hint=found.hint)
    return reader(path, progress=progress)
