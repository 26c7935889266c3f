"""Advice on runs whose faults are known: the finding that names a planted fault comes first, and none is made up."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from bubblescope import engine, reduction
from bubblescope.emit import Job, write
from bubblescope.model.options import Options
from tests.planted import analyzed, planted, plants
from tests.test_planted_causes import FEW, RECORDED, SHAPES, SIZES, SPARE, plant_of

STRUCTURAL = {"more-microbatches", "smaller-microbatches", "virtual-stages", "zero-bubble", "tensor-parallel"}

CODES = {
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

QUIET = {
    "small": Job(**SPARE, p=4, m=8),
    "replicas": Job(**SPARE, p=2, m=4, d=2),
    "tensor parallel": Job(**SPARE, p=2, m=4, t=2),
    "interleaved": Job(**SPARE, schedule="interleaved-1f1b", p=2, m=4, v=2),
    "zero bubble": Job(**SPARE, schedule="zb-h1", p=3, m=6),
    "both ways": Job(**SPARE, schedule="dualpipe-v", p=2, m=6, v=2),
    "many micro-batches": Job(**SPARE, p=2, m=40),
}


def first(job):
    """The code of the first finding on a job."""
    return analyzed(job).findings[0].code


@pytest.mark.parametrize(("job", "name", "size"), FEW, ids=[f"{name} in {job.schedule}" for job, name, _ in FEW])
def test_a_planted_fault_comes_first(job, name, size):
    """Though changes of the design promise more."""
    assert first(planted(plant_of(job, name), size).job) == CODES[name]


@pytest.mark.parametrize("name", QUIET)
def test_a_quiet_run_is_only_told_of_its_structure(name):
    """No other finding claims 1 % of a step."""
    told = [each for each in analyzed(QUIET[name]).findings if (each.gain or 0) > 0.01]
    assert {each.code for each in told} <= STRUCTURAL
    assert told or name == "many micro-batches"


def test_a_small_bubble_is_said_to_be_no_problem():
    """2 % of a step: it is compute."""
    found = analyzed(QUIET["many micro-batches"]).findings
    assert found[0].code == "not-the-bubble"
    assert "compute" in found[0].title


def test_no_pipeline_is_told_what_else():
    """Two replicas that reduce for a third of the step."""
    found = analyzed(Job(**SPARE, p=1, m=4, d=2, dp_ns=60_000_000)).findings
    assert found[0].code == "not-the-bubble"
    assert "data-parallel" in found[0].title


def test_a_stage_that_nobody_recorded_makes_no_advice():
    """Nothing can be replayed, and nothing is promised."""
    assert analyzed(Job(**SPARE, p=4, m=8, missing=(2,))).findings == ()


def test_a_long_run_is_replayed_in_part(monkeypatch):
    """A step of two is enough, and gains stay nearly what they are."""
    job = Job(**SPARE, p=2, m=4)
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        whole = engine.analyze([folder], Options(jobs=1)).report.findings
        monkeypatch.setattr(reduction, "MOST_REPLAYED", 16)
        part = engine.analyze([folder], Options(jobs=1)).report.findings
    assert [each.code for each in part] == [each.code for each in whole]
    assert [each.gain for each in part] == pytest.approx([each.gain for each in whole], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SHAPES)), ids=["-".join(map(str, shape)) for shape in SHAPES])
def test_every_planted_fault_comes_first(number):
    """Every plant in one size each, and one way to record it each, so that all of them meet over the schedules."""
    schedule, p, m, v = SHAPES[number]
    dice, wrong = Random(100 + number), {}  # noqa: S311 - repeatable
    for d in (1, 3) if p * v < 5 else (1,):
        bare = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d)
        assert {each.code for each in analyzed(bare).findings if (each.gain or 0) > 0.01} <= STRUCTURAL
        for plant in plants(bare):
            labels, recorder = dice.choice(RECORDED)
            size, seed = dice.choice(SIZES), dice.randrange(1000)
            job = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d, labels=labels, recorder=recorder, seed=seed)
            run = planted(plant_of(job, plant.name), size)
            found = None if run is None else first(run.job)
            wrong |= {} if found in {None, CODES[plant.name]} else {f"{plant.name} {labels} {recorder} {seed}": found}
    assert wrong == {}
