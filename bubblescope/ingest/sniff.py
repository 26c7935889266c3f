"""What a file is, going by its content and never by its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bubblescope.errors import InputError
from bubblescope.ingest.document import enter, first_byte, members, value
from bubblescope.ingest.metadata import KINETO_KEYS
from bubblescope.ingest.stream import Buffer, Stream

__all__ = ["Format", "Kind", "sniff"]

Kind = Literal["kineto", "chrome", "sqlite", "empty", "foreign"]

_HEAD = 64 << 10
_TRACE_HINT = "Give traces of the PyTorch Profiler (export_chrome_trace), or a directory of them."
_MAGIC = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "XZ-compressed data"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"<", "HTML or XML"),
)


@dataclass(frozen=True, slots=True)
class Format:
    """What a file is: `looks_like` in words for people, `hint` what to do if it is no trace."""

    kind: Kind
    looks_like: str
    hint: str = _TRACE_HINT

    @property
    def readable(self) -> bool:
        """Whether this version reads it."""
        return self.kind in ("kineto", "chrome")


def sniff(path: Path) -> Format:
    """Tell what a file is; raises InputError where it cannot be opened."""
    with Stream(path) as stream:
        buffer = Buffer(stream, _HEAD)
        try:
            buffer.fill()
        except InputError:
            if not len(buffer):
                return Format("foreign", "a damaged gzip file", "Copy it again, in binary mode.")
        found = _content(buffer)
        return _inside_gzip(found) if stream.gzipped else found


def _inside_gzip(found: Format) -> Format:
    if found.readable:
        return found
    kind: Kind = "empty" if found.kind == "empty" else "foreign"
    return Format(kind, f"a gzip of {found.looks_like}", found.hint)


def _content(buffer: Buffer) -> Format:
    head = bytes(buffer.data[: buffer.stop])
    if not head:
        return Format("empty", "an empty file", "Record or copy it again.")
    if head.startswith(b"SQLite format 3\x00"):
        hint = "Nsight Systems exports are not read yet; give traces of the PyTorch Profiler."
        return Format("sqlite", "an SQLite database", hint)
    for magic, words in _MAGIC:
        if head.startswith(magic):
            return Format("foreign", words)
    first = enter(buffer)
    if first == ord("["):
        return _list(buffer)
    if first == ord("{"):
        return _object(buffer)
    if first is None:
        return Format("empty", "a file of white space", "Record or copy it again.")
    return Format("foreign", "binary data" if _is_binary(head) else "text")


def _list(buffer: Buffer) -> Format:
    buffer.start += 1
    first = first_byte(buffer)
    if first == ord("{"):
        head = bytes(buffer.data[buffer.start : buffer.stop])
        if b'"ph"' in head:
            return Format("chrome", "a list of trace events")
        return Format("foreign", "JSON, but a list of objects that are no trace events")
    return Format("foreign", "JSON, but an empty list" if first == ord("]") else "JSON, but no list of events")


def _object(buffer: Buffer) -> Format:
    kineto = False
    try:
        for key in members(buffer):
            if key == "traceEvents" and first_byte(buffer) == ord("["):
                return Format(
                    "kineto" if kineto else "chrome", "a PyTorch Profiler trace" if kineto else "a Chrome trace"
                )
            kineto = kineto or key in KINETO_KEYS
            value(buffer, keep=False)
    except InputError:
        return Format("foreign", "broken JSON, with no traceEvents before it breaks")
    return Format("foreign", "JSON, but with no traceEvents")


def _is_binary(head: bytes) -> bool:
    return b"\x00" in head or sum(byte < 9 or 13 < byte < 32 for byte in head[:1024]) > len(head[:1024]) // 10
