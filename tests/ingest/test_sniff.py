"""Files are told by their content, whatever they are called, but for reports of Nsight Systems."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import lzma
import shlex
import sqlite3
import sys
import tarfile
from pathlib import Path

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.registry import read
from bubblescope.ingest.sniff import sniff

EVENT = {"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1}
KINETO = json.dumps({"schemaVersion": 1, "traceEvents": [EVENT]}).encode()
LATE = json.dumps({"other": "x" * 200_000, "traceEvents": [EVENT]}).encode()


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (KINETO, "kineto", "a PyTorch Profiler trace"),
        (b"\xef\xbb\xbf\n " + KINETO, "kineto", "a PyTorch Profiler trace"),
        (gzip.compress(KINETO, mtime=0), "kineto", "a PyTorch Profiler trace"),
        (KINETO[:60], "kineto", "a PyTorch Profiler trace"),
        (gzip.compress(KINETO, mtime=0)[:80], "kineto", "a PyTorch Profiler trace"),
        (LATE, "chrome", "a Chrome trace"),
        (json.dumps([EVENT]).encode(), "chrome", "a list of trace events"),
        (b"", "empty", "an empty file"),
        (b" \n\t", "empty", "a file of white space"),
        (gzip.compress(b"", mtime=0), "empty", "a gzip of an empty file"),
        (b"SQLite format 3\x00 and more", "sqlite", "a damaged SQLite database"),
        (gzip.compress(b"SQLite format 3\x00", mtime=0), "foreign", "a gzip of an SQLite database"),
        (b'{"a": 1}', "foreign", "JSON, but with no traceEvents"),
        (b'{"traceEvents": 1}', "foreign", "JSON, but with no traceEvents"),
        (b'{"a": {"traceEvents": []}}', "foreign", "JSON, but with no traceEvents"),
        (b'{"a" 1}', "foreign", "broken JSON, with no trace events in it"),
        (b"[]", "foreign", "JSON, but an empty list"),
        (b"[1, 2]", "foreign", "JSON, but no list of events"),
        (b"[ null ]", "foreign", "JSON, but no list of events"),
        (b'["a"', "foreign", "JSON, but no list of events"),
        (b"[", "foreign", "JSON, but no list of events"),
        (b"[build-system]\n", "foreign", "text"),
        (b"[2026-11-30 12:00:00] step 3\n", "foreign", "text"),
        (b"[rank0]: Traceback\n", "foreign", "text"),
        (b'[{"a": 1}]', "foreign", "JSON, but a list of objects that are no trace events"),
        (b"hello, this is no trace", "foreign", "text"),
        (gzip.compress(b"hello", mtime=0), "foreign", "a gzip of text"),
        (b"PAR1....", "foreign", "a damaged Parquet file"),
        (b"PK\x03\x04", "foreign", "a ZIP archive"),
        (lzma.compress(KINETO), "foreign", "XZ-compressed data"),
        (bz2.compress(KINETO), "foreign", "bzip2-compressed data"),
        (bytes(range(32)) * 4, "foreign", "binary data"),
        (b"\x1f\x8bnonsense", "foreign", "a gzip file that is damaged from its beginning"),
        ("hello".encode("utf-16"), "foreign", "text in UTF-16"),
        ("hello".encode("utf-16")[:-1], "foreign", "text in UTF-16"),
        (b"<!DOCTYPE html>", "foreign", "HTML or XML"),
    ],
)
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "notes.txt"])
def test_sniff(save, content, kind, words, name):
    """Kind and words follow from the first bytes, and never from the name."""
    found = sniff(save(content, name))
    assert (found.kind, found.looks_like) == (kind, words)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_says_how_it_is_unpacked(tmp_path, mode):
    """A folder of traces that somebody packed is told by its content."""
    (tmp_path / "rank0.json").write_bytes(KINETO)
    with tarfile.open(tmp_path / "traces", mode) as archive:
        archive.add(tmp_path / "rank0.json", "rank0.json")
    found = sniff(tmp_path / "traces")
    assert (found.kind, found.unrelated) == ("foreign", False)
    assert found.hint.startswith("Unpack it first, with ")
    assert ("tar archive" in found.looks_like) == (mode in {"w", "w:gz"})


def test_read_dispatches(save):
    """A trace of any name reads; another file is an error that says what it looks like."""
    (trace,) = read(save(gzip.compress(KINETO, mtime=0), "named.txt"))
    assert len(trace.ops) == 1
    with pytest.raises(InputError, match=r"notes.json: expected a trace, found text") as caught:
        read(save("hello", "notes.json"))
    assert caught.value.hint


def database(path, *tables) -> Path:
    """An SQLite database of empty tables."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in tables:
            connection.execute(f'CREATE TABLE "{table}" (x)')
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("tables", "kind"),
    [
        (["META_DATA_EXPORT"], "nsys"),
        (["EXPORT_META_DATA"], "nsys"),
        (["TARGET_INFO_SESSION_START_TIME"], "nsys"),
        (["ANALYSIS_DETAILS"], "nsys"),
        (["CUPTI_ACTIVITY_KIND_KERNEL_V3"], "nsys"),
        (["StringIds", "NVTX_EVENTS", "other"], "nsys"),
        (["StringIds"], "sqlite"),
        (["NVTX_EVENTS"], "sqlite"),
        (["kernels", "cupti_activity_kind_kernel"], "sqlite"),
        (["na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve"], "sqlite"),
    ],
)
@pytest.mark.parametrize("name", ["report.sqlite", "report.json"])
def test_exports_of_nsight_are_told_by_their_tables(tmp_path, tables, kind, name):
    """Any table that only Nsight Systems makes tells an export; tables of other programs tell none."""
    found = sniff(database(tmp_path / name, *tables))
    assert (found.kind, found.readable) == (kind, kind == "nsys")
    if kind == "sqlite":
        assert found.looks_like == "an SQLite database that is no export of Nsight Systems"
        assert "nsys export" in found.hint


def test_recorded_exports_are_told(shared):
    """Exports that Nsight Systems wrote are told, those without kernels too."""
    paths = sorted(shared.glob("real/nsys/*.sqlite"))
    assert paths
    assert {sniff(path).kind for path in paths} == {"nsys"}


@pytest.mark.parametrize(
    "name", ["a?mode=memory.sqlite", "a#b.sqlite", "50%25.sqlite", "a b&c.sqlite", "\udcff.sqlite"]
)
@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_databases_of_odd_names(tmp_path, name):
    """What means something in a URI means nothing in a name."""
    plain = database(tmp_path / "plain", "ANALYSIS_DETAILS")
    assert sniff(plain.rename(tmp_path / name)).kind == "nsys"


def test_nothing_is_written_beside_a_database(tmp_path):
    """Neither a journal nor a lock appears, though the database was left in a mode that wants both."""
    path = database(tmp_path / "report.sqlite", "ANALYSIS_DETAILS")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    assert sniff(path).kind == "nsys"
    assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]
    assert path.read_bytes() == before


def test_databases_where_nobody_may_write(tmp_path):
    """A database is told in a folder that is for reading only."""
    path = database(tmp_path / "report.sqlite", "ANALYSIS_DETAILS")
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert sniff(path).kind == "nsys"
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("damage", ["cut", "schema"])
def test_a_damaged_database_says_so(tmp_path, damage):
    """A database that was cut off, or whose table of tables is broken, is to be exported again."""
    path = database(tmp_path / "report.sqlite", "ANALYSIS_DETAILS", "StringIds")
    content = path.read_bytes()
    path.write_bytes(content[:5000] if damage == "cut" else content.replace(b"CREATE TABLE", b"CREATE LABLE"))
    with pytest.raises(InputError, match=r"report.sqlite: expected a trace, found a damaged SQLite database") as caught:
        read(path)
    assert "--force-overwrite" in caught.value.hint


def test_a_gzip_of_a_database_is_to_be_unpacked(tmp_path):
    """SQLite reads no gzip, and the hint says what to do."""
    path = database(tmp_path / "report.sqlite", "ANALYSIS_DETAILS")
    path.write_bytes(gzip.compress(path.read_bytes()))
    found = sniff(path)
    assert (found.kind, found.looks_like) == ("foreign", "a gzip of an SQLite database")
    assert "Unpack" in found.hint


@pytest.mark.skipif(sys.platform == "win32", reason="no such paths there")
def test_a_path_too_long_for_sqlite_is_no_damage(tmp_path):
    """SQLite refuses paths that the system takes; the file is not to blame."""
    folder = tmp_path.joinpath(*["x" * 200] * 4)
    folder.mkdir(parents=True)
    path = database(tmp_path / "report.sqlite", "ANALYSIS_DETAILS").rename(folder / "report.sqlite")
    with pytest.raises(InputError, match="cannot be opened by SQLite") as caught:
        sniff(path)
    assert "too long" in caught.value.hint


@pytest.mark.parametrize("content", [b"\x08\x01\x12\x04", b"text", b"PK\x03\x04", b"\x1f\x8bnonsense"])
def test_a_report_is_told_by_its_suffix(save, content):
    """The suffix tells a report of Nsight Systems, and the hint is the command that exports it."""
    path = save(content, "my report.nsys-rep")
    found = sniff(path)
    assert (found.kind, found.readable, found.looks_like) == ("nsys-rep", False, "a report of Nsight Systems")
    arguments = ["--type", "sqlite", "--include-json=true", "--output", str(path.with_suffix(".sqlite")), str(path)]
    assert shlex.split(found.hint) == ["nsys", "export", *arguments]


def test_suffixes_of_reports(save):
    """Old reports have another suffix; what a killed run leaves needs another program first."""
    assert sniff(save(b"\x00", "old.QDREP")).looks_like == "a report of Nsight Systems"
    found = sniff(save(b"\x00", "killed.qdstrm"))
    assert found.kind == "nsys-rep"
    assert "unfinished" in found.looks_like
    assert "QdstrmImporter --input-file" in found.hint


@pytest.mark.parametrize(("content", "kind"), [(KINETO, "kineto"), (b"", "empty"), (b"SQLite format 3\x00", "sqlite")])
def test_a_suffix_does_not_overrule_content(save, content, kind):
    """A file that is told by its content is that, whatever its suffix says."""
    assert sniff(save(content, "report.nsys-rep")).kind == kind


def test_a_report_whose_name_looks_like_an_option(tmp_path, monkeypatch):
    """The command takes it for a file."""
    monkeypatch.chdir(tmp_path)
    Path("-o.nsys-rep").write_bytes(b"\x00")
    assert sniff(Path("-o.nsys-rep")).hint.endswith("--output ./-o.sqlite ./-o.nsys-rep")


def test_missing_file(tmp_path):
    """A path that cannot be opened is named."""
    with pytest.raises(InputError, match=r"gone\.json: cannot be read: No such file or directory"):
        read(tmp_path / "gone.json")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)
