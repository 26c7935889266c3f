"""Recordings behind each other in one file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubblescope.ingest.sessions import recordings
from bubblescope.model.trace import Doubts
from tests.building import kernel, note, op, run, trace


def steps(first, at, count=2):
    """Marks of ten each, one behind the other."""
    return [note(f"ProfilerStep#{first + i}", at + 10 * i, at + 10 * i + 10) for i in range(count)]


def spans(built):
    """The first begin of each recording."""
    return [int(found.annotations.start.min()) for found in recordings(built)]


def test_a_pause():
    """Parts all events, and each recording has its own doubts."""
    built = trace(steps(0, 0), op("a", 1, 2), steps(0, 100), op("b", 101, 102), run("k", 105, 106, 130))
    built = replace(built, doubts=Doubts(misplaced=2, moments=np.array([5, 105])))
    one, other = recordings(built)
    assert [len(found.ops) for found in (one, other)] == [1, 1]
    assert [len(found.kernels) for found in (one, other)] == [0, 1]
    assert [(found.doubts.misplaced, found.doubts.moments.tolist()) for found in (one, other)] == [(2, [5]), (0, [105])]
    assert spans(trace(steps(0, 0), steps(7, 100), steps(9, 200))) == [0, 100, 200]


def test_no_pause():
    """Where no more than a step lies between, something else was recorded there, or nothing marks steps."""
    for rows in (
        [steps(0, 0), steps(2, 29)],
        [steps(0, 0), op("evaluation", 20, 95), steps(2, 100)],
        [steps(0, 0), kernel("late", 15, 99), steps(2, 100)],
        [note("F0", 0, 10), note("F0", 100, 110)],
        [steps(0, 0, count=1)],
        [],
    ):
        built = trace(rows)
        assert recordings(built) == [built]


def test_what_runs_on_behind_a_mark():
    """Is of the recording before the pause."""
    one, other = recordings(trace(steps(0, 0), run("late", 18, 25, 40), steps(2, 100)))
    assert (len(one.kernels), len(other.kernels)) == (1, 0)
