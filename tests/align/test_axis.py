"""Steps that each begin their clock anew, on a common axis."""

from __future__ import annotations

import dataclasses

from bubblescope.align.axis import laid_out
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Steps
from tests.building import timeline


def laid(rank, steps, actions, *, restarts=True, optimizer=((), ())):
    """A timeline whose steps were laid one after the other: rows (number, start, end)."""
    number, start, end = zip(*steps, strict=True)
    return dataclasses.replace(
        timeline(rank, actions=actions),
        steps=Steps(start, end, number),
        restarts=restarts,
        optimizer=Spans.of(*optimizer),
    )


def test_each_step_begins_at_one_moment_on_all_ranks():
    """It takes as long as where it took longest; everything of it moves along."""
    one = laid(0, [(1, 0, 10), (2, 11, 15)], [("0F0", 0, 10), ("0B0", 11, 15)], optimizer=([9, 14], [10, 15]))
    other = laid(1, [(1, 0, 6), (2, 7, 17)], [("1F0", 2, 6), ("1B0", 7, 17)])
    first, second = laid_out({0: one, 1: other}).values()
    assert first.steps.start.tolist() == second.steps.start.tolist()
    moved = int(first.steps.start[1])
    assert moved >= 10
    assert first.actions.start.tolist() == [0, moved]
    assert second.actions.end.tolist() == [6, moved + 10]
    assert first.optimizer.start.tolist() == [9, moved + 3]


def test_what_lies_before_the_zero_of_a_step_has_room():
    """A step's first slices may come before its own zero: on no rank do two steps overlap."""
    one = laid(0, [(1, 0, 10), (2, 15, 20)], [("0F0", 0, 10), ("0B0", 12, 20)])
    other = laid(1, [(1, 0, 10), (2, 11, 20)], [("1F0", 2, 10), ("1B0", 11, 20)])
    first, second = laid_out({0: one, 1: other}).values()
    assert first.steps.start.tolist() == second.steps.start.tolist()
    assert first.actions.start.tolist() == [0, int(first.steps.start[1]) - 3]
    assert first.actions.start[1] >= 10


def test_steps_that_a_rank_lacks_leave_their_place_empty():
    """Steps go by their numbers."""
    one = laid(0, [(1, 0, 10), (3, 11, 15)], [("0F0", 0, 10), ("0B0", 11, 15)])
    other = laid(1, [(1, 0, 6), (2, 7, 17), (3, 18, 19)], [("1F0", 2, 6), ("1B0", 7, 17)])
    first, second = laid_out({0: one, 1: other}).values()
    assert first.steps.start[1] == second.steps.start[2]


def test_other_clocks_are_left_alone():
    """A clock that goes on tells itself when a step began."""
    one = laid(0, [(1, 5, 10), (2, 100, 105)], [("0F0", 5, 10)], restarts=False)
    assert laid_out({0: one})[0] is one
