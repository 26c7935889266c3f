"""Micro-batches that count on from step to step are counted from 0 in each; all others stay."""

from __future__ import annotations

import pytest

from bubblescope.align.counted_on import counted_anew
from tests.building import actions_of, messages_of, timeline


def told(*steps, messages=()):
    """The names of two ranks that run the same micro-batches in each step."""
    ranks = {}
    for rank in range(2):
        rows = [
            (f"{rank}{kind}{i}", 100 * k + 10 * at, 100 * k + 10 * at + 9, k)
            for k, numbers in enumerate(steps)
            for at, (kind, i) in enumerate((kind, i) for kind in "FB" for i in numbers)
        ]
        every = [(5 + k, 100 * k, 100 * k + 100) for k in range(len(steps))]
        ranks[rank] = timeline(rank, actions=rows, steps=every, messages=messages)
    made = counted_anew(ranks)
    return [name[1:] for name, *_ in actions_of(made[1])], made


@pytest.mark.parametrize("steps", [((0, 1), (2, 3)), ((6, 7), (8, 9)), ((0, 1), (4, 5))])
def test_numbers_that_count_on_start_anew(steps):
    """From whatever they begin with, and though some steps between may not have been recorded."""
    assert told(*steps)[0] == ["F0", "F1", "B0", "B1"] * 2


@pytest.mark.parametrize("steps", [((0, 1), (0, 1)), ((0, 1, 2), (2, 3, 4)), ((2, 3), (0, 1)), ((2, 3),)])
def test_other_numbers_stay(steps):
    """Those that come again, overlap or fall, and one step."""
    assert told(*steps)[0] == [f"{kind}{i}" for numbers in steps for kind in "FB" for i in numbers]


def test_messages_follow():
    """A message of the second step names the action that it is for."""
    _, made = told((0, 1), (2, 3), messages=[("recv 0 1F1", 0, 5), ("recv 0 1F2", 100, 105, 1)])
    assert [name for name, *_ in messages_of(made[1])] == ["recv 0 1F1", "recv 0 1F0"]
