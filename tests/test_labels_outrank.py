"""Labels beside kernels that may be anything: runs of known truth whose messages tell less than their labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze

NEAR = 0.006
BARE = {"metadata": "none", "autograd": False, "p2p_args": "none", "jitter": 0.03, "p2p_ns": 200_000}
SHAPES = {
    "1f1b": {"p": 2, "m": 4},
    "1f1b of four": {"p": 4, "m": 8},
    "gpipe": {"schedule": "gpipe", "p": 3, "m": 4},
    "interleaved-1f1b": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2},
    "zb-v": {"schedule": "zb-v", "p": 2, "m": 6, "v": 2},
}
EACH = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
RECORDED = {
    "kineto": {},
    "kineto without names of calls": {"named_calls": False},
    "nsys": {"recorder": "nsys"},
    "nsys without NCCL's ranges": {"recorder": "nsys", "named_calls": False},
    "nsys with payloads": {"recorder": "nsys", "payloads": "json", "p2p_args": "kernel"},
}


def report_of(job: Job, folder: Path):
    """What is found in a job's traces, none of whose ranks may be made up."""
    write(job, folder)
    report = analyze([folder]).report
    assert max(report.layout.missing_ranks, default=-1) < job.world
    return report


def holds(job: Job, folder: Path):
    """The report of a job whose schedule, depth and bubble come back."""
    report = report_of(job, folder)
    assert (report.schedule.name, report.layout.pp, report.layout.missing_ranks) == (job.schedule, job.p, ())
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=NEAR)
    return report


@EACH
@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED.keys())
@pytest.mark.parametrize("kernels", [1, 4])
def test_all_to_alls_are_useful_time(tmp_path, shape, recorded, kernels):
    """An all-to-all is called like a message; actions end with one, and with one kernel of compute have no other."""
    holds(Job(**(BARE | shape | recorded), t=2, in_stage="all-to-all", kernels=kernels), tmp_path)


@EACH
@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED.keys())
def test_announced_messages_are_no_other_stage(tmp_path, shape, recorded):
    """Each tensor follows its shape, so that the last stage has as many messages as an inner one otherwise."""
    holds(Job(**(BARE | shape | recorded), announced=True), tmp_path)


@pytest.mark.parametrize("shape", [SHAPES["1f1b"], SHAPES["1f1b of four"]], ids=["1f1b", "1f1b of four"])
@pytest.mark.parametrize("named", [True, False])
def test_announced_messages_in_one_kernel_with_their_answer(tmp_path, shape, named):
    """Shapes that go both ways in one kernel, before tensors that do."""
    holds(Job(**(BARE | shape), announced=True, fused=True, named_calls=named), tmp_path)


@pytest.mark.parametrize("shape", [SHAPES["1f1b"], SHAPES["1f1b of four"], SHAPES["gpipe"]])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("announced", [True, False])
def test_labels_that_hold_their_messages(tmp_path, shape, width, announced):
    """`Forward i` begins before the receive and ends behind the send; nothing else tells the directions."""
    beside = {"t": width, "in_stage": "all-to-all", "announced": announced, "named_calls": False}
    holds(Job(**(BARE | shape | beside), labels="torch"), tmp_path)


@pytest.mark.parametrize("labels", ["pp", "none"])
@pytest.mark.parametrize("recorder", ["kineto", "nsys"])
@pytest.mark.parametrize(
    "shape", [{"p": 2, "v": 2, "m": 4}, {"p": 2, "v": 3, "m": 4}, {"p": 3, "v": 2, "m": 6}], ids=["2", "2x3", "3"]
)
@pytest.mark.parametrize("schedule", ["interleaved-1f1b", "looped-bfs"])
def test_chunks_without_peers(tmp_path, labels, recorder, shape, schedule):
    """Two ranks that both begin and end the pipeline, by labels or by autograd's numbers alone."""
    bare = BARE | {"autograd": True, "named_calls": False}
    report = holds(Job(**(bare | shape), schedule=schedule, labels=labels, recorder=recorder), tmp_path)
    assert report.layout.virtual == shape["v"]


@pytest.mark.parametrize("shape", [SHAPES[name] for name in ("1f1b", "1f1b of four", "gpipe", "interleaved-1f1b")])
@pytest.mark.parametrize("launches", ["trimmed", "unnumbered"])
@pytest.mark.parametrize("recorder", ["kineto", "nsys"])
@pytest.mark.parametrize("names", ["torch", "blind"])
def test_labels_without_launches_name_what_kernels_tell(tmp_path, shape, launches, recorder, names):
    """Stages and schedule are those of the labels, and nothing asks for labels that are there."""
    job = Job(**(BARE | shape), launches=launches, recorder=recorder, kernel_names=names, steps=3)
    report = holds(job, tmp_path)
    assert report.quality.verdict == "degraded"
    assert {"unjoined-labels", "told-by-kernels"} <= {f.code for f in report.quality.findings}
    assert not [f.message for f in report.quality.findings if "PP:<stage>" in f.message]


def test_labels_that_kernels_contradict_leave_the_bubble_open(tmp_path):
    """Kernels whose names tell no input from weight gradients: the pipeline is known, and when it worked is not."""
    job = Job(**BARE, schedule="zb-h1", p=3, m=6, launches="trimmed")
    report = report_of(job, tmp_path)
    assert (report.schedule.name, report.layout.pp, report.bubble.measured) == ("unknown", 3, None)
    assert report.quality.verdict != "ok"
    assert not [f.message for f in report.quality.findings if "PP:<stage>" in f.message or "label the" in f.message]


@pytest.mark.parametrize("kernels", [1, 4])
@pytest.mark.parametrize("named", [True, False])
def test_a_stage_without_a_pipeline_stays_one(tmp_path, kernels, named):
    """Labels of one stage and all-to-alls among its ranks are no pipeline, and no rank is missing."""
    job = Job(**BARE, p=1, m=4, t=2, in_stage="all-to-all", kernels=kernels, named_calls=named)
    report = report_of(job, tmp_path)
    assert (report.schedule.name, report.layout.pp, report.layout.missing_ranks) == ("none", 1, ())


def test_a_stage_with_labels_that_only_pipelines_have(tmp_path):
    """Where these name no stage there may be several: no pipeline is identified, and none is ruled out."""
    report = report_of(Job(**BARE, p=1, m=4, t=2, labels="torch", in_stage="all-to-all"), tmp_path)
    assert (report.schedule.name, report.layout.pp, report.quality.verdict) == ("none", None, "degraded")


@pytest.mark.parametrize("announced", [True, False])
def test_a_rank_that_nobody_recorded_is_missing_still(tmp_path, announced):
    """The deepest stage that was recorded sends on, whatever precedes its messages; to how many, nothing tells."""
    job = Job(**BARE, p=3, m=6, announced=announced, named_calls=False, missing=(2,))
    report = report_of(job, tmp_path)
    assert (report.layout.pp, report.layout.missing_ranks, report.bubble.measured) == (None, (2,), None)


@pytest.mark.parametrize(
    ("folder", "schedule", "bubble"),
    [
        ("nsys_labels_with_alltoall", "1f1b", 0.2053),
        ("labelled_nsys_announced_messages_no_pipeline", "1f1b", 0.33797),
        ("autograd_interleaved_p2_no_args_none", "interleaved-1f1b", 0.1285),
    ],
)
def test_traces_of_another_generator(shared, folder, schedule, bubble):
    """The same kinds as somebody else simulated them."""
    report = analyze([shared / "field" / folder]).report
    assert (report.schedule.name, report.layout.pp) == (schedule, 2)
    assert report.bubble.measured == pytest.approx(bubble, abs=NEAR)
