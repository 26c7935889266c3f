"""The default gate over many pairs of runs: no alarm without a change, and no change missed that the steps can show."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from bubblescope import Options, Report, evaluate
from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.gate.decide import against_baseline
from bubblescope.gate.presets import PRESETS
from bubblescope.gate.rules import parse
from tests.gate.pairs import EXTRA, JITTERS, JOB, PLANTS, Pair, pairs, planted, true_bubble

RULE = "bubble:+2pp"


class Answer(NamedTuple):
    """What the gate said, and the noise against which it said so."""

    outcome: str
    noise: float


def by_truth(pair: Pair) -> Answer:
    """The rule over the bubbles that the generator knows."""
    found = against_baseline(parse(RULE), true_bubble(pair.after), true_bubble(pair.before))
    assert found.noise is not None
    return Answer(found.outcome, found.noise)


def reported(job: Job) -> Report:
    """The report of a job's traces."""
    with tempfile.TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze(folder, Options(jobs=1)).report


def by_traces(pair: Pair) -> Answer:
    """The whole gate with its default rules, over traces of both runs."""
    gate = evaluate(reported(pair.after), baseline=reported(pair.before))
    (check,) = (check for check in gate.checks if check.level == "error")
    assert check.rule == RULE
    assert gate.verdict == check.outcome
    assert check.noise is not None
    return Answer(gate.verdict, check.noise)


def test_the_rule_is_the_default():
    """What is simulated is what a gate without rules holds runs against."""
    assert [rule for rule, level in PRESETS["default"].items() if level == "error"] == [RULE]


def test_planted_runs_are_worse_by_what_they_should_be():
    """Three points in the long run, whatever makes them."""
    for name in PLANTS:
        long = {"steps": 200, "seed": 11}
        before = truth(replace(JOB, jitter=JITTERS[2], **long)).bubble
        after = truth(replace(planted(name, JITTERS[2]), **long)).bubble
        assert after - before == pytest.approx(EXTRA, abs=0.002)


def no_alarm(answers: Iterable[Answer]) -> None:
    """At most 1 % fail, and hardly any is left open."""
    outcomes = [answer.outcome for answer in answers]
    assert outcomes.count("fail") <= len(outcomes) / 100
    assert outcomes.count("pass") >= 0.9 * len(outcomes)


def no_miss(answers: Iterable[Answer]) -> None:
    """Where noise is below the limit, and so the steps suffice, at least 95 % fail; elsewhere nothing passes."""
    told = list(answers)
    sufficing = [answer.outcome for answer in told if answer.noise <= parse(RULE).limit]
    assert len(sufficing) > 0.7 * len(told)
    assert sufficing.count("fail") >= 0.95 * len(sufficing)
    others = [answer.outcome for answer in told if answer.noise > parse(RULE).limit]
    assert set(others) <= {"fail", "inconclusive"}
    assert others.count("inconclusive") > 0


def test_no_alarm_and_no_miss_by_truth():
    """Sixty pairs of each kind, by the bubbles that the generator knows."""
    no_alarm(map(by_truth, pairs(60, worse=False, seed=1000)))
    no_miss(map(by_truth, pairs(60, worse=True, seed=1000)))


@pytest.mark.slow
@pytest.mark.parametrize(("worse", "right"), [(False, no_alarm), (True, no_miss)])
def test_no_alarm_and_no_miss_in_traces(worse: bool, right: Callable[[Iterable[Answer]], None]):
    """Two hundred pairs of runs written as traces and read again, with the default rules."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        right(list(pool.map(by_traces, pairs(200, worse=worse), chunksize=5)))
