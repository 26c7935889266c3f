"""Jobs that Nsight Systems recorded, or recorded in part: what was run comes back, as from any other profiler."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.model.report import Report
from tests.ordinary import analyzed, brief, complaints, kernels_only, ordinary
from tests.test_ordinary_traces import FEW, TOLD

UNNAMED = ("tp: None instead of", "dp: None instead of")
"""Without payloads nothing tells who is in a group; then the degrees may stay open."""

ASSUMED = ("p: ", "dp: ")
"""Without payloads, labels and operators nothing names a peer: two pipelines may look like one, and have no number."""


def recorded(job: Job, choose) -> Job:
    """The job as exports hold it: a file a rank or a host, with what NCCL tells or without."""
    return replace(
        job,
        recorder="nsys",
        payloads=choose(("json", "blobs", "none")),
        one_file_a_host=choose((True, False)) and not job.missing,  # of a host nsys records all ranks or none
    )


@st.composite
def jobs(draw, **fixed):
    """Jobs of the space of ordinary ones, recorded by nsys."""
    choose = lambda values: draw(st.sampled_from(list(values)))  # noqa: E731 - drawn from wherever values come
    return recorded(ordinary(choose, **fixed), choose)


def check(job: Job) -> None:
    """The report of a job is right, less what nobody could know."""
    report = analyzed(job).report
    told = job.payloads != "none" and job.p2p_args != "none"
    spared = () if told else UNNAMED
    if not told and kernels_only(job) and report.bubble.measured is None:
        spared += ASSUMED
    assert [wrong for wrong in complaints(job, report) if not wrong.startswith(spared)] == [], brief(job)


@FEW
@given(jobs(labels="pp", missing=()))
def test_labelled(job):
    """Ranges of NVTX that name the actions tell all."""
    check(job)


@FEW
@given(jobs(labels="none", autograd=True, missing=()))
def test_told_by_autograd(job):
    """Without labels the numbers that `emit_nvtx` writes tell the same."""
    check(job)


@FEW
@given(jobs(labels="none", autograd=False, missing=(), fused=False))
def test_told_by_kernels(job):
    """Without either, kernels and NCCL's own ranges tell the schedule, its size, and the bubble."""
    check(job)


@pytest.mark.slow
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("seed", range(40))
def test_a_sweep(told, seed):
    """More of the same, from another generator."""
    choose = Random(f"nsys.{told}.{seed}").choice  # noqa: S311 - repeatable
    check(recorded(ordinary(choose, **TOLD[told], missing=(), fused=False), choose))


BOTH = {
    "1f1b": Job(p=4, m=8, jitter=0.02, p2p_ns=200_000),
    "unlabelled": Job(p=4, m=8, jitter=0.02, p2p_ns=200_000, labels="none"),
    "kernels": Job(p=4, m=8, jitter=0.02, p2p_ns=200_000, labels="none", autograd=False),
    "zb-v": Job(schedule="zb-v", p=4, m=8, v=2, jitter=0.02, p2p_ns=100_000),
    "replicas": Job(schedule="gpipe", p=2, m=4, d=2, t=2, jitter=0.02, p2p_ns=200_000),
    "skewed": Job(p=4, m=8, jitter=0.02, p2p_ns=200_000, ranks_a_host=1, skew_ns=(0, 3_000_000, -2_000_000, 700_000)),
    "fused": Job(p=4, m=8, jitter=0.02, p2p_ns=200_000, fused=True, labels="none"),
}


def answer(report: Report) -> tuple:
    """What a report says of the job itself."""
    layout, schedule = report.layout, report.schedule
    return (
        (layout.world_size, layout.pp, layout.tp, layout.dp, layout.virtual, schedule.name, schedule.microbatches),
        [(row.rank, row.stages) for row in report.ranks],
        [step.step for step in report.steps if step.used],
    )


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("payloads", ["json", "none"])
def test_half_by_kineto_and_half_by_nsys(name, payloads):
    """A job of which two profilers recorded half of the ranks each gives the answer that either gives of all."""
    job = BOTH[name]
    if payloads == "none" and name == "replicas":
        pytest.skip("without payloads nothing tells the replicas of nsys apart")
    mixed = tuple(("kineto", "nsys")[rank % 2] for rank in range(job.world))
    reports = [
        analyzed(replace(job, recorder=recorder, payloads=payloads)).report for recorder in ("kineto", "nsys", mixed)
    ]
    assert [i.format for i in reports[2].inputs] == list(mixed)
    assert answer(reports[1]) == answer(reports[2]) == answer(reports[0])
    true = truth(job).bubble
    assert [report.bubble.measured for report in reports] == pytest.approx([true] * 3, abs=1e-3)


def test_ranks_by_communicators_where_no_name_tells_them():
    """Neither environment nor file names number the ranks; NCCL does."""
    job = Job(p=4, m=8, metadata="none", neutral_names=True, recorder="nsys", payloads="json", labels="none")
    found = analyzed(job).report
    assert [row.stages for row in found.ranks] == [(0,), (1,), (2,), (3,)]
    assert [i.rank_source for i in found.inputs] == ["metadata"] * 4


@pytest.mark.parametrize("schedule", ["dualpipe", "chimera"])
@pytest.mark.parametrize("recorder", ["kineto", "nsys"])
def test_a_pipeline_that_runs_both_ways_without_descriptions(schedule, recorder):
    """Its ends both begin with a forward; it is one pipeline all the same, not two of half the depth."""
    job = Job(schedule=schedule, p=4, m=8, labels="none", pg_desc="undefined", recorder=recorder, payloads="json")
    found = analyzed(job).report
    assert (found.layout.pp, found.layout.dp, found.schedule.name) == (4, 1, schedule)
    assert found.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-3)


@pytest.mark.parametrize("schedule", ["zb-v", "interleaved-1f1b"])
def test_labels_that_count_places_pair_all_messages(schedule, tmp_path):
    """Where nothing but `nccl:send 0->1` tells peers, rank 0 of tensor-parallel ranks does not take it for rank 1."""
    job = Job(schedule=schedule, p=2, m=4, v=2, t=2, steps=3, labels="pp", recorder="nsys", p2p_ns=400_000)
    write(job, tmp_path / "t")
    found = analyze(tmp_path / "t").report
    assert found.quality.coverage.paired == 1
    assert abs(next(cause.points for cause in found.bubble.causes if cause.cause == "residual")) < 1e-3


def test_streams_tell_groups_apart_that_nothing_names():
    """Gradients of replicas behind the last backward are not taken for the stage's own all-reduces."""
    job = Job(p=2, m=4, t=2, d=2, labels="none", recorder="nsys", one_file_a_host=True)
    found = analyzed(job).report
    assert found.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-3)
    assert {row.group for row in found.communication} == {"pp", "tp", "other"}


@pytest.mark.parametrize("metadata", ["before", "none"])
def test_a_rank_that_was_not_recorded(metadata):
    """Its place is told by the even row in which the others stand, and by what they send it."""
    job = Job(p=4, m=8, d=2, labels="none", recorder="nsys", payloads="json", metadata=metadata, missing=(3,))
    found = analyzed(job).report
    assert (found.layout.pp, found.layout.dp, found.layout.missing_ranks) == (4, 2, (3,))
    assert found.bubble.measured == pytest.approx(truth(job).steps[0].pipelines[0].bubble, abs=1e-3)


def test_a_recording_that_does_not_wait_for_the_gpu(tmp_path):
    """The kernels behind the last launch are missing: the last step is no measure, and is not taken for one."""
    job = Job(p=4, m=8, jitter=0.02, steps=3, recorder="nsys", run_ahead_ns=5_000_000)
    for path in write(job, tmp_path):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE end > (SELECT max(end) FROM CUPTI_ACTIVITY_KIND_RUNTIME)"
            )
    found = analyze(tmp_path).report
    assert [step.step for step in found.steps if step.used] == [0, 1]
    whole = truth(job).steps[:2]
    assert found.bubble.measured == pytest.approx(sum(step.bubble for step in whole) / 2, abs=1e-3)
