"""Proposals about uneven work: whom they name, what they ask of the replay, and when they are silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.advice.uneven import data_length, garbage_collection, stage_imbalance, straggler, uneven_actions
from bubblescope.model.unevenness import StageLoad
from tests.advice.runs import LONG, PAUSES, SLOW, Fake, a_stage, causes, quiet, said, with_bubble, with_imbalance


def heavy(stage, points=0.06):
    """A run with a stage that is heavier than the others."""
    uneven = with_imbalance(quiet(), stage_ratio=1.2, slowest_stage=stage)
    return with_bubble(uneven, causes=causes(structural=0.24, imbalance=points))


@pytest.mark.parametrize(
    ("stage", "place", "why"),
    [
        (3, "stage 3 (the last)", "vocabulary"),
        (0, "stage 0 (the first)", "embedding"),
        (2, "stage 2:", "lighter stages"),
    ],
)
def test_the_heavy_stage_is_named(stage, place, why):
    """With what is likely to make it heavy."""
    told = said(stage_imbalance, heavy(stage), Fake({"without=imbalance": 0.05}))
    assert (told.code, told.gain, told.change) == ("stage-imbalance", 0.05, "without=imbalance")
    assert place in told.title
    assert "1.20 times" in told.title
    assert "6.0 of the bubble's 30.0 points" in told.detail
    assert why in told.detail
    assert "V / (12h + 2s)" in told.formula


def test_the_best_partition_is_the_gain_where_it_brings_half():
    """Else what even stages bring is the bound, as a layer that is too heavy may be split."""
    good = said(stage_imbalance, heavy(3), Fake({"without=imbalance": 0.05, "layers=best": 0.03}))
    assert (good.gain, good.change) == (0.03, "layers=best")
    assert "divide the layers is layers=best; quite even stages would save 5.0% of a step" in good.detail
    poor = said(stage_imbalance, heavy(3), Fake({"without=imbalance": 0.05, "layers=best": 0.01}))
    assert (poor.gain, poor.change) == (0.05, "without=imbalance")


def test_a_light_stage_is_named_where_it_is_what_differs():
    """One of half the work beside three alike, each 1.14 times the mean."""
    stages = (a_stage(0, 5, 10), *(a_stage(stage) for stage in (1, 2, 3)))
    report = replace(with_imbalance(heavy(3), stage_ratio=8 / 7), stages=stages)
    told = said(stage_imbalance, report, Fake({"without=imbalance": 0.05}))
    assert told.title == "Give more work to stage 0 (the first): it does 0.57 times the mean stage's"


@pytest.mark.parametrize(("chance", "is_said"), [(0.5, True), (0.001, False), (None, False)])
def test_a_stage_that_may_be_heavy_by_chance(chance, is_said):
    """As the report's own comparison has it."""
    row = StageLoad(stage=3, ratio=1.2, chance=chance)
    told = said(stage_imbalance, with_imbalance(heavy(3), stages=(row,)), Fake({"without=imbalance": 0.05}))
    assert ("may be chance" in told.detail) == is_said


@pytest.mark.parametrize("points", [0.0, 0.001, -0.02])
def test_even_stages_need_no_advice(points):
    """Where imbalance costs nothing, nothing is replayed."""
    fake = Fake({"without=imbalance": 0.05})
    assert said(stage_imbalance, heavy(3, points), fake) is None
    assert fake.asked == []


def test_slow_ranks_are_named():
    """All that share the place, and by how much."""
    told = said(straggler, with_imbalance(quiet(), stragglers=(SLOW,)), Fake({"without=straggler": 0.04}))
    assert (told.code, told.gain) == ("straggler", 0.04)
    assert told.title == "Look after ranks 4-5, which are slower than the replicas of the same stage"
    assert told.detail.startswith("Ranks 4-5 take 1.31 times as long in every step, and all replicas wait")


def test_no_slow_rank_no_advice():
    """However much the replay would save."""
    assert said(straggler, quiet(), Fake({"without=straggler": 0.04})) is None


def test_long_data():
    """By how much micro-batches differ, and the longest."""
    told = said(data_length, with_imbalance(quiet(), data_length=LONG), Fake({"without=data": 0.04}))
    assert (told.code, told.gain) == ("data-length", 0.04)
    assert "by 12.0%" in told.detail
    assert "1.80 times the median (micro-batch 3 of step 4)" in told.detail
    assert "squared sequence lengths" in told.detail


@pytest.mark.parametrize("data", [None, LONG])
def test_data_of_one_length(data):
    """Nothing is said where no effect was found."""
    even = (
        None if data is None else type(data)(**{key: getattr(data, key) for key in data.__slots__} | {"found": False})
    )
    assert said(data_length, with_imbalance(quiet(), data_length=even), Fake({"without=data": 0.04})) is None


def test_pauses():
    """How many, and the longest."""
    told = said(garbage_collection, with_imbalance(quiet(), pauses=PAUSES), Fake({"without=pauses": 0.03}))
    assert (told.code, told.gain) == ("garbage-collection", 0.03)
    assert "5 forwards pause and no backwards, the longest for 50.00 ms (rank 2, 2F3 of step 4)" in told.detail
    assert "gc.disable" in told.detail


def test_no_pauses():
    """Nothing is said where none was found."""
    assert said(garbage_collection, quiet(), Fake({"without=pauses": 0.03})) is None


def test_jitter_without_a_pattern():
    """All of its gain, where neither data nor pauses explain any."""
    jittery = with_bubble(quiet(), causes=causes(structural=0.26, jitter=0.04))
    told = said(uneven_actions, jittery, Fake({"without=jitter": 0.03}))
    assert (told.code, told.gain, told.change) == ("uneven-actions", 0.03, "without=jitter")
    assert "4.0 of the bubble's 30.0 points" in told.detail


def test_jitter_beside_long_data_and_pauses():
    """Only what these leave of it, which is no what-if."""
    jittery = with_bubble(quiet(), causes=causes(structural=0.26, jitter=0.04))
    known = with_imbalance(jittery, data_length=LONG, pauses=PAUSES)
    told = said(uneven_actions, known, Fake({"without=data+jitter+pauses": 0.05, "without=data+pauses": 0.03}))
    assert told.gain == pytest.approx(0.02)
    assert told.gain_ns == 8_000_000
    assert told.change is None


def test_steady_actions():
    """Where jitter costs nothing, nothing is replayed."""
    fake = Fake({"without=jitter": 0.03})
    assert said(uneven_actions, quiet(), fake) is None
    assert fake.asked == []
