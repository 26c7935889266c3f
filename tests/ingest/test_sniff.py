"""Files are told by their content, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sqlite3

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
        (gzip.compress(KINETO), "kineto", "a PyTorch Profiler trace"),
        (KINETO[:60], "kineto", "a PyTorch Profiler trace"),
        (gzip.compress(KINETO)[:80], "kineto", "a PyTorch Profiler trace"),
        (LATE, "chrome", "a Chrome trace"),
        (json.dumps([EVENT]).encode(), "chrome", "a list of trace events"),
        (b"", "empty", "an empty file"),
        (b" \n\t", "empty", "a file of white space"),
        (gzip.compress(b""), "empty", "a gzip of an empty file"),
        (b"SQLite format 3\x00 and more", "sqlite", "an SQLite database"),
        (gzip.compress(b"SQLite format 3\x00"), "foreign", "a gzip of an SQLite database"),
        (b'{"a": 1}', "foreign", "JSON, but with no traceEvents"),
        (b'{"traceEvents": 1}', "foreign", "JSON, but with no traceEvents"),
        (b'{"a": {"traceEvents": []}}', "foreign", "JSON, but with no traceEvents"),
        (b'{"a" 1}', "foreign", "broken JSON, with no traceEvents before it breaks"),
        (b"[]", "foreign", "JSON, but an empty list"),
        (b"[1, 2]", "foreign", "JSON, but no list of events"),
        (b'[{"a": 1}]', "foreign", "JSON, but a list of objects that are no trace events"),
        (b"hello, this is no trace", "foreign", "text"),
        (gzip.compress(b"hello"), "foreign", "a gzip of text"),
        (b"PAR1....", "foreign", "a Parquet file"),
        (b"PK\x03\x04", "foreign", "a ZIP archive"),
        (lzma.compress(KINETO), "foreign", "XZ-compressed data"),
        (bz2.compress(KINETO), "foreign", "bzip2-compressed data"),
        (bytes(range(32)) * 4, "foreign", "binary data"),
        (b"\x1f\x8bnonsense", "foreign", "a damaged gzip file"),
        (b"<!DOCTYPE html>", "foreign", "HTML or XML"),
    ],
)
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "notes.txt"])
def test_sniff(save, content, kind, words, name):
    """Kind and words follow from the first bytes, and never from the name."""
    found = sniff(save(content, name))
    assert (found.kind, found.looks_like) == (kind, words)


def test_read_dispatches(save):
    """A trace of any name reads; another file is an error that says what it looks like."""
    (trace,) = read(save(gzip.compress(KINETO), "named.txt"))
    assert len(trace.ops) == 1
    with pytest.raises(InputError, match=r"notes.json: expected a trace, found text") as caught:
        read(save("hello", "notes.json"))
    assert caught.value.hint


def test_nsight_is_for_later(tmp_path):
    """A real SQLite file says that Nsight Systems exports are not read yet."""
    path = tmp_path / "report.json"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(InputError, match="an SQLite database") as caught:
        read(path)
    assert "not read yet" in caught.value.hint


def test_missing_file(tmp_path):
    """A path that cannot be opened is named."""
    with pytest.raises(InputError, match=r"gone\.json: cannot be read: No such file or directory"):
        read(tmp_path / "gone.json")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)
