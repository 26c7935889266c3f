"""Whole jobs from elsewhere: recordings of frameworks, of other people, and simulated GPU jobs with known truth.

They lie outside the project and are skipped where they are absent.
"""

from __future__ import annotations

from pathlib import Path

import jsonschema
import orjson
import pytest

from bubblescope.engine import analyze
from bubblescope.report.json import render, schema

TRACES = Path(__file__).parent.parent.parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared recordings are not beside the project")

# Path: schedule, p, m, v, closed form, and the bubble counted by a program that shares nothing with
# this one. Both count the same windows; which operators of a few microseconds belong to a forward
# is a convention, and all choices together lie within 0.03 points.
PIPELINES = {
    "torch/gpipe_p4m8": ("gpipe", 4, 8, 1, 3 / 11, 0.294549),
    "torch/1f1b_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.295051),
    "torch/1f1b_p4m12_slowlast": ("1f1b", 4, 12, 1, 3 / 15, 0.388197),
    "torch/interleaved_p4m8v2": ("interleaved-1f1b", 4, 8, 2, 3 / 19, 0.191583),
    "torch/bfs_p2m6v2": ("looped-bfs", 2, 6, 2, 1 / 13, 0.114736),
    "frameworks/megatron_1f1b_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.291159),
    "frameworks/deepspeed_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.302851),
}
SIMULATED = (
    "synthetic/kineto_1f1b_p4m8_labels",
    "synthetic/kineto_gpipe_p3m6_host_gaps",
    "synthetic/kineto_1f1b_p2m4t2d2_tp_slow_stage1",
)
NO_PIPELINE = (
    "synthetic/kineto_no_pipeline_accumulation",
    "real/dlrm_8ranks",
    "real/megatron_tp2",
    *(
        f"real/kineto_oddities/{name}.json.gz"
        for name in (
            "a100_rank0of2_full_nccl_args",
            "cpu_only_rank34_gloo",
            "distributed_info_not_found",
            "gpu_only_no_cpu_ops",
            "integer_beyond_64bit",
            "kineto2021_old_category_names",
            "mi250_rocm62",
            "mi300_rccl_generic_names",
            "rank_non_gpu",
            "rank_not_found",
        )
    ),
)


def analyzed(name: str):
    """The report of a recorded job, valid by the schema and with parts that add up."""
    report = analyze([str(TRACES / name)]).report
    jsonschema.validate(orjson.loads(render(report)), orjson.loads(schema()))
    for rank in report.ranks:
        parts = rank.compute_ns + rank.in_stage_comm_ns + rank.dp_ns + rank.pp_ns + rank.host_ns + rank.other_ns
        assert parts == rank.window_ns
    return report


@pytest.mark.parametrize("name", PIPELINES)
def test_recorded_pipelines(name):
    """Schedule, shape and formula are right, and the bubble is the one counted by another program."""
    schedule, p, m, v, formula, counted = PIPELINES[name]
    report = analyzed(name)
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == (schedule, p, m)
    assert (report.layout.virtual, report.layout.tp, report.layout.dp) == (v, 1, 1)
    assert report.bubble.formula == pytest.approx(formula, abs=1e-12)
    assert report.bubble.measured == pytest.approx(counted, abs=0.0003)
    assert report.quality.verdict == "ok"


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_gpu_pipelines(name):
    """The bubble is the truth that the simulation wrote down, to what gaps inside actions add."""
    truth = orjson.loads((TRACES / name / "truth.json").read_bytes())
    report = analyzed(name)
    assert report.schedule.name == truth["job"]["schedule"]
    assert report.schedule.microbatches == truth["job"]["m"]
    assert (report.layout.pp, report.layout.tp, report.layout.dp) == tuple(truth["job"][k] for k in "ptd")
    assert report.schedule.reconstruction == "labels"
    steps = [step["bubble_ratio"] for step in truth["steps"]]
    assert report.bubble.measured == pytest.approx(sum(steps) / len(steps), abs=0.001)


@pytest.mark.parametrize("name", NO_PIPELINE)
def test_jobs_without_a_pipeline(name):
    """Data parallelism, accumulation, all-to-alls and lone ranks are no pipeline, and get an answer all the same."""
    report = analyzed(name)
    assert report.schedule.name == "none"
    assert report.layout.pp == 1
    assert report.bubble.measured is None
    assert report.ranks


def test_an_all_to_all_ends_together_and_starts_apart():
    """Kernels of one collective over 8 ranks end within microseconds: nearly all of their time is waiting."""
    line = next(c for c in analyzed("real/dlrm_8ranks").communication if c.op == "all_to_all")
    assert (line.group, line.calls) == ("other", 5)
    assert line.wait_ns + line.transfer_ns == line.total_ns
    assert line.transfer_ns < 0.02 * line.total_ns


def test_one_rank_of_four_gives_an_interval():
    """One file of a pipeline of four: the schedule is known, the bubble an interval that holds the truth."""
    report = analyzed("synthetic/kineto_1f1b_p4m8_labels/rank1_trace.json.gz")
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == ("1f1b", 4, 8)
    assert report.bubble.measured is None
    assert report.bubble.lower <= 0.28645 <= report.bubble.upper
    assert report.quality.verdict == "degraded"
