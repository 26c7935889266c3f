"""Which reader takes which format. A new format is one module and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from bubblescope.errors import InputError
from bubblescope.ingest import chrome, nsys
from bubblescope.ingest.pieces import Split
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


class SplitReader(Protocol):
    """Reads one file, with the help of other processes."""

    def __call__(
        self, path: Path, *, progress: Progress | None = None, split: Split | None = None
    ) -> Iterator[RankTrace | RankSlices]:
        """As a `Reader`."""


def _kineto(path: Path, *, progress: Progress | None = None, split: Split | None = None) -> Iterator[RankTrace]:
    return iter(chrome.read_all(path, progress=progress, split=split))


def _chrome(
    path: Path, *, progress: Progress | None = None, split: Split | None = None
) -> Iterator[RankTrace | RankSlices]:
    """A profiler's trace, or a timeline: a list without kernels and operators in which slices are called forward."""
    traces = chrome.read_all(path, progress=progress, split=split)
    if any(trace.source.format == "chrome" and tells_actions(trace.names) for trace in traces):
        return timelines.read_chrome(path, progress=progress)
    return iter(traces)


_SPLIT_READERS: dict[Kind, SplitReader] = {"kineto": _kineto, "chrome": _chrome}
_READERS: dict[Kind, Reader] = {
    **_SPLIT_READERS,
    "primus": primus.read,
    "csv": csv.read,
    "parquet": parquet.read,
    "nsys": nsys.read,
}


def read(
    path: str | Path, progress: Progress | None = None, split: Split | None = None
) -> Iterator[RankTrace | RankSlices]:
    """The events of each rank that a trace holds, whatever its format; of an instrumented timeline its slices.

    `split` is how several processes read the file, where its format allows.
    Raises InputError where it is no trace that can be read, which may show only when a rank is asked for.
    """
    path = Path(path)
    found = sniff(path)
    reader = _READERS.get(found.kind)
    if reader is None:
        raise InputError(f"{path}: expected a trace, found {found.looks_like}", hint=found.hint)
    together = _SPLIT_READERS.get(found.kind)
    return reader(path, progress=progress) if together is None else together(path, progress=progress, split=split)
