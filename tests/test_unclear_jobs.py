"""Jobs of which files leave it unclear who belongs together, or what a step is: nothing is calmly wrong."""

from __future__ import annotations

import pytest

from bubblescope.emit import truth
from tests.ordinary import brief
from tests.unclear import TOLD, UNCLEAR, Classed, Outcome, classed, drawn, table

DRAWS, FEW = 500, 25
MOST_NEEDLESS = 0.03
"""Share of the labelled jobs of which all numbers are right and doubted all the same."""


def found(results: list[Classed], outcome: Outcome) -> dict[str, tuple[str, ...]]:
    """What is wrong with the jobs of that outcome."""
    return {brief(each.job): each.why for each in results if each.outcome == outcome}


@pytest.mark.parametrize("told", TOLD)
def test_each_kind_is_drawn(told):
    """Every field that a kind is made by occurs among the jobs of a sweep that are told in that way; all can run."""
    jobs = [job for seed, job in drawn(range(300)) if seed % len(TOLD) == list(TOLD).index(told)]
    assert {job.labels for job in jobs} == {TOLD[told]["labels"]}
    assert {"kineto", "nsys"} == {job.recorder for job in jobs}
    for mark in ("dp_buckets", "recv_ahead", "eval_steps", "ramp", "zero_grad", "marks", "c", "groups_told"):
        assert len({getattr(job, mark) for job in jobs}) > 1, mark
    assert any(len(job.eval_steps) == job.steps for job in jobs)
    assert len(UNCLEAR) == 12
    assert all(truth(job).usable for job in jobs[:20])


def test_a_few():
    """Of a few draws none is calmly wrong."""
    assert found([classed(job) for _, job in drawn(range(FEW))], Outcome.CALM) == {}


@pytest.fixture(scope="module")
def sweep():
    """The results of all draws."""
    return [classed(job) for _, job in drawn(range(DRAWS))]


@pytest.mark.slow
def test_nothing_is_calmly_wrong(sweep):
    """Of 500 draws none."""
    assert found(sweep, Outcome.CALM) == {}, table(sweep)


@pytest.mark.slow
def test_little_is_doubted_for_nothing(sweep):
    """Of the jobs with labels no more than three in a hundred are right and doubted."""
    labelled = [each for each in sweep if each.told == "labels"]
    needless = found(labelled, Outcome.NEEDLESS)
    assert len(needless) <= MOST_NEEDLESS * len(labelled), f"{needless}\n{table(sweep)}"
