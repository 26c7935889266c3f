"""Text inflated by a thread of its own, a few megabytes ahead of who reads it: inflating holds no lock of Python's."""

from __future__ import annotations

import threading
from queue import Empty, Queue

from bubblescope.ingest.inflate import Inflater

__all__ = ["Ahead"]

_BLOCK = 4 << 20  # bytes; small enough for memory, large enough to be worth a turn of the thread
_BLOCKS = 2  # that may wait to be read


class Ahead:
    """Reads as an `Inflater` does; a file of less than a block starts no thread.

    Close it before the file.
    """

    def __init__(self, inflater: Inflater) -> None:
        self._inflater = inflater
        self._read = 0
        self._thread: threading.Thread | None = None
        self._blocks: Queue[memoryview | Exception] = Queue(_BLOCKS)
        self._block = memoryview(b"")
        self._last: Exception | None = None
        self._ended = False
        self._closed = False

    @property
    def behind(self) -> int:
        """As of the inflater, once the end is read."""
        return self._inflater.behind

    @behind.setter
    def behind(self, value: int) -> None:
        self._inflater.behind = value

    def readinto(self, target: memoryview) -> int:
        """Inflate into `target`; 0 at the end. Raises what the inflater raised, once all before it is out."""
        if self._read < _BLOCK:
            count = self._inflater.readinto(target)
            self._read += count
            return count
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        if not self._block and not self._ended:
            self._next()
        if not self._block and self._last is not None:
            raise self._last
        count = min(len(self._block), len(target))
        target[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        while self._thread is not None and self._thread.is_alive():
            try:
                self._blocks.get(timeout=0.01)  # it may wait for a place
            except Empty:
                continue

    def _next(self) -> None:
        found = self._blocks.get()
        if isinstance(found, Exception):
            self._last, self._ended = found, True
        else:
            self._block, self._ended = found, not found

    def _run(self) -> None:
        """Put blocks, then what went wrong or an empty block."""
        try:
            while not self._closed:
                block = memoryview(bytearray(_BLOCK))
                count, filled = -1, 0
                try:
                    while count and filled < _BLOCK:
                        count = self._inflater.readinto(block[filled:])
                        filled += count
                finally:
                    if filled:
                        self._blocks.put(block[:filled])
                if not count:
                    self._blocks.put(memoryview(b""))
                    return
        except Exception as error:  # noqa: BLE001 - whoever reads is to know
            self._blocks.put(error)
