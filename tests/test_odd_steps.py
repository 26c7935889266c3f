"""Runs whose steps are not all alike: each number is that of the trainings of the commonest size, calmly."""

from __future__ import annotations

import dataclasses
import re

import pytest

import bubblescope
from bubblescope.emit import Job, truth, write
from bubblescope.report.facts import facts
from tests.ordinary import tolerance

SHAPES = {
    "1f1b": {"p": 3, "m": 4},
    "gpipe": {"schedule": "gpipe", "p": 2, "m": 4},
    "interleaved": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2},
    "zb-h1": {"schedule": "zb-h1", "p": 3, "m": 4},
    "zb-v": {"schedule": "zb-v", "p": 3, "m": 6, "v": 2},
    "looped-bfs": {"schedule": "looped-bfs", "p": 2, "m": 4, "v": 2},
}
TOLD = {
    "labels": {"labels": "pp"},
    "autograd": {"labels": "none"},
    "cpu": {"labels": "none", "backend": "cpu"},
    "nsys": {"labels": "pp", "recorder": "nsys"},
}
TOLERANCE = 0.006


def job_of(shape, told, **odd):
    """A job of some shape, told in some way, with something odd about its steps."""
    return Job(**({"jitter": 0.03, "seed": 3, "steps": 5, "host_gap_ns": 70_000} | SHAPES[shape] | TOLD[told] | odd))


def analyzed(job, folder):
    """The report of a job's files."""
    write(job, folder / "t")
    return bubblescope.analyze(folder / "t").report


def said(report):
    """The codes of all findings but those that are mere information, and what is said of steps."""
    serious = [finding.code for finding in report.quality.findings if finding.severity != "info"]
    return serious, {finding.code for finding in report.quality.findings} & {"odd-steps", "narrow-marks"}


def check(report, job, expected):
    """The bubble, m, and no doubt."""
    assert report.bubble.measured == pytest.approx(expected, abs=TOLERANCE)
    assert report.schedule.microbatches == job.m
    assert (report.quality.verdict, said(report)[0], report.clock.violations) == ("ok", [], 0)


@pytest.mark.parametrize(
    ("shape", "told"),
    [("1f1b", "labels"), ("gpipe", "nsys"), ("interleaved", "labels"), ("zb-h1", "autograd"), ("1f1b", "cpu")],
)
@pytest.mark.parametrize("at", ["between", "before", "behind"])
def test_evaluations_change_nothing(shape, told, at, tmp_path):
    """As steps of their own, or inside of training steps."""
    job = job_of(shape, told, eval_steps=(2, 3), eval_m=3, eval_at=at)
    report = analyzed(job, tmp_path)
    check(report, job, truth(job).bubble)
    odd = [(step.kind, step.extra_forwards) for step in report.steps if step.kind != "training"]
    if at == "between":
        assert odd == [("evaluation", 0)] * 2
    else:  # without gradients autograd numbers nothing: then messages tell
        assert odd == [("mixed", 3)] * 2
    assert said(report)[1] == {"odd-steps"}
    assert report.quality.coverage.paired == 1


@pytest.mark.parametrize(("shape", "told"), [("1f1b", "labels"), ("zb-h1", "nsys"), ("gpipe", "autograd")])
@pytest.mark.parametrize("at", ["before", "behind"])
def test_the_training_is_measured_where_each_step_evaluates(shape, told, at, tmp_path):
    """As if there were no evaluation; the profiler's steps stay, and last as long as they did."""
    job = job_of(shape, told, eval_steps=(0, 1, 2, 3, 4), eval_at=at)
    report = analyzed(job, tmp_path)
    check(report, job, truth(dataclasses.replace(job, eval_steps=())).bubble)
    assert truth(job).bubble == pytest.approx(report.bubble.measured, abs=TOLERANCE)
    assert [step.step for step in report.steps] == [0, 1, 2, 3, 4]
    assert {step.kind for step in report.steps} == {"mixed"}
    lasting = [step.end - step.start for step in truth(job).steps[1:]]
    assert report.throughput.step_ns == pytest.approx(sum(lasting) / len(lasting), rel=0.02)


@pytest.mark.parametrize(
    ("shape", "at", "steps"),
    [
        ("1f1b", "before", (2,)),
        ("interleaved", "before", (1, 2)),
        ("interleaved", "behind", (4,)),
        ("zb-v", "behind", (0, 2)),
        ("zb-h1", "behind", (0, 1, 2, 3, 4)),
    ],
)
def test_evaluations_that_only_messages_tell_leave_the_causes(shape, at, steps, tmp_path):
    """Autograd numbers none of their actions, so that their messages alone are too many; all others pair."""
    job = job_of(shape, "autograd", eval_steps=steps, eval_at=at, eval_m=3, p2p_ns=400_000, jitter=0, host_gap_ns=0)
    report = analyzed(job, tmp_path)
    check(report, job, truth(dataclasses.replace(job, eval_steps=())).bubble)
    assert [(step.kind, step.extra_forwards) for step in report.steps] == [
        ("mixed", 3) if step.step in steps else ("training", 0) for step in report.steps
    ]
    assert report.quality.coverage.paired == 1
    assert {cause.cause for cause in report.bubble.causes if abs(cause.points) > 0.001} == {"structural", "p2p"}


@pytest.mark.parametrize("at", ["before", "behind"])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("shape", ["looped-bfs", "interleaved", "zb-v"])
def test_chunks_are_told_where_each_step_evaluates(shape, count, at, tmp_path):
    """Of the training's messages alone, though those of the evaluation are of no action that anything tells."""
    job = job_of(shape, "autograd", eval_steps=(0, 1, 2, 3, 4), eval_at=at, eval_m=count)
    report = analyzed(job, tmp_path)
    check(report, job, truth(dataclasses.replace(job, eval_steps=())).bubble)
    assert (report.schedule.name, report.quality.coverage.paired) == (job.schedule, 1)
    assert {(step.kind, step.extra_forwards) for step in report.steps} == {("mixed", count)}


@pytest.mark.parametrize("shape", ["looped-bfs", "interleaved"])
def test_chunks_are_guessed_where_each_step_evaluates(shape, tmp_path):
    """By the training's messages alone, where a rank is missing so that none can be followed."""
    job = job_of(shape, "autograd", p=3, m=6, eval_steps=(0, 1, 2, 3, 4), eval_at="behind", eval_m=2)
    write(job, tmp_path / "t")
    sorted((tmp_path / "t").iterdir())[1].unlink()
    report = bubblescope.analyze(tmp_path / "t").report
    assert (report.schedule.name, report.schedule.microbatches) == (job.schedule, job.m)


@pytest.mark.parametrize(
    ("shape", "told"), [("1f1b", "labels"), ("gpipe", "cpu"), ("interleaved", "nsys"), ("zb-h1", "autograd")]
)
def test_each_size_of_a_ramp_is_measured(shape, told, tmp_path):
    """By itself; the commonest makes the numbers."""
    job = job_of(shape, told, m=8, ramp=(4, 4, 4, 8, 8, 8), steps=6)
    report, true = analyzed(job, tmp_path), truth(job)
    check(report, job, true.bubble)
    found = {size.microbatches: size.measured for size in report.bubble.by_microbatches}
    assert found == pytest.approx(true.bubble_by_size, abs=TOLERANCE)
    assert all(size.formula for size in report.bubble.by_microbatches)
    assert said(report)[1] == {"odd-steps"}


@pytest.mark.parametrize(
    ("shape", "told"),
    [("1f1b", "labels"), ("gpipe", "nsys"), ("interleaved", "cpu"), ("zb-h1", "labels"), ("1f1b", "autograd")],
)
def test_marks_of_micro_batches_are_no_steps(shape, told, tmp_path):
    """The profiler was called behind each; the steps are found, and it is said."""
    job = job_of(shape, told, marks="micro-batch")
    report = analyzed(job, tmp_path)
    check(report, job, truth(job).bubble)
    assert (len(report.steps), said(report)[1]) == (job.steps, {"narrow-marks"})
    assert [text[:13] for name, text in facts(report) if name == "Note"] == ["narrow-marks:"]


KERNELS = {"labels": "none", "autograd": False}


@pytest.mark.parametrize(
    "shape", [{"schedule": "zb-v", "p": 3, "m": 6, "v": 2}, {"p": 1, "m": 4}, {"p": 1, "d": 2, "m": 4}]
)
def test_updates_of_weights_tell_steps_where_no_action_is_told(shape, tmp_path):
    """Marks of micro-batches make no step shorter, with a pipeline and without."""
    job = Job(**shape, **KERNELS, marks="micro-batch", jitter=0.03, seed=3, steps=4)
    report = analyzed(job, tmp_path)
    assert [step.step for step in report.steps] == [0, 1, 2, 3]
    assert said(report)[1] == {"narrow-marks"}
    lasting = [step.end - step.start for step in truth(job).used]
    assert report.throughput.step_ns == pytest.approx(sum(lasting) / len(lasting), rel=0.02)


@pytest.mark.parametrize("marks", ["step", "micro-batch"])
def test_where_no_update_tells_steps_either_the_speed_is_in_doubt(marks, tmp_path):
    """If marks hold parts of steps in turns; whole steps are alike."""
    job = Job(**(SHAPES["zb-h1"] | {"schedule": "zb-v", "v": 2}), **KERNELS, marks=marks, steps=5, compress=False)
    for path in write(job, tmp_path / "t"):
        path.write_text(
            re.sub("Optimizer|[aA]dam|multi_tensor_apply", "own", path.read_text(encoding="utf-8")), encoding="utf-8"
        )
    report = bubblescope.analyze(tmp_path / "t").report
    speed = next(number for number in report.quality.numbers if number.number == "throughput")
    assert (speed.verdict, "steps-assumed" in speed.reasons) == (
        ("ok", False) if marks == "step" else ("degraded", True)
    )


@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - {"zb-v"}))  # kernels alone do not tell its chunks apart
@pytest.mark.parametrize("recorder", ["kineto", "nsys"])
def test_marks_of_micro_batches_part_no_step_of_kernels_alone(shape, recorder, tmp_path):
    """The optimizer parts steps then; numbers are right, though told by kernels alone they are never calm."""
    job = job_of(shape, "labels", labels="none", autograd=False, marks="micro-batch", recorder=recorder, kernels=3)
    report = analyzed(job, tmp_path)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=tolerance(job))
    assert (report.schedule.microbatches, len(report.steps)) == (job.m, job.steps)
    assert {*said(report)[0]} - {"nccl-payloads"} == {"told-by-kernels"}
    assert said(report)[1] == {"narrow-marks"}


@pytest.mark.parametrize(
    ("schedule", "recorder", "marks"),
    [
        ("interleaved-1f1b", "kineto", "step"),
        ("interleaved-1f1b", "nsys", "micro-batch"),
        ("looped-bfs", "kineto", "micro-batch"),
        ("looped-bfs", "nsys", "step"),
    ],
)
def test_names_that_chunks_share_begin_no_step(schedule, recorder, marks, tmp_path):
    """`Forward 0` comes on each chunk of a rank: steps, chunks and schedule are told as without labels."""
    job = job_of("interleaved", "labels", schedule=schedule, labels="torch", recorder=recorder, marks=marks)
    report = analyzed(job, tmp_path)
    check(report, job, truth(job).bubble)
    assert (len(report.steps), report.schedule.name) == (job.steps, schedule)
