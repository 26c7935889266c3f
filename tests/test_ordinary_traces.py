"""Ordinary traces, unlabelled, skewed and partial: what was run comes back, or is said to be unknown."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, truth, write
from bubblescope.emit.tape import Tape
from bubblescope.engine import analyze
from bubblescope.model.analysis import Analysis
from bubblescope.model.report import Report
from tests.ordinary import CLOSE, SCHEDULES, UNKNOWABLE, analyzed, brief, complaints, kernels_only, ordinary

FEW = settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    phases=(Phase.generate,),  # shrinking takes minutes, as each try is an analysis
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@st.composite
def jobs(draw, **fixed):
    """Jobs of the space, some of their fields fixed."""
    return ordinary(lambda values: draw(st.sampled_from(values)), **fixed)


def check(job: Job) -> None:
    """The report of a job is right."""
    assert complaints(job, analyzed(job).report) == [], brief(job)


@FEW
@given(jobs(labels="pp") | jobs(schedule="gpipe", labels="torch"))
def test_labelled(job):
    """With labels all comes back: clocks, missing ranks and fused messages do not matter."""
    check(job)


@FEW
@given(jobs(labels="none", autograd=True, missing=()))
def test_told_by_autograd(job):
    """Without labels autograd's numbers tell the same."""
    check(job)


@FEW
@given(jobs(labels="none", autograd=False, missing=()))
def test_told_by_kernels(job):
    """Kernels and messages alone tell the schedule, its size, and the bubble to one and a half points."""
    check(job)


@FEW
@given(jobs(labels="none"))
def test_partial(job):
    """Of unlabelled jobs some ranks of which left no file, what the others show comes back."""
    check(job)


TOLD = {
    "labels": {"labels": "pp"},
    "autograd": {"labels": "none", "autograd": True},
    "kernels": {"labels": "none", "autograd": False},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "schedule"),
    list(product(TOLD, SCHEDULES)),
)
def test_sweep(told, schedule):
    """Of several hundred jobs, 14 of every schedule by each way of telling it, no report is wrong."""
    draw = Random(f"{told} {schedule}")  # noqa: S311 - the same jobs every time
    wrong = {}
    for _ in range(14):
        job = ordinary(draw.choice, schedule=schedule, **TOLD[told])
        if found := complaints(job, analyzed(job).report):
            wrong[brief(job)] = found
    assert wrong == {}


RUNS = 70


def with_clocks(draw: Random, told: str) -> Job:
    """A job on at least two hosts, all of it recorded, told in that way, whose clocks are off and may drift."""
    while True:
        job = ordinary(draw.choice, missing=(), **TOLD[told])
        if job.skew_ns and job.ranks_a_host < job.world and kernels_only(job) == (told == "kernels"):
            return job


def off_by(job: Job, analysis: Analysis) -> int:
    """By how many nanoseconds a rank's corrected clock is off rank 0's at most: at begin, middle and end of the job."""
    steps = truth(job).steps
    begin, end = steps[0].start, steps[-1].end
    moments = begin, (begin + end) // 2, end
    shown = {rank: np.array([Tape(job, rank).clock(at) for at in moments]) for rank in range(job.world)}
    corrected = {rank: analysis.job.clock.corrected(rank, times) for rank, times in shown.items()}
    return max(int(np.abs(times - shown[0]).max()) for times in corrected.values())


def listed_off_by(job: Job, report: Report) -> int:
    """The same of the offsets that the report lists, which are those at the middle of the recording."""
    steps = truth(job).steps
    middle = (steps[0].start + steps[-1].end) // 2
    shown = [Tape(job, rank).clock(middle) for rank in range(job.world)]
    return max(abs(at + report.clock.offsets_ns[str(rank)] - shown[0]) for rank, at in enumerate(shown))


MIDDLE_NS = 500
"""By how much offsets may change between what the report takes for the middle and the true one: 40 ppm of 12 ms."""


@cache
def clock_runs(told: str) -> tuple[list[bool], list[bool]]:
    """Of 70 runs, whether all clocks are within the error at any time, if one is stated, and whether that says much."""
    draw = Random(told)  # noqa: S311 - the same jobs every time
    within, says = [], []
    for _ in range(RUNS):
        job = with_clocks(draw, told)
        analysis = analyzed(job)
        error = analysis.report.clock.error_ns
        off, listed = off_by(job, analysis), listed_off_by(job, analysis.report)
        within += [off <= error and listed <= error + MIDDLE_NS] if error is not None else []
        says.append(error is not None and error <= telling(job))
    return within, says


@pytest.mark.slow
@pytest.mark.parametrize("told", ["labels", "autograd", "kernels"])
def test_clocks_are_within_the_stated_error(told):
    """In 95 % of the runs that state an error no clock is further off, at begin, middle and end; most state one."""
    within, _ = clock_runs(told)
    assert sum(within) >= 0.95 * len(within)
    assert len(within) >= 0.8 * RUNS


@pytest.mark.slow
@pytest.mark.parametrize("told", ["labels", "autograd"])
def test_stated_errors_say_something(told):
    """In 90 % of those runs the stated error is one that messages account for, or small beside a step.

    Told by kernels fewer are: forwards alone tie no replicas, and equal kernels of both gradients tell no actions.
    """
    _, says = clock_runs(told)
    assert sum(says) >= 0.9 * RUNS


def telling(job: Job) -> float:
    """The largest error that says something: from rank to rank a message's own time, or else 1 % of a step."""
    return max((job.p - 1) * job.p2p_ns + 100_000, min(step.end - step.start for step in truth(job).steps) / 100)


def test_clocks_of_a_plain_job_meet():
    """Clocks 5 ms apart that drift by 20 ppm are put together to within the stated error, and the error is small."""
    job = Job(
        p=4, m=8, steps=3, ranks_a_host=1, p2p_ns=200_000, jitter=0.01, labels="none",
        skew_ns=(0, 5_000_000, -5_000_000, 1_234_567), drift_ppm=(0, 20, -20, 5),
    )  # fmt: skip
    analysis = analyzed(job)
    assert analysis.report.clock.error_ns is not None
    assert max(off_by(job, analysis), listed_off_by(job, analysis.report) - MIDDLE_NS) <= analysis.report.clock.error_ns
    assert analysis.report.clock.error_ns <= (job.p - 1) * job.p2p_ns + 50_000


def answer(report: Report) -> tuple[object, ...]:
    """Schedule, p, m and v."""
    layout, schedule = report.layout, report.schedule
    return schedule.name, layout.pp, schedule.microbatches, layout.virtual


def same(one: Report, other: Report) -> None:
    """Two reports give the same answer, and their bubbles are no more than 0.6 points apart."""
    assert answer(one) == answer(other)
    for name in ("measured", "lower", "upper"):
        mine, theirs = getattr(one.bubble, name), getattr(other.bubble, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or abs(mine - theirs) < CLOSE


@FEW
@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(job, random):
    """Files named in any order give the same answer."""
    with TemporaryDirectory() as folder:
        paths = write(job, Path(folder))
        shuffled = random.sample(paths, len(paths))
        same(analyze(paths).report, analyze(shuffled).report)


@FEW
@given(jobs(), st.randoms(use_true_random=False))
def test_names_of_files_do_not_matter(job, random):
    """Files under each other's names give the same answer: each says itself which rank's it is."""
    with TemporaryDirectory() as folder:
        paths = write(job, Path(folder))
        before = analyze(paths).report
        beside = [path.rename(path.with_suffix(".moved")) for path in paths]
        for path, name in zip(beside, random.sample(paths, len(paths)), strict=True):
            path.rename(name)
        same(before, analyze(paths).report)


@FEW
@given(jobs(labels="pp", autograd=True, missing=()))
def test_labels_do_not_matter(job):
    """A labelled job tells the same without its labels."""
    if job.trains:
        same(analyzed(job).report, analyzed(replace(job, labels="none")).report)


def test_what_cannot_be_known_is_declared_with_its_reason():
    """Every row of the table applies to few jobs of the space, and to no labelled one, but for its clocks."""
    draw = Random(2)  # noqa: S311 - the same jobs every time
    drawn = [ordinary(draw.choice) for _ in range(1000)]
    for row in UNKNOWABLE:
        assert len(row.why) > 20
        applies = [job for job in drawn if row.when(job)]
        assert applies, row.name
        assert all(job.labels == "none" or row.spared <= {"bubble", "interval"} for job in applies), row.name
        assert len(applies) < len(drawn) / 20, row.name
