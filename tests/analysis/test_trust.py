"""The verdict on each number: what speaks against it, and whether it is there at all."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from bubblescope.analysis.quality import DEGRADING
from bubblescope.analysis.trust import AFFECTED, judged
from bubblescope.model.quality import Number
from bubblescope.model.trace import Finding
from tests.analysis.jobs import RANK_0, RANK_1, again, hidden, job, one_f_one_b, rank, report, steps
from tests.analysis.test_quality import alone

PIPELINE = ("bubble", "schedule", "formula", "causes", "stages", "ranks", "imbalance", "throughput")

UNSEEN_OR_DOUBTFUL = {"missing-ranks", "clock-uncertain", "contradiction", "unnamed-communication", "unpaired-p2p"}
"""Findings of the analysis itself, which degrade by what makes them: an unseen stage, a doubt about the numbers."""


def verdicts(of):
    """Verdict and reasons of each number of a job."""
    return {each.number: (each.verdict, each.reasons) for each in report(of).quality.numbers}


def with_finding(code, severity="warning"):
    """A whole job with a finding about it."""
    return dataclasses.replace(one_f_one_b(times=3), findings=(Finding(code, severity, "..."),))


def test_all_numbers_of_a_whole_job_stand():
    """In the order of the report; without messages there is nothing to say of communication."""
    assert verdicts(one_f_one_b(times=3)) == dict.fromkeys(PIPELINE, ("ok", ()))


@pytest.mark.parametrize("code", AFFECTED)
def test_a_finding_speaks_against_its_numbers_and_no_other(code):
    """Whoever found it; one for information speaks against none."""
    told = verdicts(with_finding(code))
    against = {number for number, (verdict, reasons) in told.items() if (verdict, reasons) == ("degraded", (code,))}
    assert against == AFFECTED[code] & set(PIPELINE)
    assert all(told[number] == ("ok", ()) for number in set(PIPELINE) - against)
    assert {verdict for verdict, _ in verdicts(with_finding(code, "info")).values()} == {"ok"}


@pytest.mark.parametrize("code", sorted(DEGRADING))
def test_what_degrades_the_data_speaks_against_a_number(code):
    """Else nobody could tell which."""
    assert AFFECTED[code]


@pytest.mark.parametrize("code", sorted(AFFECTED.keys() - UNSEEN_OR_DOUBTFUL))
def test_what_speaks_against_a_number_degrades_the_data(code):
    """Else the data as a whole were ok, and numbers of theirs were not."""
    assert report(with_finding(code)).quality.verdict == "degraded"
    assert report(with_finding(code, "info")).quality.verdict == "ok"


def test_what_was_skipped_speaks_against_nothing():
    """A file that is no trace does not make the rest worse."""
    assert {verdict for verdict, _ in verdicts(with_finding("skipped")).values()} == {"ok"}


def test_a_bubble_that_is_an_interval_is_degraded():
    """Its causes are not there."""
    told = verdicts(hidden(one_f_one_b(times=3), 1))
    assert told["bubble"] == ("degraded", ("missing-ranks",))
    assert told["causes"] == ("unusable", ("missing-ranks",))
    assert told["stages"] == ("ok", ())


def test_without_actions_the_pipeline_has_no_numbers():
    """And the schedule is unknown."""
    told = verdicts(job(*(rank(r, stray=[(0, 50 + r)], steps=steps(1)) for r in range(2))))
    assert told["bubble"] == ("unusable", ("unlabelled", "no-actions"))
    assert told["schedule"] == ("unusable", ("unlabelled", "no-schedule"))
    assert told["ranks"] == ("degraded", ("unlabelled",))


def test_without_a_complete_step_the_schedule_may_stand():
    """It shows in steps that lack actions, too; the bubble does not."""
    rows = {0: [*again(RANK_0, 2)], 1: [*again(RANK_1, 2)]}
    del rows[0][-1], rows[1][3]  # each rank has one whole step, and not the same
    found = report(job(*(rank(r, mine, steps=steps(2)) for r, mine in rows.items())))
    assert not any(step.used for step in found.steps)
    told = {each.number: (each.verdict, each.reasons) for each in found.quality.numbers}
    assert told["bubble"] == ("unusable", ("no-step",))
    assert told["schedule"][0] != "unusable"
    assert found.quality.verdict == "degraded"


def test_without_a_pipeline_few_numbers_are_asked_for():
    """No bubble is missed where there is none."""
    assert verdicts(alone(rank(0, stray=[(0, 10)], steps=steps(1)))) == {"ranks": ("ok", ()), "throughput": ("ok", ())}


def test_untrusted_causes_are_degraded():
    """Where they leave too much unexplained."""
    found = report(one_f_one_b(times=3))
    doubted = judged(dataclasses.replace(found, bubble=dataclasses.replace(found.bubble, trusted=False)))
    (causes,) = (each for each in doubted.numbers if each.number == "causes")
    assert (causes.verdict, causes.reasons) == ("degraded", ("residual",))


@pytest.mark.parametrize(("paired", "reasons"), [(0.89, ("unpaired-p2p",)), (0.9, ()), (None, ())])
def test_causes_over_unpaired_messages_are_degraded(paired, reasons):
    """What messages cost is not known of those without a partner, for whatever reason they have none."""
    found = report(one_f_one_b(times=3))
    covered = dataclasses.replace(found.quality.coverage, paired=paired)
    doubted = judged(dataclasses.replace(found, quality=dataclasses.replace(found.quality, coverage=covered)))
    (causes,) = (each for each in doubted.numbers if each.number == "causes")
    assert causes.reasons == reasons


def test_data_of_which_no_number_is_there_are_unusable():
    """A rank on which nothing took any time."""
    found = report(alone(rank(0, stray=[(5, 5)], steps=[(0, 5, 5)])))
    assert {each.number: each.verdict for each in found.quality.numbers} == {
        "ranks": "unusable",
        "throughput": "unusable",
    }
    assert found.quality.verdict == "unusable"


def test_numbers_of_the_table_are_numbers():
    """No misspelt one speaks against nothing."""
    assert set().union(*AFFECTED.values()) <= set(get_args(Number))
