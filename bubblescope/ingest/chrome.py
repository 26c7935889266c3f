"""Traces of the PyTorch Profiler (Kineto), and other traces in Chrome's JSON format.

The file is read once, in windows; only the columns of what is kept grow with its size.
"""

from __future__ import annotations

from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.ingest.assemble import assemble
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.document import broken, enter, first_byte, members, value
from bubblescope.ingest.events import decode_exact, decode_fast
from bubblescope.ingest.metadata import Members
from bubblescope.ingest.pause import collector_paused
from bubblescope.ingest.stream import WINDOW, Buffer, Progress, Stream
from bubblescope.ingest.times import InexactError
from bubblescope.ingest.windows import windows
from bubblescope.model.trace import RankTrace

__all__ = ["read"]


def read(path: str | Path, *, progress: Progress | None = None, window: int = WINDOW) -> RankTrace:
    """The events of one rank.

    Args:
        path: A trace, as JSON or gzip of it, told by content.
        progress: Called with the bytes of the file consumed so far.
        window: Bytes of text held at a time.

    Raises:
        InputError: The file cannot be read, is broken or cut off, or holds nothing that can be used.
    """
    path, collector, told = Path(path), Collector(), Members()
    with Stream(path, progress) as stream, collector_paused():
        _read_document(Buffer(stream, window), collector, told)
        return assemble(path, stream.bytes, collector, told)


def _read_document(buffer: Buffer, collector: Collector, told: Members) -> None:
    opened = enter(buffer)
    if opened == ord("["):
        _read_events(buffer, collector)
        return
    if opened != ord("{"):
        raise broken(buffer, buffer.start, "'{' or '['")
    seen = False
    for key in members(buffer):
        if key == "traceEvents" and first_byte(buffer) == ord("["):
            _read_events(buffer, collector)
            seen = True
        else:
            told.take(key, value(buffer, keep=key in Members.WANTED))
    if not seen:
        raise InputError(f"{buffer.path}: JSON, but with no traceEvents", hint="Give a trace of the PyTorch Profiler.")


def _read_events(buffer: Buffer, collector: Collector) -> None:
    """Collect the list at the next byte; once times need their text, they are taken from it at once."""
    exact = False

    def decode(text: memoryview) -> bool:
        nonlocal exact
        window = decode_exact(text) if exact else decode_fast(text)
        try:
            collector.add(window)
        except InexactError:
            window = decode_exact(text)
            collector.add(window)
        exact = window.exact
        return True

    for _ in windows(buffer, decode):
        pass
