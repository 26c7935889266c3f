"""Bytes of a file, inflated where it is gzip, through a buffer that slides over them.

What a file is decides its content: a gzip stream is told by its magic bytes, whatever the
file is called. Nothing here knows JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from bubblescope.errors import InputError
from bubblescope.ingest.ahead import Ahead
from bubblescope.ingest.inflate import GZIP_MAGIC, MOST_RATIO, BombError, CutOffError, DamagedError, Inflater
from bubblescope.ingest.repairs import Repairs

__all__ = ["WINDOW", "Buffer", "Place", "Progress", "Stream"]

WINDOW = 1 << 20  # bytes; the events of larger ones no longer fit into the caches of a processor

Progress = Callable[[int], None]
"""Called with the bytes of the file consumed so far, compressed where it is."""

Place = Callable[[int], int]
"""Where in the (inflated) text of the file the byte lies that stands there in a piece of it."""


class Stream:
    """A file open for reading; context manager.

    Where gzip is cut off or damaged the text ends, and `repairs` know it. Raises InputError where the file cannot be
    opened or read, or is a bomb.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self.inflated = 0
        self.repairs = Repairs()
        try:
            self.bytes = path.stat().st_size
            self._file: IO[bytes] = path.open("rb", buffering=0)
            magic = self._magic()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}", hint="Check the path.") from error
        self.gzipped = magic == GZIP_MAGIC
        self._inflater = Ahead(Inflater(self._file)) if self.gzipped else None

    def _magic(self) -> bytes:
        try:
            magic = self._file.read(2)
            self._file.seek(0)
        except OSError:
            self._file.close()
            raise
        return magic

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._inflater is not None:
            self._inflater.close()
        self._file.close()

    def readinto(self, target: memoryview) -> int:
        """Fill `target` from the file as far as one read goes; 0 at the end."""
        try:
            count = self._file.readinto(target) if self._inflater is None else self._inflate(target, self._inflater)  # type: ignore[attr-defined]
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}", hint="Check the file.") from error
        self.inflated += count
        if self._progress is not None:
            self._progress(min(self._file.tell(), self.bytes))
        return cast("int", count)

    def _inflate(self, target: memoryview, inflater: Ahead) -> int:
        try:
            count = inflater.readinto(target)
        except CutOffError:
            self.repairs.end(
                f"the gzip stream is cut off at byte {self.bytes}, which is byte {self.inflated} of the text"
            )
            return 0
        except DamagedError as error:
            self.repairs.end(
                f"the gzip stream is damaged near byte {error.at}, and what follows byte {self.inflated} of "
                f"the text is lost: {error}"
            )
            return 0
        except BombError as error:
            raise self._bomb() from error
        if not count and inflater.behind:
            self.repairs.drop(self.inflated, inflater.behind, "no gzip, behind the end of it")
            inflater.behind = 0
        return count

    def _bomb(self) -> InputError:
        return InputError(
            f"{self.path}: expected a trace, found gzip that holds more than {MOST_RATIO} times its own size, which no "
            "trace does",
            hint="If it is one, unpack it with gunzip, and give the file that comes out.",
        )


class Buffer:
    """The part of a stream that is in memory: `data[start:stop]`.

    `offset` is where `data[0]` lies in the (inflated) text. Who reads moves `start`;
    `fill` drops what lies before it and reads on.
    """

    def __init__(self, stream: Stream, size: int = WINDOW) -> None:
        self._stream = stream
        self.data = bytearray(size)
        self.start = 0
        self.stop = 0
        self.offset = 0
        self.ended = False

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def path(self) -> Path:
        """The file that is read."""
        return self._stream.path

    @property
    def repairs(self) -> Repairs:
        """What had to be mended so far."""
        return self._stream.repairs

    @property
    def whereabouts(self) -> int:
        """Where in the text the next byte lies."""
        return self.offset + self.start

    def fill(self) -> bool:
        """Read until the buffer is full or the file ends; False if nothing came.

        A buffer that is full already doubles.
        """
        self._slide()
        if self.stop == len(self.data):
            self.data.extend(bytes(len(self.data)))
        before = self.stop
        with memoryview(self.data) as view:
            while not self.ended and self.stop < len(view):
                count = self._stream.readinto(view[self.stop :])
                self.stop += count
                self.ended = count == 0
        return self.stop > before

    def make_room(self) -> None:
        """Put a byte of white space before the next one."""
        self.data[self.start : self.start] = b" "
        self.start += 1
        self.stop += 1
        self.offset -= 1

    def _slide(self) -> None:
        if self.start:
            self.data[: len(self)] = self.data[self.start : self.stop]
            self.offset += self.start
            self.stop -= self.start
            self.start = 0
