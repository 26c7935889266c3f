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

__all__ = ["GZIP_MAGIC", "CutOffError", "DamagedError", "Inflater"]

GZIP_MAGIC = b"\x1f\x8b"

_GZIP = 31  # bits of the window, and that a gzip header is expected
_CHUNK = 256 << 10


class CutOffError(Exception):
    """The file ends within a gzip member."""


class DamagedError(Exception):
    """The compressed data make no sense."""


class Inflater:
    """Reads a gzip file of one or several members; what follows them is ignored, as gzip does."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._member = _decompressor(wbits=_GZIP)
        self._waiting = b""
        self._begun = False

    def readinto(self, target: memoryview) -> int:
        """Inflate into `target`; 0 at the end. Raises CutOffError or DamagedError once all before it is out."""
        while True:
            if not self._waiting:
                self._waiting = self._file.read(_CHUNK)
            if not self._waiting:
                if self._begun and not self._member.eof:
                    raise CutOffError
                return 0
            if not self._next_member():
                return 0
            text = self._inflate(len(target))
            if text:
                target[: len(text)] = text
                return len(text)

    def _next_member(self) -> bool:
        """Begin a new member if one ended; False if what follows is none."""
        if self._member.eof:
            if len(self._waiting) < len(GZIP_MAGIC):
                self._waiting += self._file.read(_CHUNK)
            if not self._waiting.startswith(GZIP_MAGIC):
                return False
            self._member = _decompressor(wbits=_GZIP)
        self._begun = True
        return True

    def _inflate(self, most: int) -> bytes:
        try:
            text: bytes = self._member.decompress(self._waiting, most)
        except _ERRORS as error:
            raise DamagedError(str(error)) from error
        self._waiting = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        return text
