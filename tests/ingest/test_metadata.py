"""Ranks in the names of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.ingest.metadata import Members, filename_rank, identify


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank0_trace.json.gz", 0),
        ("rank-12.json.gz", 12),
        ("Rank_3.json", 3),
        ("profile_trace_rank_07.json.gz", 7),
        ("rank-5.Mon_02_10_11_12.99999.pt.trace.json.gz", 5),
        ("run_rank_0.1724066820235157909.pt.trace.json.gz", 0),
        ("copy_of_rank1.json.gz", 1),
        ("trace_4.json", 4),
        ("trace.4.pt.trace.json", 4),
        ("trace-15.json.gz", 15),
        ("worker0_step_12.1694128201545.pt.trace.json.gz", None),
        ("9c44bd29b3f0_1375.1724066820235157909.pt.trace.json", None),
        ("host_2024-05-22.1234567.pt.trace.json", None),
        ("libkineto_activities_1074.json", None),
        ("trace_step_12.json", None),
        ("frank3.json", None),
        ("ranking.json", None),
        ("trace.json", None),
        ("4.json", None),
        ("trace_4", None),
        ("trace_v2.json", None),
        ("rank1234567.json", None),
        ("host_2024-05-22.json", None),
        ("trace_20240522.json", None),
    ],
)
def test_rank_in_a_file_name(name, rank):
    """The word rank with a number, or a short last number; never a time, a date or a process."""
    assert filename_rank(name) == rank


def test_rank_in_a_file_name_must_fit_the_world():
    """A number that the job has no rank for is no rank."""
    members = Members()
    members.take("distributedInfo", b'{"world_size": 4}')
    assert identify(Path("trace_4.json"), members)[0].rank is None
    assert identify(Path("trace_3.json"), members)[0].rank == 3


def test_directories_and_trace_names_are_not_read():
    """Only the last part of a path may tell a rank."""
    assert identify(Path("rank3/trace.json"), Members())[0].rank is None


def test_a_bare_number_does_not_contradict():
    """A number without the word rank is no claim against the metadata."""
    members = Members()
    members.take("distributedInfo", b'{"rank": 1}')
    assert identify(Path("trace_4.json"), members)[1] == []


@pytest.mark.parametrize(
    "text", [b"[]", b"null", b"{", b'{"rank": -1}', b'{"rank": 1.5}', b'{"rank": true}', b'{"rank": "x"}']
)
def test_odd_distributed_information(text):
    """What is no rank is no rank."""
    members = Members()
    members.take("distributedInfo", text)
    assert identify(Path("trace.json"), members)[0].rank is None


@pytest.mark.parametrize(
    "number", [b"-1", b"1000000", b"2147483648", b"1e3", b"true", b'"x"', b"[0]", b"1" * 30, b'"' + b"9" * 5000 + b'"']
)
@pytest.mark.parametrize("key", ["rank", "world_size"])
def test_a_rank_that_cannot_be_is_not_told_and_warned_about(key, number):
    """A rank or a number of ranks beyond all jobs counts as not told, and the report says so."""
    members = Members()
    members.take("distributedInfo", b'{"%s": %s}' % (key.encode(), number))
    identity, findings = identify(Path("trace.json"), members)
    assert getattr(identity, key) is None
    assert [(finding.code, finding.severity) for finding in findings] == [("implausible-metadata", "warning")]
    assert key in findings[0].message
    assert len(findings[0].message) < 150


def test_an_implausible_rank_leaves_room_for_the_name_of_the_file():
    """What the metadata cannot tell the name of the file may."""
    members = Members()
    members.take("distributedInfo", b'{"rank": 2147483648, "world_size": null}')
    identity, findings = identify(Path("rank3.json"), members)
    assert (identity.rank, identity.rank_source) == (3, "filename")
    assert [finding.code for finding in findings] == ["implausible-metadata"]
