"""One event of a damaged list at a time: as it is, mended, or left out.

Borders of events are looked for where one object ends and another begins with a key: sound text shows that nowhere
else but in lists of objects within an event, and damaged text shows it wherever the next event is sound. What is cut
there must be an object with brackets of its own, else the next border is tried; if none will do, everything up to the
next event goes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import TypeVar

import msgspec

from bubblescope.ingest.mending import COMMAS, DOUBTFUL, Mended, is_sound, mend
from bubblescope.ingest.stream import Buffer, Place

__all__ = ["LONGEST_EVENT", "Decode", "is_lost", "resume", "step"]

T = TypeVar("T")
Decode = Callable[[memoryview, Place], T]

LONGEST_EVENT = 16 << 20
"""Bytes; what is longer is no event, and is stepped over without being held."""

_BRACKETS = "brackets that are missing"
_CALM = 4  # sound events behind a damaged one, after which windows are worth a try again
_MOST_TOGETHER = 1000
_USUAL = 4 << 10  # bytes; most events are shorter
_NEAR = 16 << 10  # bytes; about as far as one damaged event is worth a look
_MARGIN = 128  # bytes; what follows the end of an event shows in less
_DEEPEST = 16  # brackets within each other; events nest a few
_TRIES = 6  # borders behind the beginning of an event: a damaged one may hold a list of objects
_OVERLAP = 8 << 10  # bytes; what begins nearer to the end of a buffer may go on beyond it
_SPACES = re.compile(rb"[ \t\r\n]*")
_SEPARATORS = re.compile(rb"[ \t\r\n,]*")
_ROOT = (
    rb"traceName|displayTimeUnit|baseTimeNanoseconds|distributedInfo|deviceProperties|schemaVersion|trace_id|host_name|"
    rb"otherData|metadata|stackFrames|samples|controllerTraceDataKey|systemTraceEvents|powerTraceAsString"
)
_LIST_ENDS = rb"\](?:\s*\}\s*\Z|\s*\Z|\s*,\s*\"(?:" + _ROOT + rb")\"\s*:)"
_END = re.compile(rb"\}(?=\s*+(?:,\s*+)*+(?:\{\s*+\"[^\"\\]{1,64}\"\s*:|" + _LIST_ENDS + rb"|\Z))")
_EVENT = (
    rb"(?=\{\s*\"(?:ph|(?:name|cat|pid|tid|ts|dur|id)\"\s*:[^{}]{0,2000}\"ph"
    rb"|args\"\s*:\s*\{[^{}]{0,2000}\}[^{}]{0,2000}\"ph)\"\s*:)"
)
"""Before an object that says of itself that it is an event; those within the arguments of one do not."""
_NEXT = re.compile(_EVENT + rb"|(?=" + _LIST_ENDS + rb")")
_EVENTS = re.compile(_EVENT + rb"|\"traceEvents\"\s*:\s*(?=\[)")
_PHASE = re.compile(rb"\"ph\"\s*:")
_TOKEN = re.compile(rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"|(?::\s*+)?+([{}\[\]])')


def step(buffer: Buffer, decode: Decode[T]) -> tuple[bool, T | None]:
    """Decode the event behind `start`, or leave it out, and those behind it while they are damaged too.

    Whether the list ended, and the result if there is one.
    """
    texts: list[tuple[int, bytes]] = []
    done, calm = False, 0
    while not done and calm < _CALM and len(texts) < _MOST_TOGETHER:
        done, text, sound = _one(buffer)
        calm = calm + 1 if sound else 0
        texts += [] if text is None else [text]
    return done, _decoded(buffer, texts, decode)


def _one(buffer: Buffer) -> tuple[bool, tuple[int, bytes] | None, bool]:
    """Step over the event behind `start`: whether the list ended, place and sound text of it, whether that was so."""
    parted = _separate(buffer)
    at = buffer.start + 1
    if at < buffer.stop and buffer.data[at] in b"]}":
        _end_list(buffer)
        return True, None, True
    found = _whole(buffer, at) or _mended(buffer)
    if found is None:
        return not _leave_out(buffer), None, False
    length, mended = found
    place = buffer.whereabouts + 1
    buffer.repairs.mend(place, mended.kinds)
    buffer.start += length
    parted &= _to_comma(buffer)
    return False, (place, mended.text), parted and not mended.kinds


def _whole(buffer: Buffer, at: int) -> tuple[int, Mended] | None:
    """The length of the event at `at`, and its text, where its strings are beyond doubt, and with them its brackets.

    That needs no look at what follows, which may be far from anything that could be told.
    """
    if not buffer.data.startswith(b"{", at, buffer.stop):
        return None
    end = _balanced(buffer, at, min(at + _USUAL, buffer.stop))
    if end is None:
        return None
    found = _event(bytes(buffer.data[at:end]))
    return None if found is None or found.kinds.keys() & DOUBTFUL else (end - at, found)


def _mended(buffer: Buffer) -> tuple[int, Mended] | None:
    """The same for any other event, whose end is told by what follows."""
    _gather(buffer)
    at = buffer.start + 1
    for end in _ends(buffer, at):
        found = _event(bytes(buffer.data[at:end]))
        if found is not None:
            return end - at, found
    return None


def _event(raw: bytes) -> Mended | None:
    """One event, as it is or mended; None where there are several, for a string would swallow what is between them."""
    if is_sound(raw):
        return Mended(raw)
    found = None if len(_PHASE.findall(raw)) > 1 else mend(raw)
    return found if found is not None and is_sound(found.text) else None


def _decoded(buffer: Buffer, events: list[tuple[int, bytes]], decode: Decode[T]) -> T | None:
    """What `decode` makes of events, each with its place in the file."""
    if not events:
        return None
    texts = [text for _, text in events]
    starts = [0, *accumulate(len(text) + 1 for text in texts)]  # each behind its bracket or comma

    def place(at: int) -> int:
        event = bisect_right(starts, max(at - 1, 0)) - 1
        return events[min(event, len(events) - 1)][0]

    try:
        return decode(memoryview(b"[" + b",".join(texts) + b"]"), place)
    except (msgspec.DecodeError, RecursionError):  # sound, but beyond what the decoder of events can take
        begin = events[0][0]
        buffer.repairs.drop(begin, buffer.whereabouts - begin, "no event can be read there")
        return None


def resume(buffer: Buffer) -> bool:
    """Step to the next list of events, or to the byte before the next event of one; False if neither comes.

    What lies before is left out.
    """
    if not buffer.start:
        buffer.make_room()
    buffer.start -= 1
    found = _seek(buffer, _EVENTS, "no JSON", seen=0)
    buffer.start += found and buffer.data[buffer.start + 1] == ord("[")
    return found


def _end_list(buffer: Buffer) -> None:
    """Step behind the bracket that ends the list; a brace ends what is around the list, whose bracket is missing."""
    buffer.start += 1
    if buffer.data[buffer.start] == ord("]"):
        buffer.start += 1
    else:
        buffer.repairs.mend(buffer.whereabouts, {_BRACKETS: 1})


def _separate(buffer: Buffer) -> bool:
    """Step to the byte before the next event; whether no comma stands there, as the one that belongs is behind us."""
    sound = True
    while True:
        found = _SEPARATORS.match(buffer.data, buffer.start + 1, buffer.stop)
        end = found.end() if found else buffer.stop
        commas = buffer.data.count(b",", buffer.start + 1, end)
        if commas:
            buffer.repairs.mend(buffer.whereabouts + 1, {COMMAS: commas})
            sound = False
        buffer.start = end - 1
        if end < buffer.stop or not buffer.fill():
            return sound


def _to_comma(buffer: Buffer) -> bool:
    """Step from the last byte of an event to the comma behind it, or else to the byte before what follows.

    Whether it is the comma, or the end.
    """
    while True:
        found = _SPACES.match(buffer.data, buffer.start + 1, buffer.stop)
        buffer.start = (found.end() if found else buffer.stop) - 1
        if buffer.start + 1 < buffer.stop or not buffer.fill():
            break
    following = bytes(buffer.data[buffer.start + 1 : min(buffer.start + 2, buffer.stop)])
    if following == b",":
        buffer.start += 1
    elif following not in (b"", b"]"):
        buffer.repairs.mend(buffer.whereabouts + 1, {COMMAS: 1})
        return False
    return True


def _gather(buffer: Buffer) -> None:
    """Read on until an end of the event at the next byte shows, or another event, or it is too long to be one."""
    if buffer.data[buffer.start + 1 : buffer.start + 2] != b"{":
        return
    while not buffer.ended and len(buffer) < LONGEST_EVENT:
        at, sure = buffer.start + 1, buffer.stop - _OVERLAP
        another = _NEXT.search(buffer.data, at + 1, max(sure, 0))
        if another is not None or next(_borders(buffer, at, buffer.stop), None) is not None:
            return
        buffer.fill()


def _borders(buffer: Buffer, at: int, far: int) -> Iterator[int]:
    """Where the event at `at` may end before `far`, seen from what follows."""
    sure = min(far - _MARGIN, buffer.stop - _OVERLAP)
    if buffer.ended and far == buffer.stop:
        sure = far
    ends = (match.end() for match in _END.finditer(buffer.data, at, far))
    return islice((end for end in ends if end <= sure), _TRIES)


def _ends(buffer: Buffer, at: int) -> Iterator[int]:
    """Where the event at `at` may end; last where its brackets do, for keys may be long and the next event damaged.

    What is far is looked at only where no other event is near.
    """
    if at == buffer.stop or buffer.data[at] != ord("{"):
        return
    far = min(at + _NEAR, buffer.stop)
    another = _NEXT.search(buffer.data, at + 1, far)
    far = buffer.stop if another is None else far
    ends = list(_borders(buffer, at, far))
    if another is not None:  # what stands before it may be no JSON, and no border
        last = buffer.data.rfind(b"}", at, another.start())
        ends = sorted({*ends, last + 1} - {0})
    yield from ends
    balanced = _balanced(buffer, at, far if len(ends) < _TRIES else ends[-1])
    if balanced is not None:
        yield balanced


def _balanced(buffer: Buffer, at: int, far: int) -> int | None:
    """Where the brackets of the event at `at` end, if that is before `far` and before another event begins."""
    within = bytearray()
    for token in _TOKEN.finditer(buffer.data, at, far):
        if token[1] in (b"{", b"["):
            if is_lost(within, token[0]):
                return None
            within += token[1]
        elif token[1] is not None:
            if len(within) <= 1:
                return token.end() if within else None
            within.pop()
    return None


def is_lost(within: bytearray, opening: bytes, deepest: int = _DEEPEST) -> bool:
    """Whether a bracket behind others that are open, with the colon before it, shows that one of them never ends.

    An object within another is the value of a key, and events nest a few times.
    """
    misplaced = opening == b"{" and within.endswith(b"{")
    return misplaced or len(within) >= deepest


def _leave_out(buffer: Buffer) -> bool:
    """Leave out what lies between here and the next event or the end of the list; False where neither comes."""
    where = buffer.whereabouts + 1
    if _seek(buffer, _NEXT, "no event can be read there"):
        return True
    last = buffer.offset + buffer.stop
    if not buffer.repairs.cut:  # else it is known why
        buffer.repairs.end(f"the text ends at byte {last}, within the list of events")
    if last > where:
        buffer.repairs.end(f"{last - where} bytes of an unfinished event, from byte {where} on, are left out")
    return False


def _seek(buffer: Buffer, pattern: re.Pattern[bytes], why: str, *, seen: int = 1) -> bool:
    """Step to the byte before where a match ends, and note what is left out; False if there is none until the end.

    The match may begin `seen` bytes behind the next one.
    """
    begin = buffer.whereabouts + 1
    while True:
        sure = buffer.stop if buffer.ended else buffer.stop - _OVERLAP
        found = pattern.search(buffer.data, min(buffer.start + 1 + seen, buffer.stop), buffer.stop)
        if found is not None and found.end() <= sure:
            buffer.start = found.end() - 1
            buffer.repairs.drop(begin, buffer.whereabouts + 1 - begin, why)
            return True
        if buffer.ended:
            buffer.start = buffer.stop
            return False
        buffer.start = max(buffer.start, sure - 1)
        buffer.fill()
