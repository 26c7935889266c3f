"""Kernels of communication that all have one name, as RCCL's: the calls before them tell, or nothing does."""

from __future__ import annotations

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.inventory import take
from bubblescope.report.verdict import verdict

SMALL = {
    "forward_ns": 1_000_000,
    "backward_ns": 2_000_000,
    "dp_ns": 400_000,
    "optimizer_ns": 300_000,
    "kernels": 3,
    "comm_names": "generic",
    "p2p_args": "none",
}
SHAPES = {
    "1f1b": {"p": 3, "m": 6},
    "1f1b fused": {"p": 4, "m": 4, "fused": True},
    "gpipe": {"schedule": "gpipe", "p": 3, "m": 4},
    "interleaved": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2},
    "replicas": {"p": 2, "m": 4, "d": 2},
}
TOLD = [
    (shape, calls)
    for shape in SHAPES
    for calls in ("all", "params", "ops", "ranges")
    if (shape, calls) != ("1f1b fused", "ranges")  # a range around several messages tells none of them
]


def found(tmp_path, made):
    """The report of a job, and its true bubble."""
    job = Job(**(SMALL | made))
    write(job, tmp_path)
    return analyze([tmp_path]).report, truth(job).bubble


@pytest.mark.parametrize(("shape", "calls"), TOLD)
@pytest.mark.parametrize("labels", ["pp", "none"])
def test_calls_tell_what_kernels_do(tmp_path, shape, calls, labels):
    """Whichever of them was recorded, before the launch or around it."""
    told = {"calls": calls, "p2p_args": "op", "labels": labels}
    report, true = found(tmp_path, SHAPES[shape] | told)
    assert report.bubble.measured == pytest.approx(true, abs=0.006)
    assert report.quality.verdict == "ok"
    assert "unknown" not in {each.op for each in report.communication}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernels_of_a_label_hold_what_the_stage_shares(tmp_path, shape):
    """Between the kernels of nearly all actions nothing but the stage's own collectives can be, whatever their name."""
    report, true = found(tmp_path, SHAPES[shape] | {"calls": "none", "labels": "pp", "t": 2, "kernels": 4})
    assert report.bubble.measured == pytest.approx(true, abs=0.006)
    assert {rank.in_stage_comm_ns > 0 for rank in report.ranks} == {True}


@pytest.mark.parametrize("calls", ["params", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_labels_with_stages_bring_the_bubble_without_any_message(tmp_path, shape, calls):
    """Calls that name nothing are as good as none."""
    report, true = found(tmp_path, SHAPES[shape] | {"calls": calls, "labels": "pp"})
    assert report.bubble.measured == pytest.approx(true, abs=0.006)


@pytest.mark.parametrize("shape", ["1f1b", "1f1b fused", "gpipe"])
def test_labels_without_stages_are_those_of_a_pipeline_all_the_same(tmp_path, shape):
    """Which rank holds which stage is assumed."""
    report, true = found(tmp_path, SHAPES[shape] | {"calls": "none", "labels": "torch", "metadata": "none"})
    assert report.bubble.measured == pytest.approx(true, abs=0.006)
    assert report.quality.verdict == "degraded"
    assert "layout-assumed" in {finding.code for finding in report.quality.findings}


@pytest.mark.parametrize("calls", ["params", "none"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("autograd", [True, False])
def test_without_anything_the_absence_of_a_pipeline_is_not_shown(tmp_path, shape, calls, autograd):
    """No pipeline is identified, and nowhere is it said that there is none."""
    untold = {"calls": calls, "labels": "none", "metadata": "none", "autograd": autograd}
    report, _ = found(tmp_path, SHAPES[shape] | untold)
    assert (report.schedule.name, report.schedule.confidence, report.layout.pp) == ("none", 0.0, None)
    assert report.quality.verdict == "degraded"
    (warning,) = (finding for finding in report.quality.findings if finding.code == "unlabelled")
    assert "a name that fits all operations" in warning.message
    assert "record_function" in warning.message
    assert verdict(report).startswith("No pipeline could be identified, but the recording may hold one")
    assert not report.findings  # no advice says that there is none, either


def test_files_are_judged_alike_by_themselves(tmp_path):
    """What says what files are has the finding of the analysis, and its verdict."""
    report, _ = found(tmp_path, {"p": 2, "m": 2, "calls": "none", "labels": "none", "metadata": "none"})
    job = take.info([tmp_path]).job
    assert job.verdict == report.quality.verdict == "degraded"
    assert [f for f in job.findings if f.code == "unlabelled"] == [
        f for f in report.quality.findings if f.code == "unlabelled"
    ]
    assert (job.answer, job.problem) == ("time", "no pipeline could be identified")


def test_what_says_that_there_is_none_settles_it(tmp_path):
    """Kernels of any kind are then no messages."""
    job = Job(**(SMALL | {"schedule": "gpipe", "p": 1, "m": 4, "d": 2, "calls": "none", "labels": "none"}))
    write(job, tmp_path)
    report = analyze([tmp_path]).report
    assert (report.schedule.name, report.quality.verdict, report.layout.pp) == ("none", "ok", 1)
