"""A long JSON list of objects, decoded in windows that end where an object ends.

Looking for `},{` from the end of a window finds a border of two events, or the same bytes in a
string or in a nested list. Decoding tells them apart: a cut in the wrong place leaves a quote or a
bracket open, so it never decodes. No byte is copied for it: the comma of a border is
overwritten, with `]` to end one window and with `[` to begin the next.

A window that does not decode gives up what stands before the damage, and `damage.py` sees to the
event that it is in; from behind it, windows go on.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import msgspec

from bubblescope.ingest import damage
from bubblescope.ingest.damage import Decode
from bubblescope.ingest.document import SPACE
from bubblescope.ingest.mending import COMMAS
from bubblescope.ingest.stream import Buffer

__all__ = ["windows"]

T = TypeVar("T")

_TRIES = 2  # likely borders tried before the brackets are counted, which is slow but sure
_OPENING = re.compile(rb'\{\s*"[^"\\]*"')
_FAR = 4096  # bytes; an event's first key lies nearer to its beginning
_TOKEN = re.compile(rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]]')
_BYTE = re.compile(r"\(byte (\d+)\)")


def windows(buffer: Buffer, decode: Decode[T]) -> Iterator[T]:
    """What `decode` makes of the list that begins at `buffer.start`, window by window.

    `decode` is given the text of a list, and what tells where in the file a place of that text lies; it raises
    `msgspec.DecodeError` if the text is no list.
    Afterwards the buffer stands behind the list, or at the end of a file that ends before it; what is damaged is
    mended or left out, and `buffer.repairs` tell.
    """
    while True:
        if 2 * len(buffer) < len(buffer.data) and not buffer.ended:  # not each time, where events are damaged
            buffer.fill()
        done, result = _window(buffer, decode)
        if result is not None:
            yield result
        elif not done:
            buffer.fill()
        if done:
            return


def _window(buffer: Buffer, decode: Decode[T]) -> tuple[bool, T | None]:
    """Decode up to the last border; whether the list ended, and the result if there was a border."""
    limit = buffer.stop
    for cut in _candidates(buffer):
        try:
            return False, _decode(buffer, cut, decode)
        except msgspec.DecodeError as failed:
            where = _BYTE.search(str(failed))
            if where is not None:  # until there the text is sound, so no earlier border will do better
                limit = buffer.start + int(where[1])
                break
    return _counted(buffer, decode, limit)


def _counted(buffer: Buffer, decode: Decode[T], limit: int) -> tuple[bool, T | None]:
    """The same by counting brackets up to `limit`, for when guessing failed; less and less until it decodes."""
    while True:
        border, end = _structure(buffer, limit)
        cut = border if end is None else end
        if cut is None or buffer.data[cut] == ord("}"):
            break
        if end is not None and buffer.data[buffer.start : end].strip(SPACE) == b",":
            buffer.repairs.mend(buffer.whereabouts, {COMMAS: 1})
        try:
            return end is not None, _decode(buffer, cut, decode)
        except msgspec.DecodeError as failed:
            where = _BYTE.search(str(failed))
            at = buffer.start + int(where[1]) if where else limit
            limit = at if at < limit else (buffer.start + min(cut, limit)) // 2
    if cut is None and limit == buffer.stop and not buffer.ended and len(buffer) < damage.LONGEST_EVENT:
        return False, None
    return damage.step(buffer, decode)


def _decode(buffer: Buffer, cut: int, decode: Decode[T]) -> T:
    """Decode the list from `start` to the comma or bracket at `cut`, and step there."""
    data = buffer.data
    before = data[cut]
    data[buffer.start] = ord("[")
    data[cut] = ord("]")
    try:
        with memoryview(data) as whole, whole[buffer.start : cut + 1] as text:
            result = decode(text, partial(operator.add, buffer.whereabouts))
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deep") from error
    finally:
        data[cut] = before
    buffer.start = cut + (before == ord("]"))
    return result


def _candidates(buffer: Buffer) -> Iterator[int]:
    """Where the last event might end: before the last `},{`, else before one that opens as the first event does."""
    last = next(_borders(buffer, b"{"), None)
    if last is None:
        return
    yield last
    opening = _OPENING.search(buffer.data, buffer.start + 1, min(buffer.start + _FAR, buffer.stop))
    if opening is not None:
        alike = islice(_borders(buffer, opening[0]), _TRIES)
        yield from (cut for cut in alike if cut != last)


def _borders(buffer: Buffer, opening: bytes) -> Iterator[int]:
    """Commas between `}` and an object that begins like `opening`, last first."""
    data, at = buffer.data, buffer.stop
    while (at := data.rfind(opening, buffer.start, at)) > buffer.start:
        comma = _back(data, at)
        if data[comma] == ord(",") and data[_back(data, comma)] == ord("}") and comma > buffer.start:
            yield comma


def _back(data: bytearray, at: int) -> int:
    at -= 1
    while at > 0 and data[at] in SPACE:
        at -= 1
    return at


def _structure(buffer: Buffer, limit: int) -> tuple[int | None, int | None]:
    """The last border before `limit`, and the bracket that ends the list."""
    depth = 0
    borders: list[int] = []  # where the last two events ended
    for token in _TOKEN.finditer(buffer.data, buffer.start + 1, limit):
        byte = token[0]
        if byte in b"{[":
            depth += 1
        elif byte in b"}]":
            if depth == 0:
                return None, token.start()
            depth -= 1
            if depth == 0:
                borders = [*borders[-1:], token.end()]
    for at in reversed(borders):
        while at < limit and buffer.data[at] in SPACE:
            at += 1  # noqa: PLW2901 - steps from the end of an event to its comma
        if at < limit and buffer.data[at] == ord(","):
            return at, None
    return None, None
