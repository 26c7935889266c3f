"""Troubles that hide each other: when both are named, and that no gain is claimed for one of them."""

from __future__ import annotations

import pytest

from tests.advice.runs import Fake, advised, causes, quiet, with_bubble, with_imbalance

BOTH = {"without=imbalance": -0.014, "without=host": 0.144, "without=host+imbalance": 0.359}


def hiding(imbalance=0.2, host=0.14, **bubble):
    """A run whose stages are uneven and whose hosts are late."""
    report = with_bubble(quiet(), causes=causes(structural=0.1, imbalance=imbalance, host=host), **bubble)
    return with_imbalance(report, stage_ratio=1.5, slowest_stage=3)


def codes(report, answers):
    """The codes of all findings, the first first."""
    return [each.code for each in advised(report, Fake(answers))]


def test_a_hidden_trouble_is_named_with_what_hides_it():
    """Both forecasts are told; the gain of one of them is unknown, and what both gain can be tried."""
    first, told = advised(hiding(), Fake(BOTH))
    assert first.code == "host-bound"
    assert (told.code, told.gain, told.gain_ns, told.change) == (
        "stage-imbalance",
        None,
        None,
        "without=host+imbalance",
    )
    assert "stage 3" in told.title
    assert "Both mended save 35.9% of a step, late hosts alone 14.4% of a step." in told.detail


def test_it_stands_between_troubles_and_design():
    """As it is a trouble of this run, though nothing is claimed for it."""
    assert codes(hiding(), BOTH | {"m=16": 0.3}) == ["host-bound", "stage-imbalance", "more-microbatches"]


def test_two_that_hide_each_other_are_told_once():
    """Neither saves anything alone."""
    assert codes(hiding(), BOTH | {"without=host": 0.0}) == ["stage-imbalance"]


@pytest.mark.parametrize(
    ("report", "answers"),
    [
        (hiding(imbalance=0.019), BOTH),
        (hiding(host=0.019), BOTH),
        (hiding(), BOTH | {"without=host+imbalance": 0.15}),
        (hiding(trusted=False), BOTH),
    ],
    ids=["a cheap one", "beside a cheap one", "together no more", "numbers that do not stand"],
)
def test_nothing_is_hidden(report, answers):
    """Where either costs below 2 points, where both save no more than the other alone, where nothing can be said."""
    assert "stage-imbalance" not in codes(report, answers)


def test_what_saves_something_alone_is_not_hidden():
    """Its own finding has its own gain."""
    told = {each.code: each.gain for each in advised(hiding(), Fake(BOTH | {"without=imbalance": 0.05}))}
    assert told == {"host-bound": 0.144, "stage-imbalance": 0.05}
