"""Recordings of one process as one rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.cycles import recorded_again
from bubblescope.model.timeline import Messages, Steps
from bubblescope.model.trace import Identity, Source
from tests.building import timeline


def recording(at, *, process="70", host=None, rank=-1, said=None, name="a.json", number=0, absolute=True):
    """A step of two actions and a message that begins at a moment."""
    made = timeline(
        rank,
        actions=[("0F0", at, at + 10), ("0B0", at + 20, at + 30)],
        messages=[("send 1 0F0", at + 10, at + 12)],
        steps=[(number, at, at + 40)],
    )
    who = Identity(rank=None if rank < 0 else rank, rank_source=said, host=host, process=process)
    return replace(made, identity=who, absolute=absolute, source=Source(name, "kineto", 1, 1))


def joined(*recordings):
    """How many recordings each rank has."""
    return [1 + len(found.resumed) for found in recorded_again(recordings)]


def test_one_behind_the_other():
    """Steps that come again count on, and rows go on pointing at their own."""
    (found,) = recorded_again([recording(100, name="b.json"), recording(0)])
    found.self_check()
    assert found.steps.number.tolist() == [0, 1]
    assert found.steps.start.tolist() == [0, 100]
    assert (found.resumed, found.source.path, [source.path for source in found.later]) == ((1,), "a.json", ["b.json"])
    assert found.actions.step.tolist() == [0, 0, 1, 1]
    assert found.messages.step.tolist() == [0, 1]
    assert found.messages.direction.tolist() == [Messages.SEND] * 2


def test_numbers_that_go_on():
    """Stay as they are, though a rest lies between."""
    (found,) = recorded_again([recording(0, number=3), recording(100, number=4)])
    assert (found.steps.number.tolist(), found.resumed) == ([3, 4], (4,))


def test_ranks_count_on_alike():
    """Also one of which the first recording is missing."""
    found = recorded_again([recording(0), recording(100), recording(101, process="71")])
    assert [rank.steps.number.tolist() for rank in found] == [[0, 1], [1]]


def test_one_file_has_one_clock():
    """From wherever it counts."""
    assert joined(recording(0, absolute=False), recording(100, absolute=False)) == [2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"process": "71"}),
        ({}, {"at": 30}),
        ({"process": None}, {"process": None}),
        ({"host": "a"}, {"host": "b"}),
        ({"absolute": False}, {"absolute": False, "name": "b.json"}),
        ({"rank": 0, "said": "metadata"}, {"rank": 1, "said": "metadata"}),
        ({"rank": 0, "said": "filename"}, {"rank": 1, "said": "filename"}),
    ],
)
def test_others_are_ranks_of_their_own(one, other):
    """Of another process or host, at the same time, of another rank, or of a clock that cannot be compared."""
    assert joined(recording(**({"at": 0} | one)), recording(**({"at": 100} | other))) == [1, 1]


def test_the_number_in_a_name_may_be_that_of_a_step():
    """On one host a process is believed, and then neither number is its rank."""
    rows = [recording(100 * n, host="a", rank=n, said="filename") for n in (1, 2)]
    (found,) = recorded_again(rows)
    assert (found.rank, found.identity.rank) == (-1, None)
    (found,) = recorded_again([recording(100 * n, host="a", rank=3, said="filename") for n in (1, 2)])
    assert found.rank == 3


def test_a_rank_that_metadata_tell():
    """Is kept."""
    (found,) = recorded_again([recording(100 * n, rank=3, said="metadata") for n in (1, 2)])
    assert found.rank == 3


def test_what_has_no_step_stays_by_itself():
    """A file that is cut before its first step is no recording of another's rank, and breaks nothing."""
    empty = replace(timeline(-1), identity=Identity(process="70"), absolute=True, steps=Steps.empty())
    assert len(recorded_again([empty])) == 1
    assert len(recorded_again([empty, recording(0), recording(100)])) == 2
