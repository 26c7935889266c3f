"""The outer shape of a trace document, read without holding it: members of an object, one by one.

A Chrome trace is a list of events, or an object that has the list under `traceEvents` somewhere
among its members. The values of other members are stepped over at the speed of a regular
expression, whatever their size, and only those that are asked for are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from bubblescope.errors import InputError
from bubblescope.ingest.mending import COMMAS
from bubblescope.ingest.stream import Buffer

__all__ = ["BOM", "LONGEST_KEPT", "SPACE", "BrokenError", "broken", "enter", "first_byte", "members", "value"]

BOM = b"\xef\xbb\xbf"
SPACE = b" \t\r\n"
LONGEST_KEPT = 16 << 20
"""Bytes of a value that is kept; what is longer tells nothing that a trace has to tell outside of its events."""

_SPACES = re.compile(rb"[ \t\r\n]*")
_OUTSIDE = re.compile(rb'["{}\[\],]')
_NESTED = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'(?s)(?:[^"\\]++|\\.)*+')
_MARKS = "byte order mark"
_REASON_HINT = "Record or copy the file again; a job that was killed while writing leaves an unfinished file."


class BrokenError(InputError):
    """The text is no JSON from some byte on."""


def broken(buffer: Buffer, at: int, expected: str, *, hint: str = _REASON_HINT) -> BrokenError:
    """The error for bad JSON at `buffer.data[at]`."""
    with memoryview(buffer.data) as view:
        seen = bytes(view[at : min(at + 24, buffer.stop)])
    found = repr(seen.decode("utf-8", "replace")) if seen else "the end of the file"
    return BrokenError(
        f"{buffer.path}: broken JSON at byte {buffer.offset + at}: expected {expected}, found {found}", hint=hint
    )


def enter(buffer: Buffer) -> int | None:
    """Step over a byte order mark and white space to the first byte, and return it; None in an empty file."""
    if first_byte(buffer) == BOM[0] and buffer.data.startswith(BOM, buffer.start, buffer.stop):
        buffer.repairs.mend(buffer.whereabouts, {_MARKS: 1})
        buffer.start += len(BOM)
    return first_byte(buffer)


def first_byte(buffer: Buffer) -> int | None:
    """Step to the next byte that is no white space and return it; None at the end."""
    while True:
        found = _SPACES.match(buffer.data, buffer.start, buffer.stop)
        buffer.start = found.end() if found else buffer.start
        if buffer.start < buffer.stop:
            return buffer.data[buffer.start]
        if not buffer.fill():
            return None


def members(buffer: Buffer, *, within: bool = False) -> Iterator[str]:
    """The keys of the object that begins at the next byte, or, `within` it, of what is left behind a value.

    After each key the buffer stands at its value, which the caller must step over.
    Raises BrokenError where the object is broken or cut off.
    """
    if not within:
        _take(buffer, b"{")
        if first_byte(buffer) == ord("}"):
            buffer.start += 1
            return
        yield _key(buffer)
    while first_byte(buffer) != ord("}"):
        _take(buffer, b",")
        if first_byte(buffer) == ord("}"):
            buffer.repairs.mend(buffer.whereabouts, {COMMAS: 1})
            break
        yield _key(buffer)
    buffer.start += 1


def value(buffer: Buffer, most: int) -> bytes:
    """Step over the value at the next byte; its text if that is at most so many bytes, else nothing."""
    opened = first_byte(buffer)
    if opened is None or opened in b",:}]":
        raise broken(buffer, buffer.start, "a value")
    kept, length = bytearray(), 0
    for part in _parts(buffer):
        length += len(part)
        if length <= most:
            kept += part
    return bytes(kept) if length <= most else b""


def _key(buffer: Buffer) -> str:
    if first_byte(buffer) != ord('"'):
        raise broken(buffer, buffer.start, "a key in quotes")
    at = buffer.start
    text = value(buffer, LONGEST_KEPT)
    try:
        key = msgspec.json.decode(text, type=str)
    except msgspec.DecodeError as error:
        raise broken(buffer, at, "a key") from error
    _take(buffer, b":")
    return key


def _take(buffer: Buffer, byte: bytes) -> None:
    if first_byte(buffer) != byte[0]:
        raise broken(buffer, buffer.start, f"'{byte.decode()}'")
    buffer.start += 1


def _parts(buffer: Buffer) -> Iterator[bytes]:
    """The text of one value, in the pieces in which it passes through the buffer."""
    depth, quoted, at = 0, False, buffer.start
    while True:
        token, at = _token(buffer, at, quoted=quoted, depth=depth)
        if token is None:  # the value goes on beyond the buffer
            yield _passed(buffer, at)
            if not buffer.fill():
                if depth or quoted:
                    raise broken(buffer, buffer.stop, "the end of a value")
                return
            at = buffer.start
            continue
        if token == b'"':
            quoted = not quoted
        elif token in b"{[":
            depth += 1
        elif token in b"}]" and depth:
            depth -= 1
        elif token in b"}],":  # of the level above: it ends a number or a word
            at -= 1
        if depth == 0 and not quoted:
            yield _passed(buffer, at)
            return


def _token(buffer: Buffer, at: int, *, quoted: bool, depth: int) -> tuple[bytes | None, int]:
    """The next byte that opens, closes or separates, and where to go on; None and where to cut if there is none."""
    if quoted:
        inside = _INSIDE.match(buffer.data, at, buffer.stop)
        end = inside.end() if inside else at
        return (b'"', end + 1) if buffer.data.startswith(b'"', end, buffer.stop) else (None, end)
    found = (_NESTED if depth else _OUTSIDE).search(buffer.data, at, buffer.stop)
    return (None, buffer.stop) if found is None else (found[0], found.end())


def _passed(buffer: Buffer, end: int) -> bytes:
    part = bytes(buffer.data[buffer.start : end])
    buffer.start = end
    return part
