"""Words that are no JSON (`NaN`, `inf`), made null in all of a window, where every event may hold some.

The decoder tells where it stopped. If that is a word where a value belongs, it is replaced wherever it stands outside
of strings, and the window is decoded again. Whatever else is wrong is left to those who look at one event at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from bubblescope.ingest.document import SPACE
from bubblescope.ingest.mending import WORDS, is_sound
from bubblescope.ingest.repairs import Repairs
from bubblescope.ingest.stream import Place
from bubblescope.model.columns import Bools, Ints

__all__ = ["WithoutWords", "position"]

T = TypeVar("T")

_MOST = 16  # different words of a file; each is searched for by itself
_LONGEST = 32  # bytes
_NULL = b"null"
_BYTE = re.compile(r"\(byte (\d+)\)")
_WORD = re.compile(rb"[^\s,:{}\[\]\"]+")
_BEFORE = np.isin(np.arange(256), list(b":,[" + SPACE))
_BEHIND = np.isin(np.arange(256), list(b",]}" + SPACE))


def position(failed: msgspec.DecodeError) -> int | None:
    """Where in the text the decoder stopped, as far as it says."""
    found = _BYTE.search(str(failed))
    return None if found is None else int(found[1])


class WithoutWords(Generic[T]):
    """Decodes as `decode` does, windows that hold words included; remembers the words of a file.

    What it raises tells the place in the text that it was given.
    """

    def __init__(self, decode: Callable[[memoryview, Place], T], repairs: Repairs) -> None:
        self._decode = decode
        self._repairs = repairs
        self._words: list[bytes] = []

    def __call__(self, text: memoryview, place: Place) -> T:
        """What `decode` makes of the text; raises `msgspec.DecodeError`."""
        while True:
            nulled = _nulled(text, self._words)
            try:
                if nulled is None:
                    return self._decode(text, place)
                result = self._decode(memoryview(nulled.text), partial(_placed, place, nulled))
            except msgspec.DecodeError as failed:
                at = position(failed)
                at = at if at is None or nulled is None else nulled.original(at)
                if not self._learn(text, at):
                    raise msgspec.DecodeError(f"no JSON (byte {at})") from failed
            else:
                self._repairs.mend(place(int(nulled.start[0])), {WORDS: len(nulled.start)})
                return result

    def _learn(self, text: memoryview, at: int | None) -> bool:
        """Remember the word at a place, if one stands there that is not known yet."""
        word = None if at is None else _word_at(text, at)
        if word is None or word in self._words or len(self._words) == _MOST:
            return False
        self._words.append(word)
        return True


@dataclass(frozen=True, slots=True)
class _Nulled:
    """A text with null for words that began at `start` and ended at `end`; `moved` is where the nulls begin."""

    text: bytes
    start: Ints
    end: Ints
    moved: Ints

    def original(self, at: int) -> int:
        """Where in the text as it was a place lies."""
        last = int(np.searchsorted(self.moved, at, "right")) - 1
        if last < 0:
            return at
        behind = at - int(self.moved[last]) - len(_NULL)
        return int(self.start[last]) if behind < 0 else int(self.end[last]) + behind


def _placed(place: Place, nulled: _Nulled, at: int) -> int:
    return place(nulled.original(at))


def _nulled(text: memoryview, words: Sequence[bytes]) -> _Nulled | None:
    """The text with null in the place of words outside of strings; None if there are none."""
    if not words:
        return None
    found = [[match.start() for match in re.finditer(re.escape(word), text)] for word in words]
    start = np.concatenate([np.array(places, np.int64) for places in found])
    if not len(start):
        return None
    data = np.frombuffer(text, np.uint8)  # begins and ends with a bracket, so that every word has neighbours
    end = start + np.repeat([len(word) for word in words], [len(places) for places in found])
    whole = _BEFORE[data[start - 1]] & _BEHIND[data[np.minimum(end, len(data) - 1)]]
    order = np.argsort(start[whole])
    start, end = start[whole][order], end[whole][order]
    if not len(start):
        return None
    outside = _outside(data, start, escaped=b"\\" in bytes(text))
    start, end = start[outside], end[outside]
    pieces = [text[a:b] for a, b in zip([0, *end.tolist()], [*start.tolist(), len(text)], strict=True)]
    longer = np.cumsum(np.append(0, len(_NULL) - (end - start)[:-1]))
    return _Nulled(_NULL.join(pieces), start, end, start + longer) if len(start) else None


def _outside(data: npt.NDArray[np.uint8], places: Ints, *, escaped: bool) -> Bools:
    """Which of these places lie in no string: an even number of quotes stands before them."""
    quotes = (data == ord('"')).view(np.uint8)
    if escaped:
        quotes[np.minimum(_escaping(data) + 1, len(data) - 1)] = 0
    between = np.bitwise_xor.reduceat(quotes, np.append(0, places))[: len(places)]
    outside: Bools = np.bitwise_xor.accumulate(between) == 0
    return outside


def _escaping(data: npt.NDArray[np.uint8]) -> Ints:
    """Backslashes that escape what follows: every other one of those behind each other."""
    slashes = np.flatnonzero(data == ord("\\"))
    count = np.arange(len(slashes))
    begins = np.append(True, np.diff(slashes) > 1)[: len(slashes)]
    every_other: Ints = slashes[(count - np.maximum.accumulate(np.where(begins, count, 0))) % 2 == 0]
    return every_other


def _word_at(text: memoryview, at: int) -> bytes | None:
    """The word around a place or right before it, if one stands there where a value belongs."""
    begin = max(0, at - _LONGEST)
    near = bytes(text[begin : at + _LONGEST])
    for found in _WORD.finditer(near):
        if found.start() <= at - begin <= found.end():
            before = near[: found.start()].rstrip(SPACE)[-1:]
            behind = near[found.end() :].lstrip(SPACE)[:1]
            whole = before in (b":", b"[", b",") and behind in (b",", b"]", b"}")
            return found[0] if whole and not is_sound(found[0]) else None
    return None
