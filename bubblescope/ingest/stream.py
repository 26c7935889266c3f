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
from bubblescope.ingest.inflate import GZIP_MAGIC, CutOffError, DamagedError, Inflater

__all__ = ["WINDOW", "Buffer", "Progress", "Stream"]

WINDOW = 1 << 20  # bytes; the events of larger ones no longer fit into the caches of a processor

Progress = Callable[[int], None]
"""Called with the bytes of the file consumed so far, compressed where it is."""


class Stream:
    """A file open for reading; context manager.

    Raises InputError where the file cannot be opened, read or inflated.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self.inflated = 0
        try:
            self.bytes = path.stat().st_size
            self._file: IO[bytes] = path.open("rb", buffering=0)
            magic = self._file.read(2)
            self._file.seek(0)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}", hint="Check the path.") from error
        self.gzipped = magic == GZIP_MAGIC
        self._inflater = Inflater(self._file) if self.gzipped else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def readinto(self, target: memoryview) -> int:
        """Fill `target` from the file as far as one read goes; 0 at the end."""
        try:
            if self._inflater is not None:
                count = self._inflater.readinto(target)
            else:
                count = cast("int", self._file.readinto(target))  # type: ignore[attr-defined]
        except CutOffError as error:
            raise self._cut_off() from error
        except DamagedError as error:
            raise self._damaged(error) from error
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}", hint="Check the file.") from error
        self.inflated += count
        if self._progress is not None:
            self._progress(min(self._file.tell(), self.bytes))
        return count

    def _cut_off(self) -> InputError:
        return InputError(
            f"{self.path}: the gzip stream is cut off: expected its end, found the end of the file at byte "
            f"{self.bytes} (byte {self.inflated} of the text)",
            hint="Copy or record the file again; a job that was killed while writing leaves such a file.",
        )

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path}: the gzip stream is damaged near byte {self._file.tell()} "
            f"(byte {self.inflated} of the text): {error}",
            hint="Copy the file again, in binary mode.",
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

    def _slide(self) -> None:
        if self.start:
            self.data[: len(self)] = self.data[self.start : self.stop]
            self.offset += self.start
            self.stop -= self.start
            self.start = 0
