"""The sentence that opens every summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.model.trace import Finding
from bubblescope.report.facts import facts
from bubblescope.report.verdict import verdict
from tests.report.conftest import straggler


def test_verdict_names_measured_theory_difference_and_biggest_part(samples):
    """The four things that a reader wants are in the first sentence."""
    assert verdict(samples["1f1b"]) == (
        "28.7% of the pipeline's time is bubble: 27.3% is what 1f1b owes with 4 stages and 8 micro-batches, "
        "the other 1.4 points are mostly transfers between stages (1.1 points)."
    )


def test_imbalance_names_the_stage_to_blame(samples):
    """Uneven stages alone help nobody; the slowest is named."""
    assert "uneven stages, stage 2 working 1.30 times the mean (16.2 points)" in verdict(samples["imbalanced"])


def test_stragglers_are_named(samples):
    """Slow ranks are named."""
    report = samples["imbalanced"]
    worst = tuple(replace(c, points=0.2 if c.cause == "straggler" else 0.0) for c in report.bubble.causes)
    slow = replace(report.imbalance, stragglers=(straggler(5, 1.2),))
    assert "slow rank 5" in verdict(replace(report, bubble=replace(report.bubble, causes=worst), imbalance=slow))


@pytest.mark.parametrize(
    ("replay", "part"),
    [(0.2840, "mostly uneven actions (stages or"), (0.2740, "mostly transfers and host delays (1.3 points)")],
)
def test_without_causes_the_replay_tells_the_gap_apart(samples, replay, part):
    """The bigger of uneven actions and transfers is named where the causes are unknown."""
    report = samples["1f1b"]
    assert part in verdict(replace(report, bubble=replace(report.bubble, causes=(), replay=replay)))


@pytest.mark.parametrize(
    ("measured", "part"),
    [(0.2729, "27.3% of the pipeline's time is bubble, just what 1f1b owes"), (0.25, "2.3 points less than the 27.3%")],
)
def test_small_and_negative_differences_are_said_as_such(samples, measured, part):
    """Nothing is made of a difference that no digit shows, and a gain is no loss."""
    report = samples["1f1b"]
    assert part in verdict(replace(report, bubble=replace(report.bubble, measured=measured)))


@pytest.mark.parametrize("kept", [0, 2])
def test_no_time_is_an_answer(samples, kept):
    """Whether there is no rank, or ranks of which no time could be told."""
    report = samples["no-pipeline"]
    idle = tuple(replace(rank, window_ns=0) for rank in report.ranks[:kept])
    assert verdict(replace(report, ranks=idle)) == "No pipeline here, and no rank whose time could be told."


def test_a_pipeline_that_was_not_identified_is_no_answer(samples):
    """Where something points to one, the sentence does not say that there is none; nor do the facts."""
    report = samples["no-pipeline"]
    doubt = Finding("unlabelled", "warning", "kernels that nothing names")
    report = replace(report, quality=replace(report.quality, findings=(doubt,)))
    assert verdict(report).startswith(
        "No pipeline could be identified, but the recording may hold one (see the warnings). A step of 412.0 ms"
    )
    assert dict(facts(report))["Schedule"] == "none identified, which does not show that there is none"
    assert "no sends" not in dict(facts(report))["Layout"]
    assert "may hold one (see the warnings), and no rank" in verdict(replace(report, ranks=()))


def test_an_open_interval_has_one_end(samples):
    """Nothing tells how long the window can be."""
    report = samples["missing-ranks"]
    sentence = verdict(replace(report, bubble=replace(report.bubble, lower=0.2, upper=1.0)))
    assert sentence.startswith("The bubble is 20.0% or more of the pipeline's time")


def test_no_pipeline_is_an_answer(samples):
    """Without a pipeline the sentence tells where a step's time went."""
    assert verdict(samples["no-pipeline"]) == (
        "No pipeline here: a step of 412.0 ms, mean over 2 ranks, is 71.2% compute, "
        "22.0% exposed data-parallel communication, 5.0% waiting for the host and "
        "1.8% exposed communication of groups that the trace does not name."
    )


def test_missing_ranks_give_the_interval_and_the_assumption(samples):
    """With ranks missing the sentence gives the interval, whom to ask for, and what is assumed."""
    sentence = verdict(samples["missing-ranks"])
    assert "between 22.1% and 35.0%" in sentence
    assert "the traces of ranks 2-3 are missing" in sentence
    assert "0.9 times the lightest to 1.1 times the heaviest" in sentence


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"steps": ()}, "no complete step was found"),
        ({}, "the traces do not tell it"),
    ],
)
def test_unknown_bubble_says_why(samples, change, reason):
    """Where not even an interval is known the sentence gives the reason."""
    report = samples["1f1b"]
    bubble = replace(report.bubble, measured=None, lower=None, upper=None)
    assert verdict(replace(report, bubble=bubble, **change)) == f"The bubble is unknown: {reason}."


def test_unknown_schedule_owes_nothing_that_could_be_said(samples):
    """Theory is silent about an order that fits no schedule."""
    report = samples["1f1b"]
    unknown = replace(
        report, schedule=replace(report.schedule, name="unknown"), bubble=replace(report.bubble, formula=None)
    )
    assert "no known schedule has the order found" in verdict(unknown)
