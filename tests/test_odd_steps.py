"""Runs whose steps are not all alike: each number is that of the trainings of the commonest size, calmly."""

from __future__ import annotations

import dataclasses

import pytest

import bubblescope
from bubblescope.emit import Job, truth, write

SHAPES = {
    "1f1b": {"p": 3, "m": 4},
    "gpipe": {"schedule": "gpipe", "p": 2, "m": 4},
    "interleaved": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2},
    "zb-h1": {"schedule": "zb-h1", "p": 3, "m": 4},
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
    elif job.labels == "pp":
        assert odd == [("mixed", 3)] * 2
    else:
        assert odd == []  # without gradients autograd numbers nothing, and there is nothing to be set aside
    assert said(report)[1] == ({"odd-steps"} if odd else set())


@pytest.mark.parametrize(("shape", "told"), [("1f1b", "labels"), ("zb-h1", "nsys"), ("gpipe", "autograd")])
@pytest.mark.parametrize("at", ["before", "behind"])
def test_the_training_is_measured_where_each_step_evaluates(shape, told, at, tmp_path):
    """As if there were no evaluation."""
    job = job_of(shape, told, eval_steps=(0, 1, 2, 3, 4), eval_at=at)
    check(analyzed(job, tmp_path), job, truth(dataclasses.replace(job, eval_steps=())).bubble)


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
