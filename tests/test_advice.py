"""Advice on runs whose faults are known: the finding that names a planted fault comes first, and none is made up."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bubblescope import engine
from bubblescope.emit import Job, write
from bubblescope.model.options import Options
from tests.planted import STEPS, analyzed, planted, plants

SPARE = {"compress": False, "kernels": 2, "steps": STEPS, "ranks_a_host": 64}

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

FEW = [
    (Job(**SPARE, p=4, m=8), "last stage", 0.02),
    (Job(**SPARE, p=3, m=6, d=3), "slow inner", 0.05),
    (Job(**SPARE, p=4, m=8), "jitter", 0.05),
    (Job(**SPARE, schedule="interleaved-1f1b", p=2, m=4, v=2), "long micro-batches of some steps", 0.1),
    (Job(**SPARE, schedule="zb-h1", p=3, m=6), "slow link", 0.1),
    (Job(**SPARE, p=4, m=8), "fused transfers", 0.02),
    (Job(**SPARE, schedule="gpipe", p=3, m=6), "late hosts of a rank", 0.02),
    (Job(**SPARE, schedule="eager-1f1b", p=2, m=6), "pauses", 0.1),
]

SHAPES = [
    ("1f1b", 2, 4, 1),
    ("1f1b", 4, 8, 1),
    ("gpipe", 3, 6, 1),
    ("interleaved-1f1b", 3, 6, 2),
    ("looped-bfs", 2, 4, 2),
    ("zb-h1", 4, 6, 1),
    ("zb-v", 3, 6, 2),
]

QUIET = {
    "small": Job(**SPARE, p=4, m=8),
    "replicas": Job(**SPARE, p=2, m=4, d=2),
    "tensor parallel": Job(**SPARE, p=2, m=4, t=2),
    "interleaved": Job(**SPARE, schedule="interleaved-1f1b", p=2, m=4, v=2),
    "zero bubble": Job(**SPARE, schedule="zb-h1", p=3, m=6),
    "many micro-batches": Job(**SPARE, p=2, m=40),
}


def first(job):
    """The code of the first finding on a job."""
    return analyzed(job).findings[0].code


@pytest.mark.parametrize(("job", "name", "size"), FEW, ids=[f"{name} in {job.schedule}" for job, name, _ in FEW])
def test_a_planted_fault_comes_first(job, name, size):
    """Though changes of the design promise more."""
    plant = next(plant for plant in plants(job) if plant.name == name)
    assert first(planted(plant, size).job) == CODES[name]


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
        monkeypatch.setattr(engine, "MOST_REPLAYED", 16)
        part = engine.analyze([folder], Options(jobs=1)).report.findings
    assert [each.code for each in part] == [each.code for each in whole]
    assert [each.gain for each in part] == pytest.approx([each.gain for each in whole], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=["-".join(map(str, shape)) for shape in SHAPES])
def test_every_planted_fault_comes_first(shape):
    """In every schedule, small and large."""
    schedule, p, m, v = shape
    wrong = {}
    for d in (1, 3) if p * v < 4 else (1,):
        for plant in plants(Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d)):
            for size in (0.02, 0.1):
                run = planted(plant, size)
                if run is not None and first(run.job) != CODES[plant.name]:
                    wrong[f"{plant.name} {size} {d}"] = first(run.job)
    assert wrong == {}
