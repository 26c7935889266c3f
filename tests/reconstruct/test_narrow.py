"""Marks that stand closer than steps: they are told apart from marks of steps, and steps are found all the same."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.narrow import narrow
from bubblescope.reconstruct.step_cuts import recurrences, torn


def ranges_of(names, *, named=True):
    """A range of 10 for each name, on one stage; without names only the kinds are known."""
    start = np.arange(len(names)) * 10
    kinds = [Kind[name[0]] for name in names]
    nothing = np.full(len(names), -1)
    numbers = [int(name[1:]) for name in names] if named else nothing
    return Ranges(start, start + 10, kinds, np.zeros(len(names)), numbers, nothing, nothing, nothing)


def is_narrow(marks, *, named=True, optimizer=()):
    """Whether marks that hold such actions, written `F0 B0 | F1 B1`, are narrow; the optimizer ran in some of them."""
    rows = [(k, name) for k, mark in enumerate(marks.split("|")) for name in mark.split()]
    ranges, step = ranges_of([name for _, name in rows], named=named), np.array([k for k, _ in rows])
    again = recurrences(ranges) if named else np.array([], np.int64)
    return narrow(ranges, step, again, np.array(optimizer, np.int64))


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("F0 B0 | F1 B1 | F0 B0 | F1 B1", True),
        ("F0 F1 B0 B1 | F0 F1 B0 B1", False),
        ("F0 F1 B0 B1 F0 F1 | F0 F1 B0 B1", False),  # an evaluation inside
        ("F0 B0 | F0 B0 | F0 B0", False),  # one micro-batch a step
    ],
)
def test_names_that_recur_in_fewer_places_than_marks(marks, expected):
    """Each step begins where the first name comes again."""
    assert is_narrow(marks) is expected


@pytest.mark.parametrize(
    ("marks", "optimizer", "expected"),
    [
        ("F0 B0 | F0 B0 | F0 B0 | F0 B0", (3,), True),
        ("F0 B0 | F0 B0 | F0 B0 | F0 B0", (1, 3), False),
        ("F0 B0 | F0 B0 | F0 B0 | F0 B0", (), False),  # nothing tells
        ("F0 F0 B0 B0 | F0 F0 B0 B0 | F0 F0 B0 B0", (2,), False),  # the optimizer waits for three batches
        ("F0 F0 B0 B0 | F0 F0 | F0 F0 | F0 F0", (0,), False),  # evaluations
        ("F0 F0 | F0 F0 | B0 B0 | B0 B0", (), True),
        ("F0 F0 | F0 B0 | B0 B0 | F0 F0 | F0 B0 | B0 B0", (), True),
        ("F0 F0 | F0 B0 F0 B0 | F0 B0 F0 B0 | B0 B0 | F0 F0 | F0 B0 F0 B0 | F0 B0 F0 B0 | B0 B0", (3, 7), True),
        ("B0 B0 | F0 F0 B0 B0", (), False),  # the recording began in the middle
        ("F0 F0 | F0 F0", (), False),
    ],
)
def test_an_optimizer_ends_a_step(marks, optimizer, expected):
    """Where nothing is named, it tells, and so do backwards whose forwards are elsewhere."""
    assert is_narrow(marks, named=False, optimizer=optimizer) is expected


def test_a_named_backward_in_another_mark_than_its_forward_tears():
    """As one does that autograd links; a forward that was not recorded does not."""
    names = ("F0", "F1", "B0", "B1")
    assert torn(ranges_of(names), np.array([0, 0, 1, 1]))
    assert not torn(ranges_of(names), np.array([0, 0, 0, 0]))
    assert not torn(ranges_of(("B0", "F1", "B1")), np.array([0, 1, 1]))


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("F0 F1 F0 F1 B0 B1 | F0 F1 F0 F1 B0 B1", False),
        ("F0 B0 F1 B1 F0 F1 F2 | F0 B0 F1 B1 F0 F1 F2", False),
        ("F0 F1 F0 B0 F1 B1 | F0 F1 F0 B0 F1 B1", False),
        ("F0 F1 F0 F1 B0 | B1 F0 F1 F0 F1 B0 | B1", True),  # late marks
        ("F0 B0 F1 B1 F0 B0 F1 B1 | F0 B0 F1 B1 F0 B0 F1 B1", True),  # marks of two steps
        ("F0 F1 B0 B1 F0 | F1 B0 B1 F0 F1 B0 B1", True),  # and of one and a half
        ("F0 F1 B0 F0 B1 | F0 F1 B0 F0 B1", True),  # amid the training
    ],
)
def test_an_evaluation_before_or_behind_a_training_tears_nothing(marks, expected):
    """Though the names of its forwards come again; what was cut elsewhere is torn as ever."""
    rows = [(k, name) for k, mark in enumerate(marks.split("|")) for name in mark.split()]
    assert torn(ranges_of([name for _, name in rows]), np.array([k for k, _ in rows])) is expected
