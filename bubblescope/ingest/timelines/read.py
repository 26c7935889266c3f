"""The ranks of an instrumented timeline, one reader a format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bubblescope.ingest.stream import Progress
from bubblescope.ingest.timelines import chrome
from bubblescope.ingest.timelines.rows import parted
from bubblescope.model.slices import RankSlices
from bubblescope.model.trace import Source

__all__ = ["read_chrome"]


def read_chrome(path: Path, *, progress: Progress | None = None) -> Iterator[RankSlices]:
    """The ranks of a Chrome list in which slices name forwards; raises InputError."""
    found = chrome.read(path, progress=progress)
    source = Source(str(path), "timeline", path.stat().st_size, found.events)
    return parted(found.rows, source, found.lanes, found.findings)
