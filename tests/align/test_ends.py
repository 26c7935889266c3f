"""Whether a rank shows that it holds the last stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.ends import recurs, turns
from tests.building import timeline

FORWARDS = [(f"0F{i}", 10 * i, 10 * i + 10) for i in range(4)]


def acting(*rows, **others):
    """A rank with these actions."""
    return timeline(0, actions=rows, **others)


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        ([("0F0", 0, 10), ("0B0", 10, 30), ("0F1", 30, 40), ("0B1", 40, 60)], True),
        ([("0F0", 0, 10), ("0B0", 10, 30)], True),
        ([("0F0", 0, 10), ("0B0", 14, 34)], False),
        ([("0F0", 0, 10), ("0B0", 24, 44), ("0F1", 44, 54), ("0B1", 54, 74)], True),
        ([("0F0", 0, 10), ("0B0", 25, 45), ("0F1", 45, 55), ("0B1", 70, 90)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 20, 40), ("0F2", 40, 50), ("0B1", 50, 70), ("0B2", 70, 90)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90)], False),
        ([*FORWARDS, ("0B0", 40, 60), ("0B1", 60, 80), ("0B2", 80, 100), ("0B3", 100, 120)], True),
        ([*FORWARDS, ("0B3", 40, 60), ("0B2", 60, 80), ("0B1", 80, 100), ("0B0", 100, 120)], True),
        ([*FORWARDS, ("0B3", 43, 63), ("0B2", 63, 83), ("0B1", 83, 103), ("0B0", 103, 123)], False),
        ([*FORWARDS, ("0B0", 42, 62), ("0B1", 62, 82), ("0B2", 82, 102), ("0B3", 102, 122)], False),
        ([*FORWARDS[:2], ("0B0", 20, 40), ("0B1", 40, 60)], False),
        ([*FORWARDS[:2], ("0B1", 20, 40), ("0B0", 40, 60)], True),
        ([("0F0", 0, 10), ("3F0", 20, 30), ("3B0", 30, 50), ("0B0", 60, 80)], True),
        ([("0F0", 0, 10), ("2F0", 20, 30), ("2B0", 60, 80), ("0B0", 80, 100)], False),
        ([("0F0", 0, 10), ("0F1", 10, 20)], True),
        ([("0F0", 0, 10), ("0I0", 10, 20), ("0W0", 20, 30)], True),
    ],
    ids=[
        "each backward at once",
        "one micro-batch",
        "one micro-batch, before a light stage",
        "sooner than a stage takes",
        "as late as a stage takes",
        "soon, behind another forward",
        "behind another stage",
        "all forwards, then all backwards",
        "all backwards from the last",
        "from the last, before a light stage",
        "the same with a gap",
        "two forwards, as before a light stage",
        "two, and back from the last",
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


@pytest.mark.parametrize(("ahead", "last"), [(5, True), (4, True), (3, False), (2, False)])
def test_a_row_of_ranks_that_breaks_off_ends(ahead, last):
    """Where the rank before runs two forwards more ahead, one backward that follows soon is enough."""
    before = acting(*[(f"0F{i}", 10 * i, 10 * i + 10) for i in range(ahead)], ("0B0", 60, 80))
    rows = [("1F0", 0, 10), ("1F1", 10, 20), ("1B0", 20, 30), ("1F2", 30, 40), ("1B1", 40, 49), ("1B2", 49, 59)]
    assert turns(acting(*rows), before) == last
    assert not turns(acting(*rows))
