"""A trace in Chrome's JSON format from its first byte to its last, whether it is sound or not.

Where the document breaks, the walk goes on at the next thing that can only be an event or a list of them. Several
documents behind each other, as `cat` makes of several files, are walked one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bubblescope.ingest.damage import resume
from bubblescope.ingest.document import LONGEST_KEPT, BrokenError, broken, enter, first_byte, members, value
from bubblescope.ingest.mending import Mended, mend_value
from bubblescope.ingest.stream import Buffer

__all__ = ["Document", "Events", "Member", "walk"]

_AGAIN = "documents behind the first"
_HOPELESS = "members beside the events that are no JSON"
_LOOKED_AT = 64 << 10
"""Bytes of a member that is not wanted, and yet is looked at for damage."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document begins."""


@dataclass(frozen=True, slots=True)
class Events:
    """The buffer stands at a list of events, which the caller must step over."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the document; its `text` is empty unless it is wanted."""

    key: str
    text: bytes


Part = Document | Events | Member


def walk(buffer: Buffer, wanted: Collection[str]) -> Iterator[Part]:
    """The parts of a file, in order, with the texts of the members that are wanted.

    Raises BrokenError where the file breaks, and no events come before or behind it.
    """
    first = enter(buffer)
    yield Document()
    parts, lists = _document(buffer, first, wanted), 0
    while True:
        try:
            for part in parts:
                lists += isinstance(part, Events)
                yield part
            following = first_byte(buffer)
            if following is None:
                return
            if following not in b"{[":
                raise broken(buffer, buffer.start, "the end of the file")
        except BrokenError as error:
            if not _resumed(buffer, error, lists):
                return
            lists += 1
            yield Events()
            parts = _object(buffer, wanted, within=True) if first == ord("{") else iter(())
        else:
            buffer.repairs.mend(buffer.whereabouts, {_AGAIN: 1})
            first = following
            yield Document()
            parts = _document(buffer, first, wanted)


def _document(buffer: Buffer, first: int | None, wanted: Collection[str]) -> Iterator[Part]:
    if first == ord("["):
        yield Events()
    elif first == ord("{"):
        yield from _object(buffer, wanted)
    else:
        raise broken(buffer, buffer.start, "'{' or '['")


def _object(buffer: Buffer, wanted: Collection[str], *, within: bool = False) -> Iterator[Part]:
    """The members of an object, or, `within` one, those that are left."""
    for key in members(buffer, within=within):
        if key == "traceEvents" and first_byte(buffer) == ord("["):
            yield Events()
        else:
            yield _member(buffer, key, wanted=key in wanted)


def _member(buffer: Buffer, key: str, *, wanted: bool) -> Member:
    """Step over a member, and note what is damaged in it; one that is very long and not wanted is not looked at."""
    first_byte(buffer)
    at = buffer.whereabouts
    text = value(buffer, LONGEST_KEPT if wanted else _LOOKED_AT)
    mended = mend_value(text) if text else Mended(text)
    buffer.repairs.mend(at, {_HOPELESS: 1} if mended is None else mended.kinds)
    return Member(key, mended.text if wanted and mended is not None else b"")


def _resumed(buffer: Buffer, error: BrokenError, lists: int) -> bool:
    """Step to where events go on; False at the end of the file. Raises the error if there never were any."""
    where = buffer.whereabouts
    if first_byte(buffer) is not None and resume(buffer):
        return True
    if not lists:
        raise error
    left = buffer.whereabouts - where
    if left:
        buffer.repairs.drop(where, left, "no JSON, and no events follow")
    elif not buffer.repairs.cut:
        buffer.repairs.end(f"the text ends at byte {where}, before the document does")
    return False
