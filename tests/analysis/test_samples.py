"""The numbers that gates take: each step by itself, as the generator of the run knows it."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.model.metrics import METRICS, Metric
from bubblescope.model.options import Options
from bubblescope.model.report import Report

JOB = Job(p=4, m=8, jitter=0.03, steps=5, p2p_ns=300_000, host_gap_ns=100_000, seed=5)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A job and its report."""
    return {name: (job, _analyzed(job, tmp_path_factory.mktemp(name))) for name, job in JOBS.items()}


JOBS = {
    "plain": JOB,
    "replicas": replace(JOB, p=2, d=2, t=2, m=4),
    "chunks": replace(JOB, schedule="interleaved-1f1b", v=2),
    "two-steps": replace(JOB, steps=2),
    "one-step": replace(JOB, steps=1),
}


def _analyzed(job: Job, folder) -> Report:
    write(job, folder)
    return analyze(folder).report


def found(report: Report, name: str) -> Metric:
    """A metric by its name in rules."""
    (metric,) = (each for each in report.metrics if each.name == name)
    return metric


def spread(values: list[float]) -> float | None:
    """As definitions.md has it."""
    return stdev(values) if len(values) > 1 else None


@pytest.mark.parametrize("name", JOBS)
def test_bubbles_are_those_of_the_truth(made, name):
    """Of the job, of each pipeline, rank and stage: mean and spread over the used steps."""
    job, report = made[name]
    steps = truth(job).used
    expected = {"bubble": [step.bubble for step in steps]}
    for replica in range(job.d):
        expected[f"bubble@pipeline={replica}"] = [step.pipelines[replica].bubble for step in steps]
    for rank in range(job.world):
        mine = [(line, row) for step in steps for line in step.pipelines for row in line.ranks if row.rank == rank]
        expected[f"bubble@rank={rank}"] = [1 - row.useful / line.window for line, row in mine]
    for name_, values in expected.items():
        metric = found(report, name_)
        assert metric.value == pytest.approx(fmean(values), abs=2e-4)
        assert metric.steps == len(steps)
        wanted = spread(values)
        assert metric.spread == (None if wanted is None else pytest.approx(wanted, abs=2e-4))


@pytest.mark.parametrize("name", JOBS)
def test_values_are_those_of_the_report(made, name):
    """Nothing is reckoned twice, and all that the report has is there."""
    _, report = made[name]
    bubble, rates = report.bubble, report.throughput
    expected = {
        "bubble": bubble.measured,
        "gap": bubble.gap,
        "window": bubble.window_ns,
        "imbalance": report.imbalance.stage_ratio,
        "step_time": rates.step_ns,
        "microbatches_per_s": rates.microbatches_per_s,
        **{f"bubble@cause={cause.cause}": cause.points for cause in bubble.causes},
        **{f"bubble@stage={stage.stage}": stage.bubble for stage in report.stages},
        **{f"work@stage={stage.stage}": stage.work_ns for stage in report.stages},
        **{f"imbalance@stage={load.stage}": load.ratio for load in report.imbalance.stages},
        **{f"bubble@rank={rank.rank}": rank.bubble for rank in report.ranks},
        **{f"bubble@pipeline={line.pipeline}": line.bubble for line in report.pipelines},
        **{f"window@pipeline={line.pipeline}": line.window_ns for line in report.pipelines},
    }
    told = {metric.name: metric.value for metric in report.metrics if metric.metric != "exposed"}
    assert told == expected
    assert [each.by for each in report.metrics] == sorted(
        (each.by for each in report.metrics), key=lambda by: by is not None
    )
    assert {each.metric for each in report.metrics} <= set(METRICS)


@pytest.mark.parametrize("name", ["plain", "replicas"])
def test_exposed_communication_is_that_of_its_calls(made, name):
    """Where the calls of a group never overlap, as much as all of them together, over the step time."""
    _, report = made[name]
    for group in {call.group for call in report.communication}:
        calls = sum(call.exposed_ns for call in report.communication if call.group == group)
        metric = found(report, f"exposed@group={group}")
        assert metric.value == pytest.approx(calls / report.throughput.step_ns, rel=2e-3)
        assert metric.value <= found(report, "exposed").value + 1e-12


def test_one_step_has_no_spread(made):
    """Nothing tells how much steps differ."""
    _, report = made["one-step"]
    assert {(metric.steps, metric.spread) for metric in report.metrics} == {(1, None)}


def test_clocks_that_leave_the_window_open_are_an_error(tmp_path):
    """Where a schedule begins and ends on two hosts, what their clocks leave open of the bubble is told."""
    job = replace(JOB, schedule="zb-v", p=2, v=2, m=6, ranks_a_host=1, skew_ns=(0, 5_000_000))
    write(job, tmp_path)
    report = analyze(tmp_path).report
    bubble = report.bubble
    assert bubble.lower < bubble.measured < bubble.upper
    error = max(bubble.upper - bubble.measured, bubble.measured - bubble.lower)
    assert found(report, "bubble").error == pytest.approx(error)
    assert found(report, "step_time").error == 0


def test_rates_that_are_stated_are_there(tmp_path):
    """Samples, tokens and MFU vary as the step time does."""
    write(JOB, tmp_path)
    options = Options(batch_size=64, sequence_length=2048, flops_per_token=1e9, peak_flops=1e15)
    report = analyze(tmp_path, options).report
    time = found(report, "step_time")
    for name in ("samples_per_s", "tokens_per_s", "mfu"):
        metric = found(report, name)
        assert metric.value == getattr(report.throughput, name)
        assert metric.spread / metric.value == pytest.approx(time.spread / time.value, rel=0.01)


def test_no_pipeline_has_times_and_communication(tmp_path):
    """There is no bubble to gate, but a step time is."""
    write(replace(JOB, p=1, d=2, m=4, schedule="1f1b", p2p_ns=0), tmp_path)
    report = analyze(tmp_path).report
    assert report.schedule.name == "none"
    names = {metric.name for metric in report.metrics}
    assert {"step_time", "exposed", "exposed@group=dp"} <= names
    assert not {name for name in names if name.startswith("bubble")}
