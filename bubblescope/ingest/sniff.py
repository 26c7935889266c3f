"""What a file is, going by its content; a name counts only where the content tells nothing."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bubblescope.ingest.command import export_again, export_command, no_option
from bubblescope.ingest.document import BrokenError, enter, first_byte
from bubblescope.ingest.metadata import KINETO_KEYS
from bubblescope.ingest.sqlite import is_nsight_export, tables
from bubblescope.ingest.stream import Buffer, Stream
from bubblescope.ingest.timelines import csv, parquet
from bubblescope.ingest.timelines.columns import HINT, Layout
from bubblescope.ingest.timelines.primus import is_dump
from bubblescope.ingest.timelines.primus_settings import is_settings
from bubblescope.ingest.walk import Events, Member, walk

__all__ = ["UNFINISHED", "Format", "Kind", "sniff"]

Kind = Literal["kineto", "chrome", "nsys", "primus", "csv", "parquet", "nsys-rep", "sqlite", "empty", "foreign"]

_HEAD = 64 << 10
_TRACE_HINT = (
    "Give traces of the PyTorch Profiler (export_chrome_trace) or exports of Nsight Systems (nsys export --type "
    "sqlite), a table of your own (docs/timelines.md), or a directory of them."
)
_REPORTS = (".nsys-rep", ".qdrep")
UNFINISHED = ".qdstrm"
"""The suffix of what a run leaves that was killed before it wrote its report."""

_EVENT = re.compile(rb'"ph"\s*:')
_VALUES = re.compile(rb'\[\s*(?:["\[]|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*[],]|(?:true|false|null)\s*[],]|\Z)')
"""How a list in JSON begins, and what settings in TOML and lines of a log do not."""

_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive", "Unpack it first, with unzip."),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data", "Unpack it first, with zstd -d."),
    (b"BZh", "bzip2-compressed data", "Unpack it first, with bunzip2."),
    (b"\xfd7zXZ\x00", "XZ-compressed data", "Unpack it first, with unxz."),
    (b"\x7fELF", "a program", _TRACE_HINT),
    (b"\x89PNG", "a picture", _TRACE_HINT),
    (b"%PDF", "a PDF document", _TRACE_HINT),
    (b"\x89HDF", "an HDF5 file", _TRACE_HINT),
    (b"\x93NUMPY", "a NumPy array", _TRACE_HINT),
    (b"<", "HTML or XML", _TRACE_HINT),
)
_TAR = slice(257, 262)  # where every kind of tar since 1988 says ustar


@dataclass(frozen=True, slots=True)
class Format:
    """What a file is: `looks_like` in words for people, `hint` what to do if it is no trace."""

    kind: Kind
    looks_like: str
    hint: str = _TRACE_HINT

    @property
    def readable(self) -> bool:
        """Whether this version reads it."""
        return self.kind in ("kineto", "chrome", "nsys", "primus", "csv", "parquet")

    @property
    def unrelated(self) -> bool:
        """Whether nothing suggests that it was ever meant to be a trace."""
        return self.kind == "foreign" and self.hint == _TRACE_HINT


def sniff(path: Path) -> Format:
    """Tell what a file is; raises InputError where it cannot be opened."""
    found = _told_by_content(path)
    return _report(path) or found if found.kind == "foreign" else found


def _told_by_content(path: Path) -> Format:
    with Stream(path) as stream:
        buffer = Buffer(stream, _HEAD)
        if not buffer.fill() and stream.repairs.cut:
            return Format("foreign", "a gzip file that is damaged from its beginning", "Copy it again, in binary mode.")
        found = _content(buffer)
        if stream.gzipped:
            return _inside_gzip(found)
    return {"sqlite": _database, "parquet": _parquet}.get(found.kind, lambda _: found)(path)


def _inside_gzip(found: Format) -> Format:
    if found.readable and found.kind != "parquet":
        return found
    kind: Kind = "empty" if found.kind == "empty" else "foreign"
    hint = "Unpack it first, with gunzip." if found.kind in ("sqlite", "parquet") else found.hint
    return Format(kind, f"a gzip of {found.looks_like}", hint)


def _database(path: Path) -> Format:
    names = tables(path)
    if names is None:
        hint = f"Copy it again, as a whole, or export it again: {export_again(path)}"
        return Format("sqlite", "a damaged SQLite database", hint)
    if is_nsight_export(names):
        return Format("nsys", "an export of Nsight Systems")
    hint = "Export a report of Nsight Systems: nsys export --type sqlite --include-json=true report.nsys-rep"
    return Format("sqlite", "an SQLite database that is no export of Nsight Systems", hint)


def _parquet(path: Path) -> Format:
    if not parquet.installed():
        return Format("foreign", "a Parquet file, which needs pyarrow", f"Install it: {parquet.INSTALL}")
    found = parquet.header(path)
    if found is None:
        return Format("foreign", "a damaged Parquet file", "Copy or write it again, as a whole.")
    return _table("parquet", "a Parquet file", found)


def _table(kind: Kind, what: str, found: Layout) -> Format:
    """A table of slices; without what it must tell it is none."""
    if found.lacking:
        left = f"; nothing is meant by {found.quoted}" if found.ignored else ""
        return Format("foreign", f"{what} without a column for {', '.join(found.lacking)}{left}", HINT)
    return Format(kind, f"{what} of slices")


def _report(path: Path) -> Format | None:
    """What a file is by its suffix: nobody documents the bytes of what Nsight Systems records."""
    suffix = path.suffix.lower()
    if suffix in _REPORTS:
        return Format("nsys-rep", "a report of Nsight Systems", shlex.join(export_command(path)))
    if suffix == UNFINISHED:
        importing = shlex.join(["QdstrmImporter", "--input-file", no_option(path)])
        hint = f"QdstrmImporter, which comes with Nsight Systems, turns it into a report: {importing}"
        return Format("nsys-rep", "a recording of Nsight Systems that a killed run left unfinished", hint)
    return None


def _content(buffer: Buffer) -> Format:
    head = bytes(buffer.data[: buffer.stop])
    if head.startswith(b"SQLite format 3\x00"):
        return Format("sqlite", "an SQLite database")
    if head.startswith(b"PAR1"):
        return Format("parquet", "a Parquet file")
    stranger = _stranger(head)
    if stranger is not None:
        return stranger
    if csv.is_wide(head):
        return _text(head, "text in UTF-16", "Save it as UTF-8.")
    first = enter(buffer)
    if first == ord("["):
        return _list(buffer)
    if first == ord("{"):
        return _object(buffer, head)
    if first is None:
        return Format("empty", "a file of white space" if head else "an empty file", "Record or copy it again.")
    if _is_binary(head):
        return Format("foreign", "binary data")
    return _text(head, "text")


def _stranger(head: bytes) -> Format | None:
    """What its first bytes say is something else, as an archive."""
    for magic, words, hint in _MAGIC:
        if head.startswith(magic):
            return Format("foreign", words, hint)
    return Format("foreign", "a tar archive", "Unpack it first, with tar -xf.") if head[_TAR] == b"ustar" else None


def _text(head: bytes, words: str, hint: str = _TRACE_HINT) -> Format:
    columns = csv.header(head)
    return Format("foreign", words, hint) if columns is None else _table("csv", "a table", columns)


def _list(buffer: Buffer) -> Format:
    head = bytes(buffer.data[buffer.start : buffer.stop])
    if _EVENT.search(head):
        return Format("chrome", "a list of trace events")
    buffer.start += 1
    first = first_byte(buffer)
    if first == ord("{"):
        return Format("foreign", "JSON, but a list of objects that are no trace events")
    if first == ord("]"):
        return Format("foreign", "JSON, but an empty list")
    return Format("foreign", "JSON, but no list of events") if _VALUES.match(head) else _text(head, "text")


def _object(buffer: Buffer, head: bytes) -> Format:
    kineto, first = False, True
    try:
        for part in walk(buffer, ()):
            if isinstance(part, Events):
                what = "a PyTorch Profiler trace" if kineto else "a Chrome trace"
                return Format("kineto" if kineto else "chrome", what)
            if isinstance(part, Member):
                if first and is_dump(part.key, head):
                    return Format("primus", "a dump of Primus' pipeline")
                kineto, first = kineto or part.key in KINETO_KEYS, False
    except BrokenError:
        return Format("foreign", "broken JSON, with no trace events in it")
    what = "the settings of a Primus run, which are read with its dumps"
    return Format("foreign", what if is_settings(head) else "JSON, but with no traceEvents")


def _is_binary(head: bytes) -> bool:
    return b"\x00" in head or sum(byte < 9 or 13 < byte < 32 for byte in head[:1024]) > len(head[:1024]) // 10
