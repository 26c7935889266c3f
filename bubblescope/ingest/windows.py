"""A long JSON list of objects, decoded in windows that end where an object ends.

Looking for `},{` from the end of a window finds a border of two events, or the same bytes in a
string or in a nested list. Decoding tells them apart: a cut in the wrong place leaves a quote or a
bracket open, so it never decodes. No byte is copied for it: the comma of a border is
overwritten, with `]` to end one window and with `[` to begin the next.

A window that does not decode gives up what stands before the damage, and `damage.py` sees to the
event that it is in; from behind it, windows go on. Words that are no JSON are no such damage.
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
from bubblescope.ingest.bare_words import WithoutWords, position
from bubblescope.ingest.damage import Decode
from bubblescope.ingest.document import SPACE
from bubblescope.ingest.mending import COMMAS
from bubblescope.ingest.stream import Buffer

__all__ = ["windows"]

T = TypeVar("T")

_TRIES = 2  # likely borders tried before the brackets are counted, which is slow but sure
_LOOKED_AT = 10_000  # openings; where so many are no border, they stand in a string
_OPENING = re.compile(rb'\{\s*"[^"\\]*"')
_FAR = 4096  # bytes; an event's first key lies nearer to its beginning
_TOKEN = re.compile(rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|(?::\s*+)?+([{}\[\]])')
_AT_FIRST = 4096  # bytes looked at, also behind damage, and twice as many with each success: its end may be near
_DEEPEST = 64  # brackets within each other; more than for a damaged event, for what is sound must not be taken for one


def windows(buffer: Buffer, decode: Decode[T]) -> Iterator[T]:
    """What `decode` makes of the list that begins at `buffer.start`, window by window.

    `decode` is given the text of a list, and what tells where in the file a place of that text lies; it raises
    `msgspec.DecodeError` if the text is no list.
    Afterwards the buffer stands behind the list, or at the end of a file that ends before it; what is damaged is
    mended or left out, and `buffer.repairs` tell.
    """
    reach = _AT_FIRST
    decode = WithoutWords(decode, buffer.repairs)
    while True:
        if 2 * len(buffer) < len(buffer.data) and not buffer.ended:  # not each time, where events are damaged
            buffer.fill()
        stop = min(buffer.stop, buffer.start + reach)
        try:
            done, result = _window(buffer, decode, stop)
            reach = min(2 * reach, len(buffer.data))
        except _OpenError:
            if stop < buffer.stop:
                reach *= 2
            else:
                buffer.fill()
            continue
        except _DamageError:
            done, result = damage.step(buffer, decode)
            reach = _AT_FIRST
        if result is not None:
            yield result
        if done:
            return


class _OpenError(Exception):
    """No event ends in the window, as far as brackets tell."""


class _DamageError(Exception):
    """The first event of the window is damaged."""


def _window(buffer: Buffer, decode: Decode[T], stop: int) -> tuple[bool, T | None]:
    """Decode up to the last border before `stop`; whether the list ended, and the result."""
    limit = stop
    for cut in _candidates(buffer, stop):
        try:
            return False, _decode(buffer, cut, decode)
        except msgspec.DecodeError as failed:
            where = position(failed)
            if where is not None:  # until there the text is sound, so no earlier border will do better
                limit = buffer.start + where
                break
    return _counted(buffer, decode, limit, stop)


def _counted(buffer: Buffer, decode: Decode[T], limit: int, stop: int) -> tuple[bool, T | None]:
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
            where = position(failed)
            at = limit if where is None else buffer.start + where
            limit = at if at < limit else (buffer.start + min(cut, limit)) // 2
    whole = stop == buffer.stop and (buffer.ended or len(buffer) >= damage.LONGEST_EVENT)
    if cut is None and limit == stop and not whole:
        raise _OpenError
    raise _DamageError


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


def _candidates(buffer: Buffer, stop: int) -> Iterator[int]:
    """Where the last event might end: before the last `},{`, else before one that opens as the first event does."""
    last = next(_borders(buffer, b"{", stop), None)
    if last is None:
        return
    yield last
    opening = _OPENING.search(buffer.data, buffer.start + 1, min(buffer.start + _FAR, stop))
    if opening is not None:
        alike = islice(_borders(buffer, opening[0], stop), _TRIES)
        yield from (cut for cut in alike if cut != last)


def _borders(buffer: Buffer, opening: bytes, stop: int) -> Iterator[int]:
    """Commas before `stop`, between `}` and an object that begins like `opening`, last first."""
    data, at = buffer.data, stop
    for _ in range(_LOOKED_AT):
        at = data.rfind(opening, buffer.start, at)
        if at <= buffer.start:
            return
        comma = _back(data, at)
        if data[comma] == ord(",") and data[_back(data, comma)] == ord("}") and comma > buffer.start:
            yield comma


def _back(data: bytearray, at: int) -> int:
    at -= 1
    while at > 0 and data[at] in SPACE:
        at -= 1
    return at


def _structure(buffer: Buffer, limit: int) -> tuple[int | None, int | None]:
    """The last border before `limit`, and the bracket that ends the list.

    Raises _DamageError where events end, but none before a comma, and where the first one cannot end.
    """
    ends, end, lost = _objects(buffer, limit)
    if end is not None:
        return None, end
    for at in reversed(ends):
        while at < limit and buffer.data[at] in SPACE:
            at += 1  # noqa: PLW2901 - steps from the end of an event to its comma
        if at < limit and buffer.data[at] == ord(","):
            return at, None
    if len(ends) > 1 or lost:
        raise _DamageError
    return None, None


def _objects(buffer: Buffer, limit: int) -> tuple[list[int], int | None, bool]:
    """Where the objects of the list end before `limit`, the bracket that ends it, and whether one can have no end."""
    within = bytearray()
    ends: list[int] = []
    for token in _TOKEN.finditer(buffer.data, buffer.start + 1, limit):
        if token[1] in (b"{", b"["):
            if damage.is_lost(within, token[0], _DEEPEST):
                return ends, None, True
            within += token[1]
        elif token[1] is not None:
            if not within:
                return ends, token.end() - 1, False
            within.pop()
            if not within:
                ends.append(token.end())
    return ends, None, False
