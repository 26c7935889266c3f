"""One large file read by several processes: where it can be cut, and a piece of it as a document of its own.

A cut is made where one event ends and the next seems to begin. Whether it does, reading tells: a piece that begins
between two events and is sound to its end ends between two events, so the next one begins there. Unless every piece
is sound, the file is read again in one go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bubblescope.ingest.document import BOM, SPACE
from bubblescope.ingest.stream import Progress, Stream

__all__ = ["Part", "Piece", "Split", "cut"]

T = TypeVar("T")

WORTH_A_PIECE = 24 << 20
"""Bytes below which a process more costs more than it saves."""

_NEAR = 1 << 20  # bytes looked through for a place to cut
_BORDER = re.compile(rb'\}\s*(,)\s*\{\s*"ph"\s*:')
_ENDS = {ord("{"): (b'{"traceEvents":[', b"]}"), ord("["): (b"[", b"]")}


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes from `begin` to `end` of a file, and the texts before and after that make a document of them."""

    path: Path
    begin: int
    end: int
    head: bytes = b""
    tail: bytes = b""


@dataclass(frozen=True, slots=True)
class Split:
    """The pieces of a file, and the processes that read all but the first."""

    pieces: Sequence[Piece]
    pool: Executor

    def each(self, read: Callable[[Piece, Progress | None], T | None], progress: Progress | None) -> list[T] | None:
        """What `read` makes of each piece, in order; None if that is None for any."""
        first, *others = self.pieces
        tasks = [self.pool.submit(read, piece, None) for piece in others]
        ours = read(first, None if progress is None else lambda done: progress(others[-1].end * done // first.end))
        if ours is None:
            return None
        found = [ours, *(task.result() for task in tasks)]
        return [part for part in found if part is not None] if None not in found else None


def cut(path: Path, most: int) -> list[Piece]:
    """Pieces of about the same size; a single one, or none, where the file is small or no text of events."""
    size = path.stat().st_size
    count = min(most, size // WORTH_A_PIECE)
    if count < 2:
        return []
    with path.open("rb") as file:
        ends = _ENDS.get(next(iter(file.read(64).removeprefix(BOM).lstrip(SPACE)), 0))
        if ends is None:
            return []
        commas: list[int] = []
        for number in range(1, count):
            start = file.seek(size * number // count)
            border = _BORDER.search(file.read(_NEAR))
            if border is None:
                return []
            commas.append(start + border.start(1))
        commas = sorted(set(commas))
    head, tail = ends
    starts, stops = [0, *(comma + 1 for comma in commas)], [*commas, size]
    return [
        Piece(path, start, stop, head if start else b"", tail if stop < size else b"")
        for start, stop in zip(starts, stops, strict=True)
    ]


class Part(Stream):
    """A piece, open for reading."""

    def __init__(self, piece: Piece, progress: Progress | None = None) -> None:
        super().__init__(piece.path)
        self._piece, self._told = piece, progress
        self._before, self._after = memoryview(piece.head), memoryview(piece.tail)
        self._left = piece.end - self._file.seek(piece.begin)

    def readinto(self, target: memoryview) -> int:
        """Fill `target` as far as one read goes; 0 at the end."""
        if self._before:
            count = _copy(self._before, target)
            self._before = self._before[count:]
            return count
        count = super().readinto(target[: self._left]) if self._left else 0
        if count:
            self._left -= count
            if self._told is not None:
                self._told(self._piece.end - self._piece.begin - self._left)
            return count
        count = _copy(self._after, target)
        self._after = self._after[count:]
        return count


def _copy(text: memoryview, target: memoryview) -> int:
    count = min(len(text), len(target))
    target[:count] = text[:count]
    return count
