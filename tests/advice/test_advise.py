"""The order of the findings, and when fewer of them are said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.advice.advise import advise
from bubblescope.advice.rules import RULES
from tests.advice.runs import (
    LONG,
    PAUSES,
    SLOW,
    SLOW_LINK,
    Fake,
    a_rank,
    advised,
    causes,
    found,
    quiet,
    with_bubble,
    with_imbalance,
)

DESIGN = {"m=16": 0.12, "microbatch=0.5": 0.11, "schedule=interleaved-1f1b,v=2": 0.13, "schedule=zb-h1": 0.1}


def codes(report, answers, **fake):
    """The codes of all findings, the first first."""
    return [each.code for each in advised(report, Fake(answers, **fake))]


def troubled(**points):
    """A run with causes of that many points."""
    return with_bubble(quiet(), causes=causes(structural=0.2, **points))


def test_a_quiet_run_is_told_of_its_design():
    """The largest gain first."""
    assert codes(quiet(), DESIGN) == ["virtual-stages", "more-microbatches", "smaller-microbatches", "zero-bubble"]


PLANTS = {
    "stage-imbalance": (with_imbalance(troubled(imbalance=0.05), stage_ratio=1.2, slowest_stage=1), "imbalance"),
    "straggler": (with_imbalance(quiet(), stragglers=(SLOW,)), "straggler"),
    "data-length": (with_imbalance(troubled(), data_length=LONG), "data"),
    "garbage-collection": (with_imbalance(troubled(), pauses=PAUSES), "pauses"),
    "uneven-actions": (troubled(jitter=0.05), "jitter"),
    "slow-link": (replace(troubled(p2p=0.05), links=(SLOW_LINK,)), "p2p"),
    "p2p": (troubled(p2p=0.05), "p2p"),
    "host-bound": (troubled(host=0.05), "host"),
}


@pytest.mark.parametrize("code", PLANTS)
def test_what_is_broken_comes_before_the_design(code):
    """One trouble of 1 % comes first, though the design promises ten times as much."""
    report, trouble = PLANTS[code]
    assert codes(report, DESIGN | {f"without={trouble}": 0.01})[0] == code


@pytest.mark.parametrize("code", PLANTS)
def test_what_is_small_comes_last(code):
    """A trouble of less than 1 % comes after the design, of less than half a percent not at all."""
    report, trouble = PLANTS[code]
    assert codes(report, DESIGN | {f"without={trouble}": 0.009}).index(code) == len(DESIGN)
    assert code not in codes(report, DESIGN | {f"without={trouble}": 0.004})


def test_the_dearest_trouble_comes_first():
    """Troubles are ranked among themselves."""
    report = with_imbalance(troubled(imbalance=0.03, host=0.05), stage_ratio=1.2, slowest_stage=1)
    assert codes(report, {"without=imbalance": 0.02, "without=host": 0.04}) == ["host-bound", "stage-imbalance"]
    assert codes(report, {"without=imbalance": 0.04, "without=host": 0.02}) == ["stage-imbalance", "host-bound"]


def test_what_costs_time_is_not_proposed():
    """Nor what saves less than half a percent."""
    assert codes(quiet(), {"m=16": -0.1, "schedule=zb-h1": 0.0049, "microbatch=0.5": 0.005}) == ["smaller-microbatches"]


def small(**points):
    """A run of which 2.5 % is bubble, the rest compute."""
    report = quiet(ranks=tuple(a_rank(rank, compute=370) for rank in range(4)))
    return with_bubble(report, measured=0.0263, causes=causes(**points))


def test_a_small_bubble_is_said_first():
    """Before proposals about it."""
    assert codes(small(structural=0.02), {"m=16": 0.012}) == ["not-the-bubble", "more-microbatches"]


def test_a_trouble_in_a_small_bubble_comes_first():
    """What is broken is mended first, if it costs 1 % or more."""
    assert codes(small(host=0.02), {"without=host": 0.02}) == ["host-bound", "not-the-bubble"]
    assert codes(small(host=0.02), {"without=host": 0.008}) == ["not-the-bubble", "host-bound"]


def test_an_overhead_beyond_the_bubble_comes_before_all():
    """As it is larger than any trouble of the bubble."""
    ranks = tuple(a_rank(rank, compute=180, comm=120) for rank in range(4))
    report = with_bubble(quiet(ranks=ranks), causes=causes(structural=0.1, host=0.05))
    assert codes(report, {"without=host": 0.04, "m=16": 0.1})[:2] == ["not-the-bubble", "host-bound"]


def test_numbers_that_do_not_stand_promise_nothing():
    """The same advice in the same order, with no gain."""
    report, _ = PLANTS["host-bound"]
    answers = DESIGN | {"without=host": 0.04}
    sure, unsure = (advised(with_bubble(report, trusted=trusted), Fake(answers)) for trusted in (True, False))
    assert [each.code for each in unsure] == [each.code for each in sure]
    assert all(each.gain is not None for each in sure)
    assert {(each.gain, each.gain_ns) for each in unsure} == {(None, None)}


@pytest.mark.parametrize("error", [0.051, -0.051])
def test_a_replay_that_misses_the_run_says_nothing(error):
    """Neither of troubles nor of the design."""
    assert codes(troubled(host=0.05), DESIGN | {"without=host": 0.04}, error=error) == []


def test_a_replay_that_nearly_misses_the_run_speaks():
    """5 % is the limit."""
    assert codes(quiet(), {"m=16": 0.1}, error=0.049) == ["more-microbatches"]


def test_no_replay_no_proposal():
    """A pipeline that cannot be replayed gets none."""
    assert advise(found(), troubled(host=0.05), None) == ()


def test_every_what_if_is_asked_once():
    """However many rules want to know."""
    fake = Fake({"without=p2p": 0.02})
    advised(replace(troubled(p2p=0.05), links=(SLOW_LINK,)), fake)
    assert "without=p2p" in fake.asked
    assert len(fake.asked) == len(set(fake.asked))


def test_rules_go_by_their_codes():
    """Every row's rule makes proposals of its own code, in a form that reads well."""
    assert len({row.code for row in RULES}) == len(RULES)
    answers = {f"without={trouble}": 0.02 for trouble in ("imbalance", "straggler", "data", "pauses", "jitter", "p2p")}
    made = [
        each
        for report, trouble in PLANTS.values()
        for each in advised(report, Fake(DESIGN | answers | {f"without={trouble}": 0.02}))
    ]
    known = [row.code for row in RULES]
    assert {each.code for each in made} >= {*PLANTS, "more-microbatches", "zero-bubble"}
    for each in made:
        assert each.code in known
        assert not each.title.endswith(".")
        assert each.detail.endswith(".")
        assert "  " not in each.detail + each.limits
        assert ".." not in each.detail.replace("...", "")
