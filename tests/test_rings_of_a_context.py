"""What the ranks of a context pass round inside actions is no message between stages, also where nothing says so."""

from __future__ import annotations

import pytest

from bubblescope.emit import Job, truth
from tests.ordinary import analyzed

NOTHING_SAID = {
    "labels": "none",
    "p2p_args": "none",
    "pg_desc": "undefined",
    "groups_told": "none",
    "named_calls": False,
}
SHAPES = {
    "two of a context": {"p": 3, "m": 4, "c": 2},
    "three of a context": {"p": 2, "m": 3, "c": 3},
    "chunks": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2, "c": 2},
    "all forwards first": {"schedule": "gpipe", "p": 2, "m": 4, "c": 2},
    "early receives": {"p": 3, "m": 4, "c": 2, "recv_ahead": 2, "recv_streams": 2},
    "fused": {"p": 3, "m": 4, "c": 2, "fused": True},
    "an evaluation": {"p": 2, "m": 4, "c": 2, "steps": 3, "eval_steps": (1,), "eval_m": 2},
}


@pytest.mark.parametrize("autograd", [True, False], ids=["numbers", "kernels"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_ring_that_nothing_describes(shape, autograd):
    """Neither groups nor calls tell it from a pipeline's messages, of which there are as many as without it."""
    job = Job(**NOTHING_SAID | {"p2p_ns": 200_000, "kernels": 3, "steps": 2} | shape, autograd=autograd)
    report = analyzed(job).report
    assert (report.layout.pp, report.schedule.microbatches) == (job.p, job.m)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=0.006)


@pytest.mark.parametrize("labels", ["pp", "none"])
@pytest.mark.parametrize("shape", [{"c": 4}, {"c": 2, "t": 2}, {"c": 2, "t": 2, "groups_told": "sized"}], ids=str)
def test_the_ranks_of_a_context_are_not_taken_for_replicas(shape, labels):
    """Nothing tells how many there are, so neither how many replicas, and no speed counts them twice."""
    job = Job(**NOTHING_SAID | {"p2p_ns": 100_000, "kernels": 2, "p": 2, "m": 4, "labels": labels} | shape)
    report = analyzed(job).report
    assert (report.layout.pp, report.layout.dp, report.layout.cp) == (2, None, None)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=0.006)
