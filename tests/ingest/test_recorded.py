"""Traces that real programs recorded: all read, and their rows equal those of the standard library."""

from __future__ import annotations

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.chrome import read
from bubblescope.ingest.registry import read as read_any
from bubblescope.ingest.sniff import sniff

FOLDERS = ("torch", "frameworks", "synthetic", "real")


def traces(folder) -> list:
    """The traces in JSON below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if sniff(path).kind in {"kineto", "chrome"}]


@pytest.mark.parametrize("folder", FOLDERS)
def test_rows_equal_those_of_the_standard_library(shared, folder, by_json, rows):
    """Every kept event of every recording, by name, start and end to the nanosecond, and no other."""
    paths = traces(shared / folder)
    assert paths
    for path in paths:
        trace = read(path)
        trace.self_check()
        assert rows(trace) == by_json(path), path


@pytest.mark.slow
def test_small_windows_read_recordings_the_same(shared, rows):
    """Windows of a few kilobytes change nothing in a recording."""
    for path in traces(shared / "real"):
        assert rows(read(path, window=5000)) == rows(read(path)), path


def test_damaged_recordings(shared):
    """A damaged file reads or is an InputError that names it."""
    for path in sorted(shared.joinpath("damaged").rglob("*.*")):
        try:
            for trace in read_any(path):
                trace.self_check()
        except InputError as error:
            assert str(path) in error.message and error.hint  # noqa: PT017, PT018 - not raising is fine too


def test_damage_that_costs_nothing(shared, rows):
    """Numbers as text, gzip under another name, bytes and integers of any kind read like the sound file.

    The events that were added to these lie hours away from all others.
    """
    sound = rows(read(shared / "torch" / "1f1b_p4m8" / "rank1_trace.json.gz"))
    for name in ("string_numbers", "gzip_named_json", "huge_integers", "bad_utf8_bom"):
        assert rows(read(shared / "damaged" / name / "rank1_trace.json")) == sound
