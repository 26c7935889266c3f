"""Runs whose truth is known: how long their steps take, how full their GPUs look, and how useful they are."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.model.options import Options

ROUGH = {"jitter": 0.05, "p2p_ns": 200_000, "host_gap_ns": 70_000, "seed": 3, "steps": 4}
APART = {"skew_ns": (0, 2_000_000, -3_000_000, 1_000_000), "drift_ppm": (0, 20, -10, 5), "ranks_a_host": 1}
JOBS = {
    "1f1b": Job(**ROUGH),
    "gpipe fused": Job(**ROUGH, schedule="gpipe", fused=True),
    "tp and dp": Job(**ROUGH, p=2, m=4, d=2, t=2),
    "zb-h1": Job(**ROUGH, schedule="zb-h1"),
    "dualpipe": Job(**ROUGH, schedule="dualpipe"),
    "forward-only": Job(**ROUGH, schedule="forward-only", d=2),
    "clocks apart": Job(**ROUGH, **APART),
    "nsys": Job(**ROUGH, recorder="nsys"),
    "cpu": Job(**ROUGH, backend="cpu"),
}
EDGE = 0.005  # of the step: a GPU's first kernel comes a little after the step begins


def analyzed(job: Job, **options):
    """The report of a job's traces."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze([folder], Options(**options)).report


@pytest.mark.parametrize("name", JOBS)
def test_steps_and_what_they_were_used_for_come_back(name):
    """Step time, rates and the useful share, to half a percent."""
    job, found = JOBS[name], analyzed(JOBS[name], batch_size=64).throughput
    used = truth(job).used
    step = fmean(s.end - s.start for s in used)
    useful = fmean(r.useful for s in used for p in s.pipelines for r in p.ranks) / step
    assert found.step_ns == pytest.approx(step, rel=EDGE)
    assert found.useful == pytest.approx(useful, rel=EDGE)
    assert found.microbatches_per_s == pytest.approx(job.m * job.d / step * 1e9, rel=EDGE)
    assert found.samples_per_s == pytest.approx(64 / step * 1e9, rel=EDGE)


def test_a_gpu_that_waits_looks_full():
    """In zb-h1 a receive spins whenever nothing computes: busy is all but 1, useful what the bubble leaves of it."""
    report = analyzed(Job(schedule="zb-h1", p=4, m=4, steps=4))
    assert report.bubble.measured == pytest.approx(0.2)
    assert all(row.busy > 0.99 for row in report.ranks)
    window = report.bubble.window_ns / report.throughput.step_ns
    assert report.throughput.useful == pytest.approx((1 - report.bubble.measured) * window, abs=1e-4)
    assert report.throughput.useful < 0.79


def test_a_gpu_that_nobody_made_wait_looks_empty():
    """Behind a rank's last action nothing is posted where there are no replicas: that much it is not busy."""
    job = JOBS["1f1b"]
    tails = {r: [] for r in range(job.p)}
    for step in truth(job).used:
        for rank in step.pipelines[0].ranks:
            tails[rank.rank].append(rank.tail / (step.end - step.start))
    for row in analyzed(job).ranks:
        assert row.busy == pytest.approx(1 - fmean(tails[row.rank]), abs=0.01)


def test_operators_tell_nothing_of_gpus():
    """A run on CPU is useful, and no monitor of GPUs shows anything."""
    report = analyzed(JOBS["cpu"])
    assert report.throughput.busy is None
    assert all(row.busy is None and row.useful is not None for row in report.ranks)


def test_the_gpu_that_is_named_gives_the_peak():
    """Emitted traces name an H100."""
    found = analyzed(JOBS["1f1b"], batch_size=64, sequence_length=1024, flops_per_token=1e9, recompute=1.0).throughput
    assert found.peak_flops == pytest.approx(989.4e12)
    assert found.mfu == pytest.approx(64 * 1024 * 1e9 / (found.step_ns * 1e-9 * 4 * 989.4e12))
    assert found.hfu == pytest.approx(found.mfu * 4 / 3)


def test_gpus_of_recorded_runs_look_busier_than_they_are(shared):
    """Runs of other people: busy holds useful; where collectives are exposed, by far."""
    real = shared / "real"
    found = {
        name: analyze([str(real / name)]).report.throughput
        for name in ("nsys/mfu_2gpu_before.sqlite", "kineto_oddities/mi300_rccl_generic_names.json.gz", "dlrm_8ranks")
    }
    assert all(0 < rates.useful < rates.busy < 1 for rates in found.values())
    waiting = found["kineto_oddities/mi300_rccl_generic_names.json.gz"]
    assert waiting.busy > 0.99
    assert waiting.useful < 0.34
    assert found["nsys/mfu_2gpu_before.sqlite"].useful > 0.85
