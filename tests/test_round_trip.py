"""Generate a job whose truth is known, write its traces, analyze them: the truth comes back."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, Truth, truth, write
from bubblescope.engine import analyze
from bubblescope.model.report import Rank, Report

NS = 1e-8
MICROSECONDS = 3e-5  # what rounding every time to a microsecond can do to the bubble of these short jobs
SINGLE = ("gpipe", "gpipe-reversed-drain", "1f1b", "naive")
LOOPED = ("interleaved-1f1b", "looped-bfs")


def analyzed(job: Job) -> Report:
    """The report of a job's traces."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze([folder]).report


@st.composite
def jobs(draw: st.DrawFn, **fixed: object) -> Job:
    """Jobs that labels or autograd numbers tell, over everything that may vary."""
    schedule = draw(st.sampled_from(SINGLE + LOOPED))
    v = draw(st.sampled_from((2, 3))) if schedule in LOOPED else 1
    p = draw(st.sampled_from((2, 3, 4)))
    labels = draw(st.sampled_from(("pp", "torch", "none"))) if v == 1 else "pp"
    backend = draw(st.sampled_from(("cuda", "cpu")))
    t = draw(st.sampled_from((1, 2))) if backend == "cuda" else 1
    choices = {
        "schedule": schedule.removesuffix("-reversed-drain"),
        "variant": int(schedule.endswith("-reversed-drain")),
        "p": p,
        "m": p * draw(st.sampled_from((1, 2))),
        "v": v,
        "d": draw(st.sampled_from((1, 2))),
        "t": t,
        "steps": draw(st.integers(1, 3)),
        "labels": labels,
        "comm_labels": labels == "pp" and draw(st.booleans()),
        "backend": backend,
        "jitter": draw(st.sampled_from((0, 0.05))),
        "p2p_ns": draw(st.sampled_from((0, 200_000))),
        "host_gap_ns": draw(st.sampled_from((0, 300_000))),
        "dp_ns": draw(st.sampled_from((0, 3_000_000))),
        "dp_early": draw(st.booleans()),
        "kernels": draw(st.sampled_from((2, 5))),
        "metadata": draw(st.sampled_from(("before", "after"))),
        "pg_desc": draw(st.sampled_from(("megatron", "mesh"))),
        "neutral_names": draw(st.booleans()),
        "scale": tuple(draw(st.sampled_from((1, 1, 1.3))) for _ in range(p * v)),
        "p2p_args": "kernel",
        "seed": draw(st.integers(0, 2**16)),
    }
    return Job(**(choices | fixed))


def told_right(job: Job, report: Report) -> None:
    """The order and the shape of the job are recognised, and nothing is warned of."""
    names = (report.schedule.name, *report.schedule.also)
    assert job.schedule in names, report.schedule
    layout = report.layout
    assert (layout.pp, layout.tp, layout.dp, layout.virtual) == (job.p, job.t, job.d, job.v)
    assert report.schedule.microbatches == job.m
    assert report.schedule.confidence == 1
    assert not report.schedule.departures
    assert [f for f in report.quality.findings if f.severity != "info"] == []


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs())
def test_order_and_bubble_come_back(job):
    """Schedule, p, m, v, tp, dp are recognised, and the bubble is the truth to rounding."""
    report = analyzed(job)
    told_right(job, report)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=NS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(backend="cuda"))
def test_the_partition_comes_back(job):
    """Compute, in-stage communication, dp, wait, transfer and host of every rank are the truth to 2 µs."""
    known = truth(job)
    for rank in analyzed(job).ranks:
        for part, expected in _expected(known, rank.rank).items():
            assert getattr(rank, part) == pytest.approx(expected, abs=2000), (rank.rank, part)
        _sums(rank)


def _expected(known: Truth, rank: int) -> dict[str, float]:
    """Means over the used steps. The truth splits the gap before the first action too; by definition it is waiting."""
    mine = [r for step in known.used for pipeline in step.pipelines for r in pipeline.ranks if r.rank == rank]
    first = [r.actions[0] for r in mine]
    early = sum(a.transfer for a in first), sum(a.host for a in first)
    return {
        "compute_ns": sum(r.useful - r.in_stage for r in mine) / len(mine),
        "in_stage_comm_ns": sum(r.in_stage for r in mine) / len(mine),
        "dp_ns": sum(r.dp for r in mine) / len(mine),
        "pp_transfer_ns": (sum(r.transfer for r in mine) - early[0]) / len(mine),
        "pp_wait_ns": (sum(r.wait for r in mine) + sum(early)) / len(mine),
        "host_ns": (sum(r.host for r in mine) - early[1]) / len(mine),
    }


def _sums(rank: Rank) -> None:
    assert rank.pp_ns == (rank.pp_transfer_ns or 0) + (rank.pp_wait_ns or 0)
    parts = (rank.compute_ns, rank.in_stage_comm_ns, rank.dp_ns, rank.pp_ns, rank.host_ns, rank.other_ns)
    assert sum(parts) == rank.window_ns


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(), st.sampled_from(("epoch-int", "epoch-fraction")))
def test_the_bubble_comes_back_from_every_time_era(job, era):
    """Absolute times, whole or broken microseconds, give the same answer as relative ones."""
    job = Job(**{**{f: getattr(job, f) for f in job.__dataclass_fields__}, "era": era, "pg_desc": job.pg_desc})
    report = analyzed(job)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=MICROSECONDS if era == "epoch-int" else NS)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(), st.lists(st.integers(-2_000_000, 2_000_000), min_size=16, max_size=16))
def test_the_bubble_does_not_depend_on_the_clocks(job, skew):
    """Where no weight gradient trails, one rank has both ends of the window: clocks 2 ms apart change nothing."""
    skewed = {**{f: getattr(job, f) for f in job.__dataclass_fields__}, "skew_ns": tuple(skew[: job.p * job.t * job.d])}
    job = Job(**skewed)
    assert analyzed(job).bubble.measured == pytest.approx(truth(job).bubble, abs=NS)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(d=1, t=1), st.data())
def test_missing_ranks_give_an_interval_that_holds_the_truth(job, data):
    """With stages unseen no single number is given, and the interval holds the truth where stages are alike."""
    missing = data.draw(st.lists(st.integers(0, job.p - 1), min_size=1, max_size=job.p - 1, unique=True))
    fields = {f: getattr(job, f) for f in job.__dataclass_fields__}
    job = Job(**{**fields, "missing": tuple(missing), "scale": (), "labels": "pp", "jitter": 0})
    report = analyzed(job)
    assert report.bubble.measured is None
    assert report.quality.verdict == "degraded"
    assert report.layout.missing_ranks == tuple(sorted(missing))
    assert report.bubble.lower - NS <= truth(job).bubble <= report.bubble.upper + NS


def test_pipelines_are_told_apart_by_counting_messages():
    """With no group described and no peer named, the messages of a rank tell how many pipelines there are."""
    report = analyzed(Job(schedule="1f1b", p=4, m=8, d=2, labels="none", pg_desc="undefined", p2p_args="none"))
    assert (report.layout.pp, report.layout.dp, report.schedule.name) == (4, 2, "1f1b")
    assert [p.ranks for p in report.pipelines] == [(0, 2, 4, 6), (1, 3, 5, 7)]


@pytest.mark.parametrize("recorded", [{}, {"host": "launches"}, {"host": "none"}, {"fused": True}, {"t": 2}])
def test_without_labels_and_numbers_kernels_tell(recorded):
    """Schedule and bubble come back; the verdict is degraded, and the report says what to record the next time."""
    job = Job(schedule="1f1b", p=4, m=8, labels="none", autograd=False, **recorded)
    report = analyzed(job)
    assert (report.schedule.name, report.schedule.reconstruction) == ("1f1b", "kernels")
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=NS)
    assert report.quality.verdict == "degraded"
    finding = next(f for f in report.quality.findings if f.code == "told-by-kernels")
    assert "explains 100% of the compute" in finding.message
    assert "record_function" in finding.message
