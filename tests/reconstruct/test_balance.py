"""Whether the numbers of actions make a pipeline, step by step."""

from __future__ import annotations

import pytest

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.balance import balanced, even, whole_steps
from bubblescope.reconstruct.bases import Piece


def steps(text):
    """Pieces and kinds of steps, as in `FFBB FB`."""
    pieces = [Piece(0, 1, step, int(kind != "F"), 0) for step, kinds in enumerate(text.split()) for kind in kinds]
    return pieces, [Kind[kind] for kind in text.replace(" ", "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FFBB", True),
        ("FFIIWW FBFIWB", True),
        ("FFBB FFFFBBB FFB", True),  # cut at its ends
        ("FFFBB", True),  # one may be missing
        ("FFFFFFBB FFBB", True),  # an evaluation within one
        ("FFFFFFBB FFFFFBB FFFFFFFBB FFBB", True),  # and within most
        ("FFFFFFBB FFFFFFBB", False),
        ("FBBBB FBBBB FBBBB", False),
        ("FFFIIIW FFFIIIW", False),
    ],
)
def test_balance(text, expected):
    """As many of each in half of the steps, or over all whole ones to a tenth; in others an evaluation is set aside."""
    assert balanced(*steps(text)) is expected


def test_even_steps_are_counted():
    """Of a split backward both halves count."""
    assert even(*steps("FFBB FFB FIW FFIIW")) == 2


def test_whole_steps_are_all_but_the_outer_ones():
    """Of two, either may be whole."""
    assert whole_steps([1, 2, 3, 4]) == [2, 3]
    assert whole_steps([1, 2]) == [1, 2]
