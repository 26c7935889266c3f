"""Where steps begin by what their actions show."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.step_cuts import behind, evaluations_apart, recurrences, torn, unshared
from tests.reconstruct.building import ranges_of

F, B, I, W = Kind  # noqa: E741 - the letter of the field


def test_recurrences():
    """The second time that a name comes begins a step; all names are new after it."""
    once = [(F, 0, 1, 0), (F, 2, 3, 1), (B, 4, 5, 0), (B, 6, 7, 1)]
    again = [(k, s + 10, e + 10, i) for k, s, e, i in once]
    third = [(k, s + 20, e + 20, i) for k, s, e, i in once]
    assert recurrences(ranges_of(*once, *again, *third)).tolist() == [10, 20]
    assert recurrences(ranges_of(*once)).tolist() == []
    assert recurrences(ranges_of()).tolist() == []


def test_names_of_different_stages_do_not_recur():
    """Stage, kind and micro-batch make the name."""
    assert recurrences(ranges_of((F, 0, 1, 0, 0), (F, 2, 3, 0, 2), (B, 4, 5, 0, 0), (W, 6, 7, 0, 0))).tolist() == []


def test_names_without_a_micro_batch_do_not_recur():
    """A name that every micro-batch bears says nothing of steps."""
    assert recurrences(ranges_of((F, 0, 1), (F, 2, 3), (B, 4, 5, 0), (B, 6, 7, 0))).tolist() == [6]


def test_a_piece_of_an_earlier_step_is_cut_off():
    """The first forward of micro-batch 0 begins a step, if backwards of the step before precede it."""
    piece, whole = [(B, 0, 1, 0, 1)], [(F, 2, 3, 0, 0), (F, 4, 5, 0, 1), (B, 6, 7, 0, 0), (B, 8, 9, 0, 1)]
    assert recurrences(ranges_of(*piece, *whole)).tolist() == [2]


def test_a_recording_that_begins_between_the_chunks():
    """On a rank of two stages the forward of micro-batch 0 on the second begins no step, wherever it stands."""
    piece = [(F, 0, 1, 1, 0), (F, 2, 3, 0, 2), (F, 4, 5, 1, 2), (B, 6, 7, 0, 2), (B, 8, 9, 1, 2), (B, 10, 11, 0, 0)]
    whole = [(F, 20, 21, 0, 0), *((kind, start + 22, end + 22, *key) for kind, start, end, *key in piece)]
    assert recurrences(ranges_of(*piece, *whole)).tolist() == [20]


@pytest.mark.parametrize(
    ("step", "expected"),
    [([0, 0, 0, 0], False), ([0, 0, 1, 1], True), ([1, 0, 0, 1], True), ([0, 0, 0, -1], False)],
)
def test_steps_that_cut_through_the_pipeline(step, expected):
    """A backward in another step than its forward, or before it in its own: the marks stand in the wrong place."""
    linked = [(F, 0, 1, 0, 0), (F, 2, 3, 0, 1), (B, 4, 5, 0, 0), (B, 6, 7, 0, 1)]
    ranges = ranges_of(*linked)
    ranges = ranges.replace(link=[0, 1, 0, 1])
    assert torn(ranges, np.array(step)) is expected


def test_a_step_that_holds_an_action_twice_is_torn():
    """Two optimizer steps under one mark."""
    once = [(F, 0, 1, 0, 0), (B, 2, 3, 0, 0)]
    again = [(F, 4, 5, 0, 0), (B, 6, 7, 0, 0)]
    assert torn(ranges_of(*once, *again), np.array([0, 0, 0, 0]))
    assert not torn(ranges_of(*once, *again), np.array([0, 0, 1, 1]))


def test_steps_begin_behind_the_optimizer():
    """At the first action, or before it if the optimizer ran since the action before; a receive may lie between."""
    optimizer, begun = np.array([30, 35]), np.array([0, 10, 50, 60, 100])
    assert behind(optimizer, np.array([50, 100]), begun).tolist() == [36, 100]
    assert behind(optimizer[:0], np.array([50]), begun).tolist() == [50]
    assert behind(optimizer, np.array([0]), begun).tolist() == [0]


def test_a_step_begins_behind_the_evaluation_before_it():
    """Where forwards that no backward comes for leave a step as large as another; else nothing is cut."""
    plain, more = "FBFB", "FFFBFB"
    assert evaluations_apart(of_kinds(plain + more), np.array([0, 40])).tolist() == [0, 40, 60]
    assert evaluations_apart(of_kinds(more + more), np.array([0, 60])).tolist() == [0, 60]
    assert evaluations_apart(of_kinds(plain + "FBFFFB"), np.array([0, 40])).tolist() == [0, 40]
    assert evaluations_apart(of_kinds(plain + "FF"), np.array([0, 40])).tolist() == [0, 40]


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        ("F0 F1 F0 F1 F2 B0 F3 B1 F2 B0 F3 B1 B2 B3 B2 B3", True),  # interleaved, of two chunks
        ("F0 F1 F0 F1 B0 B1 B0 B1", True),
        ("F0 F0 F0 B0 B0 B0", True),
        ("F0 F0 I0 W0 I0 W0", True),
        ("F0 F0 F1 F1 B0 B0 B1", True),  # the last event was lost
        ("F0 F1 F0 F1 B0 B1 F0 F1 B0 B1", False),  # an evaluation of as many
        ("F0 F0 F0 F0 B0 B0", True),  # behind an evaluation
        ("F0 B0 F1 B1 F0 B0 F1 B1", False),
        ("F0 F1 B0 F0 F1 B0 B1 F0 F1 B1 B0 B1", False),  # a backward of the first step was lost
        ("F0 F1 F2 F3", False),
        ("F0 I0 W0 W0", False),
        ("F0 B0 B0", False),  # a forward was lost
    ],
)
def test_names_that_chunks_share_are_no_names(names, shared):
    """Forwards of one name that all wait for a backward each are of several chunks; then no name is believed."""
    rows = [(Kind[name[0]], 10 * k, 10 * k + 5, int(name[1:])) for k, name in enumerate(names.split())]
    found = unshared(ranges_of(*rows)).microbatch
    assert found.tolist() == ([NONE] * len(rows) if shared else [row[3] for row in rows])
    if shared:
        assert not len(recurrences(unshared(ranges_of(*rows))))


def of_kinds(text):
    """Ranges of such kinds, ten apart."""
    return ranges_of(*((Kind[kind], 10 * k, 10 * k + 5) for k, kind in enumerate(text)))
