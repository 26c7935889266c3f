r"""One object of damaged JSON made whole: what profilers have been seen to write, and what transport does to it.

Words that are no JSON (`inf`, `NaN`, `N/A`) become null; backslashes that escape nothing (`C:\Users`) stand for
themselves; quotes that end no string, raw control characters and halves of surrogate pairs are escaped; bytes that
are no UTF-8 are replaced; commas too many go, and ones too few come. Brackets are never invented: an object whose own
do not match is not mended.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

__all__ = ["BYTES", "COMMAS", "DOUBTFUL", "LONGEST", "WORDS", "Mended", "is_sound", "mend", "mend_value"]

LONGEST = 1 << 20
"""Bytes; a damaged object beyond is left alone, as looking at it byte by byte takes long."""

WORDS = "words that are no JSON, as NaN"
ESCAPES = "backslashes that escape nothing"
QUOTES = "quotes inside of strings"
CONTROLS = "raw control characters"
BYTES = "strings with bytes that are no UTF-8"
COMMAS = "misplaced commas"
GAPS = "values that are missing"
HALVES = "halves of surrogate pairs"

DOUBTFUL = frozenset({QUOTES, ESCAPES})
"""What is mended by a guess where a string ends."""

_DEEPER = (b"[" * 10, b"]" * 10)
_SOUND = msgspec.json.Decoder(msgspec.Raw)
_KNOWN_WORDS = re.compile(
    rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"|(?<![\w.+-])-?(?:nan|inf(?:inity)?|n/a|none)(?![\w.])', re.IGNORECASE
)
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WORD = re.compile(r'[^,{}\[\]"]+')
_VALID = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u(?P<code>[0-9a-fA-F]{4}))')
_LOW = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NEXT_KEY = r'\s*+(?:,\s*+)?"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+:'
_ENDS = {
    "key": re.compile(r"\s*:"),
    "{": re.compile(rf"\s*\}}|{_NEXT_KEY}|\s*,\s*\}}", re.DOTALL),
    "[": re.compile(r"\s*[,\]]"),
}
"""What follows the quote that ends a string: of a key, of a value in an object, of one in a list."""


@dataclass(frozen=True, slots=True)
class Mended:
    """Sound JSON, and how often it was mended in which way."""

    text: bytes
    kinds: Counter[str] = field(default_factory=Counter)


class _HopelessError(Exception):
    """No way is known to read this."""


def mend(raw: bytes) -> Mended | None:
    """The object that `raw` was meant to be, or None if it cannot be told."""
    if len(raw) > LONGEST:
        return None
    return _without_words(raw) or _read(raw)


def mend_value(raw: bytes) -> Mended | None:
    """The same for any value, of which nothing needs to be wrong."""
    if is_sound(raw) and not _has_bad_bytes(raw):
        return Mended(raw)
    found = mend(b"[" + raw + b"]")
    return None if found is None else Mended(found.text[1:-1], found.kinds)


def _without_words(raw: bytes) -> Mended | None:
    """The same where nothing but known words is wrong, as in every event of some files: that shows at once."""
    words = 0

    def instead(found: re.Match[bytes]) -> bytes:
        nonlocal words
        quoted = found[0].startswith(b'"')
        words += not quoted
        return found[0] if quoted else b"null"

    text = _KNOWN_WORDS.sub(instead, raw)
    return Mended(text, Counter({WORDS: words})) if words and is_sound(text) else None


def is_sound(raw: bytes) -> bool:
    """Whether this is JSON, whatever it means, and not nested so deep that it cannot be read within something else."""
    try:
        _SOUND.decode(_DEEPER[0] + raw + _DEEPER[1])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _read(raw: bytes) -> Mended | None:
    text = raw.decode("utf-8", "replace")
    bad_bytes = Counter({BYTES: 1} if _has_bad_bytes(raw) else ())
    found = [_as_read(text, lax=False)]
    if found[0] is None or found[0].ambiguous:
        found.append(_as_read(text, lax=True))
    best = min(filter(None, found), key=_Mender.cost, default=None)
    return None if best is None else Mended(best.whole.encode(), best.kinds + bad_bytes)


def _as_read(text: str, *, lax: bool) -> _Mender | None:
    mender = _Mender(text, lax=lax)
    try:
        mender.read()
    except _HopelessError:
        return None
    return mender


def _has_bad_bytes(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


class _Mender:
    """Reads an object from left to right, which is `ambiguous` if a backslash stands before what may end a string.

    `lax`: such a backslash stands for itself. The better reading is the one that finds less to mend.
    """

    def __init__(self, text: str, *, lax: bool) -> None:
        self._text = text
        self._lax = lax
        self.ambiguous = False
        self._at = 0
        self._out: list[str] = []
        self._open: list[str] = []
        self.kinds: Counter[str] = Counter()

    @property
    def whole(self) -> str:
        """The sound text, once it is read."""
        return "".join(self._out)

    def cost(self) -> tuple[int, int]:
        """How much was mended, and how much of it quotes: a backslash that stands for itself is seen more often."""
        return self.kinds.total(), self.kinds[QUOTES]

    def read(self) -> None:
        """Read it all; raises _HopelessError."""
        self._begin()
        while self._open:
            if self._open[-1] == "{":
                self._member()
            else:
                self._item()
        if self._peek():
            raise _HopelessError

    def _peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _begin(self) -> None:
        opened = self._peek()
        if opened not in ("{", "["):
            raise _HopelessError
        self._open.append(opened)
        self._out.append(opened)
        self._at += 1

    def _member(self) -> None:
        """A key and its value, or the end of the object."""
        if self._separated() == "}":
            self._close("}")
            return
        self._string("key")
        if self._peek() != ":":
            raise _HopelessError
        self._out.append(":")
        self._at += 1
        self._value()

    def _item(self) -> None:
        """A value of a list, or the end of the list."""
        following = self._separated()
        if following == "}":
            raise _HopelessError
        if following == "]":
            self._close("]")
        else:
            self._value()

    def _separated(self) -> str:
        """Write the comma that belongs before the next member or item, however many there are; the byte behind it."""
        commas = 0
        while self._peek() == ",":
            self._at += 1
            commas += 1
        following = self._peek()
        first = self._out[-1] in ("{", "[")
        needed = int(not first and following not in ("}", "]"))
        if commas != needed:
            self.kinds[COMMAS] += 1
        if needed:
            self._out.append(",")
        return following

    def _close(self, bracket: str) -> None:
        self._open.pop()
        self._out.append(bracket)
        self._at += 1

    def _value(self) -> None:
        following = self._peek()
        if following == '"':
            self._string(self._open[-1])
        elif following in ("{", "["):
            self._begin()
        elif following in (",", "}", "]"):
            self._instead(GAPS)
        else:
            self._word()

    def _word(self) -> None:
        found = _WORD.match(self._text, self._at)
        if found is None:
            raise _HopelessError
        self._at = found.end()
        word = found[0].rstrip()
        if _VALID.fullmatch(word):
            self._out.append(word)
        elif "\n" in word or ":" in word:  # what stands on two lines, or before a colon, is no value
            raise _HopelessError
        else:
            self._instead(WORDS)

    def _instead(self, kind: str) -> None:
        self._out.append("null")
        self.kinds[kind] += 1

    def _string(self, place: str) -> None:
        if self._peek() != '"':
            raise _HopelessError
        self._at += 1
        self._out.append('"')
        while not self._ended(place):
            pass

    def _ended(self, place: str) -> bool:
        """Write the plain text that follows and what ends it; whether that ends the string."""
        text, plain = self._text, _PLAIN.match(self._text, self._at)
        if plain is None or plain.end() == len(text):
            raise _HopelessError
        self._out.append(plain[0])
        self._at = plain.end()
        found = text[self._at]
        if found == "\\":
            return self._escape(place)
        self._at += 1
        if found == '"':
            if _ENDS[place].match(text, self._at):
                self._out.append('"')
                return True
            self._out.append('\\"')
            self.kinds[QUOTES] += 1
        else:
            self._out.append(f"\\u{ord(found):04x}")
            self.kinds[CONTROLS] += 1
        return False

    def _escape(self, place: str) -> bool:
        """The same for a backslash."""
        text, found = self._text, _ESCAPE.match(self._text, self._at)
        ends = text[self._at + 1 : self._at + 2] == '"' and _ENDS[place].match(text, self._at + 2) is not None
        self.ambiguous |= ends
        if found is None or (ends and self._lax):
            self._out.append("\\\\")
            self._at += 1
            self.kinds[ESCAPES] += 1
            return False
        self._at = found.end()
        self._out.append(self._paired(found))
        return False

    def _paired(self, found: re.Match[str]) -> str:
        """An escape as it is, unless it is half of a pair."""
        code = int(found["code"] or "0", 16)
        if 0xD800 <= code < 0xDC00:
            low = _LOW.match(self._text, self._at)
            if low:
                self._at = low.end()
                return found[0] + low[0]
        if 0xD800 <= code < 0xE000:
            self.kinds[HALVES] += 1
            return "\\ufffd"
        return found[0]
