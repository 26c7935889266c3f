"""Gzip inflated as it is read, so that what comes before a cut or a damage still comes out."""

from __future__ import annotations

import zlib
from typing import IO, Any

try:
    from isal import isal_zlib

    _decompressor: Any = isal_zlib.decompressobj
    _ERRORS: Any = (zlib.error, isal_zlib.error)
except ImportError:  # no wheel for this platform: three times slower, otherwise the same
    _decompressor = zlib.decompressobj
    _ERRORS = (zlib.error,)

__all__ = ["GZIP_MAGIC", "MOST_RATIO", "BombError", "CutOffError", "DamagedError", "Inflater"]

GZIP_MAGIC = b"\x1f\x8b"

_GZIP = 31  # bits of the window, and that a gzip header is expected
_CHUNK = 256 << 10

MOST_RATIO = 400
"""Bytes of text a byte of gzip, above which it is no trace: those take 10 to 30, and deflate can do 1032."""
_CAREFUL = 64  # bytes of text at a time where a member is damaged, of which the last such piece is lost
_HARMLESS = 256 << 20  # bytes of text that are read whatever the ratio is


class CutOffError(Exception):
    """The file ends within a gzip member."""


class DamagedError(Exception):
    """The compressed data make no sense.

    Attributes:
        at: byte of the file up to which they did, or a little before.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class BombError(Exception):
    """The file holds next to nothing, many times over."""


class Inflater:
    """Reads a gzip file of one or several members, and tells of what follows them unless it is padding.

    Attributes:
        behind: bytes behind the last member that are no gzip, up to where reading stopped; zeros do not count.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._member = _decompressor(wbits=_GZIP)
        self._waiting = b""
        self._begun = False
        self._text = 0
        self._packed = 0
        self._began = 0  # where the member begins in the file
        self._given = 0  # bytes of its text that are out
        self._careful = False
        self.behind = 0

    def readinto(self, target: memoryview) -> int:
        """Inflate into `target`; 0 at the end.

        Raises CutOffError or DamagedError once all before it is out, BombError where the text has no end in sight.
        """
        while True:
            if not self._waiting:
                self._read()
            at_end = not self._waiting
            if at_end and (self._member.eof or not self._begun):
                return 0
            if not self._next_member():
                self.behind = len(self._waiting.rstrip(b"\0"))
                return 0
            text = self._inflate(len(target))
            if text:
                target[: len(text)] = text
                self._weigh(len(text))
                return len(text)
            if at_end:  # and nothing is held back any more
                raise CutOffError

    def _read(self) -> None:
        more = self._file.read(_CHUNK)
        self._packed += len(more)
        self._waiting += more

    def _weigh(self, text: int) -> None:
        self._text += text
        if self._text > max(_HARMLESS, MOST_RATIO * self._packed):
            raise BombError

    def _next_member(self) -> bool:
        """Begin a new member if one ended; False if what follows is none."""
        if self._member.eof:
            if len(self._waiting) < len(GZIP_MAGIC):
                self._read()
            if not self._waiting.startswith(GZIP_MAGIC):
                return False
            self._member = _decompressor(wbits=_GZIP)
            self._began, self._given, self._careful = self._packed - len(self._waiting), 0, False
        self._begun = True
        return True

    def _inflate(self, most: int) -> bytes:
        try:
            text: bytes = self._member.decompress(self._waiting, min(most, _CAREFUL) if self._careful else most)
        except _ERRORS as error:
            if self._careful:
                raise DamagedError(str(error), self._packed - len(self._waiting)) from error
            self._begin_again()
            return self._inflate(most)
        self._waiting = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self._given += len(text)
        return text

    def _begin_again(self) -> None:
        """Go through the member once more up to what is out of it: an error keeps back what came before it."""
        self._file.seek(self._began)
        self._packed, self._waiting, self._member = self._began, b"", zlib.decompressobj(wbits=_GZIP)
        out = 0
        while out < self._given:
            if not self._waiting:
                self._read()
            out += len(self._member.decompress(self._waiting, self._given - out))
            self._waiting = self._member.unconsumed_tail
        self._careful = True
