"""Chunks told by the orders of the recorded positions."""

from __future__ import annotations

import pytest

from bubblescope.align.guess import guess
from bubblescope.model.actions import Action
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from tests.align.nameless import ran


def named(found):
    """The orders that a guess tells, by position."""
    return {
        at: tuple(map(Action, told.stage.tolist(), told.kind.tolist(), told.microbatch.tolist()))
        for at, told in found.told.items()
    }


def some(orders, positions):
    """What is asked of some positions."""
    return {at: orders[at] for at in positions}


@pytest.mark.parametrize("p", [2, 4])
def test_where_stages_run_both_ways_the_middle_sends_too(p):
    """The middle ranks hold two stages that follow each other, of different micro-batches: each sends its own."""
    line, orders = ran(find("chimera"), Shape(p, 2 * p))
    middle = [p // 2 - 1, p // 2]
    assert some(named(guess(some(line, middle), p)), middle) == some(orders, middle)
