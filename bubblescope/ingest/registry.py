"""Which reader takes which format. A new format is one module and one line here."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bubblescope.errors import InputError
from bubblescope.ingest import chrome
from bubblescope.ingest.sniff import Kind, sniff
from bubblescope.ingest.stream import Progress
from bubblescope.model.trace import RankTrace

__all__ = ["read"]


class Reader(Protocol):
    """Reads one file."""

    def __call__(self, path: Path, *, progress: Progress | None = None) -> RankTrace:
        """The events of the file; raises InputError."""


_READERS: dict[Kind, Reader] = {
    "kineto": chrome.read,
    "chrome": chrome.read,
}


def read(path: str | Path, progress: Progress | None = None) -> RankTrace:
    """The events of a trace, whatever its format; raises InputError where it is none that can be read."""
    path = Path(path)
    found = sniff(path)
    reader = _READERS.get(found.kind)
    if reader is None:
        raise InputError(f"{path}: expected a trace, found {found.looks_like}", hint=found.hint)
    return reader(path, progress=progress)
