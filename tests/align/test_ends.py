"""Whether a rank shows that it holds the last stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.ends import recurs, turns
from tests.building import timeline


def acting(*rows, **others):
    """A rank with these actions."""
    return timeline(0, actions=rows, **others)


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        ([("0F0", 0, 10), ("0B0", 10, 30), ("0F1", 30, 40), ("0B1", 40, 60)], True),
        ([("0F0", 0, 10), ("0B0", 24, 44)], True),
        ([("0F0", 0, 10), ("0B0", 25, 45)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20), ("0F2", 20, 30), ("0B0", 30, 50), ("0B1", 50, 70), ("0B2", 70, 90)], True),
        ([("0F0", 0, 10), ("0F1", 10, 20), ("0F2", 20, 30), ("0B0", 32, 52), ("0B1", 52, 72), ("0B2", 72, 92)], False),
        ([("0F0", 0, 10), ("3F0", 20, 30), ("3B0", 30, 50), ("0B0", 60, 80)], True),
        ([("0F0", 0, 10), ("2F0", 20, 30), ("2B0", 60, 80), ("0B0", 80, 100)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20)], True),
        ([("0F0", 0, 10), ("0I0", 10, 20), ("0W0", 20, 30)], True),
    ],
    ids=[
        "each backward at once",
        "sooner than a stage takes",
        "as late as a stage takes",
        "behind another stage",
        "all forwards, then all backwards",
        "the same with a gap",
        "the last of two stages",
        "neither of two stages",
        "no backwards",
        "halves",
    ],
)
def test_the_last_stage_shows(rows, last):
    """Its backwards follow sooner than a further stage could answer."""
    assert turns(acting(*rows)) == last


@pytest.mark.parametrize(("late", "last"), [(1, True), (2, False)])
def test_most_steps_decide(late, last):
    """Of three, one that was cut out wrongly speaks for nothing."""
    gaps = [20] * late + [0] * (3 - late)
    rows = [
        row for i, gap in enumerate(gaps) for row in ((f"0F{i}", 100 * i, 100 * i + 10), _behind(i, 100 * i + 10 + gap))
    ]
    rank = acting(*rows, steps=[(i, 100 * i, 100 * i + 100) for i in range(3)])
    assert turns(replace(rank, actions=rank.actions.replace(step=np.repeat(range(3), 2)))) == last


def _behind(number, start):
    return (f"0B{number}", start, start + 20)


def test_a_micro_batch_that_comes_twice_passes_through_two_stages():
    """Nothing tells them apart, but that there are two."""
    assert recurs(acting(("?F0", 0, 10), ("?F0", 10, 20), ("?B0", 20, 30)))
    assert not recurs(acting(("?F0", 0, 10), ("?F1", 10, 20), ("?B0", 20, 30)))
    assert not recurs(acting(("0F0", 0, 10), ("3F0", 10, 20), ("3B0", 20, 30)))
