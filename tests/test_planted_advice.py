"""One cause planted in an otherwise quiet run: the finding that names it comes first. Without any nothing is blamed."""

from __future__ import annotations

from random import Random

import pytest

from bubblescope.emit import Job
from tests.planted import analyzed, planted, plants
from tests.test_planted_causes import FEW, RECORDED, SHAPES, SIZES, SPARE, plant_of

NAMED = {
    "last stage": "stage-imbalance",
    "first stage": "stage-imbalance",
    "all stages": "stage-imbalance",
    "slow first": "straggler",
    "slow inner": "straggler",
    "jitter": "uneven-actions",
    "long micro-batch": "data-length",
    "long micro-batches of some steps": "data-length",
    "transfers": "p2p",
    "transfers ahead": "p2p",
    "slow link": "slow-link",
    "fused transfers": "p2p",
    "late hosts": "host-bound",
    "holes": "host-bound",
    "pauses": "garbage-collection",
    "late hosts of a rank": "host-bound",
}
"""The finding that names each plant."""

STRUCTURAL = {"more-microbatches", "smaller-microbatches", "virtual-stages", "zero-bubble", "tensor-parallel"}
CLAIM = 0.01
"""What a finding may claim without a cause, as a share of a step."""


def blamed(report):
    """Findings that claim a gain though they do not concern the structure."""
    return {f.code: f.gain for f in report.findings if f.code not in STRUCTURAL and (f.gain or 0) > CLAIM}


@pytest.mark.parametrize(("job", "name", "size"), FEW, ids=[f"{name} in {job.schedule}" for job, name, _ in FEW])
def test_a_planted_cause_is_the_first_finding(job, name, size):
    """Of every kind of cause one, in the size given."""
    report = analyzed(planted(plant_of(job, name), size).job)
    assert report.findings[0].code == NAMED[name]
    assert report.findings[0].gain > CLAIM


def test_nothing_is_blamed_in_a_quiet_run():
    """All that is left to gain is the bubble that the schedule owes."""
    report = analyzed(Job(**SPARE))
    assert blamed(report) == {}
    assert {f.code for f in report.findings} & STRUCTURAL == STRUCTURAL


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SHAPES)), ids=["-".join(map(str, shape)) for shape in SHAPES])
def test_every_cause_is_the_first_finding_in_every_schedule(number):
    """Every plant in one size each, and one way to record it each, so that all of them meet over the schedules."""
    schedule, p, m, v = SHAPES[number]
    dice, wrong = Random(100 + number), {}  # noqa: S311 - repeatable
    for d in (1, 3) if p * v < 5 else (1,):
        bare = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d)
        assert blamed(analyzed(bare)) == {}
        for plant in plants(bare):
            labels, recorder = dice.choice(RECORDED)
            size, seed = dice.choice(SIZES), dice.randrange(1000)
            job = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d, labels=labels, recorder=recorder, seed=seed)
            run = planted(plant_of(job, plant.name), size)
            if run is not None:
                first = analyzed(run.job).findings[0].code
                wrong |= {f"{plant.name} {labels} {recorder} {seed}": first} if first != NAMED[plant.name] else {}
    assert wrong == {}
