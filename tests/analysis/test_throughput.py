"""What a run gets done a second: closed forms, what is unknown, and what cannot be."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.analysis.peaks import peak_flops
from bubblescope.model.job import Job
from bubblescope.model.trace import Device
from tests.analysis.jobs import RANK_0, RANK_1, again, hidden, job, one_f_one_b, rank, report, steps, without

MS = 1_000_000
STATED = {"batch_size": 6, "sequence_length": 100, "flops_per_token": 2e9, "peak_flops": 1e12, "recompute": 0.5}


def a_job(*, dp: int | None = None, device: str | tuple[str, ...] = "") -> Job:
    """Four steps of a tenth of a second, each of 2 micro-batches on 2 ranks, whose GPUs have a name."""
    rows = ([(n, s * MS, e * MS) for n, s, e in lane] for lane in (RANK_0, RANK_1))
    lines = [
        rank(r, again(lane, 4, 100 * MS), steps=[(k, s * MS, e * MS) for k, s, e in steps(4)])
        for r, lane in enumerate(rows)
    ]
    names = device if isinstance(device, tuple) else (device, device)
    for r, name in enumerate(names):
        identity = dataclasses.replace(lines[r].identity, devices=(Device(0, name),))
        lines[r] = dataclasses.replace(lines[r], identity=identity)
    made = job(*lines)
    return dataclasses.replace(made, plan=dataclasses.replace(made.plan, dp=dp))


def rates(of: Job, **options):
    """The throughput of a job."""
    return report(of, **options).throughput


def conflicts(of: Job, **options) -> list[str]:
    """What was stated and cannot be."""
    return [f.message for f in report(of, **options).quality.findings if f.code == "metadata-conflict"]


def test_rates_are_counted_by_the_step_time():
    """10 steps a second of 2 micro-batches, 6 samples and 600 tokens, on 2 GPUs of a teraflop a second."""
    found = rates(a_job(), **STATED)
    assert found.step_ns == 100 * MS
    assert found.microbatches_per_s == pytest.approx(20)
    assert found.samples_per_s == pytest.approx(60)
    assert found.tokens_per_s == pytest.approx(6_000)
    assert found.tokens_per_s_per_gpu == pytest.approx(3_000)
    assert found.model_flops_per_s_per_gpu == pytest.approx(6e12)
    assert found.mfu == pytest.approx(6)
    assert found.hfu == pytest.approx(6 * (1 + 0.5 / 3))


def test_the_whole_forward_run_again_makes_four_thirds():
    """GLM-130B (arXiv 2210.02414): an MFU of 32.5 % is an HFU of 43.3 %."""
    found = rates(a_job(), **STATED | {"peak_flops": 6e12 / 0.325, "recompute": 1})
    assert (found.mfu, found.hfu) == (pytest.approx(0.325, abs=1e-9), pytest.approx(0.433, abs=5e-4))


def test_nothing_run_again_makes_no_difference():
    """0 is stated: it is not the same as unknown."""
    found = rates(a_job(), **STATED | {"recompute": 0})
    assert found.hfu == found.mfu


@pytest.mark.parametrize(
    ("option", "unknown"),
    [
        ("batch_size", {"samples_per_s", "tokens_per_s", "tokens_per_s_per_gpu"}),
        ("sequence_length", {"tokens_per_s", "tokens_per_s_per_gpu"}),
        ("flops_per_token", set()),
    ],
)
def test_what_was_not_stated_is_not_guessed(option, unknown):
    """Without one number, all that rests on it is None, and nothing else is."""
    found = dataclasses.asdict(rates(a_job(), **STATED | {option: None}))
    known = {"step_ns", "microbatches_per_s", "peak_flops", "busy", "useful", "samples_per_s", "tokens_per_s"}
    known |= {"tokens_per_s_per_gpu"}
    assert {name for name, value in found.items() if value is not None} == known - unknown


def test_unknown_recomputation_leaves_mfu():
    """HFU alone needs it."""
    found = rates(a_job(), **STATED | {"recompute": None})
    assert found.mfu == pytest.approx(6)
    assert found.hfu is None


def test_replicas_that_were_not_recorded_count():
    """Of 8 replicas one was recorded: each of them runs 2 micro-batches a step."""
    assert rates(a_job(dp=8)).microbatches_per_s == pytest.approx(160)


def test_replicas_that_nobody_counts_are_not_guessed():
    """A rank in no pipeline: there may be more of them."""
    alone = a_job()
    more = dataclasses.replace(alone, plan=dataclasses.replace(alone.plan, world_size=4))
    assert rates(more).microbatches_per_s is None
    assert rates(alone).microbatches_per_s is not None


def test_ranks_that_were_not_recorded_count_as_gpus():
    """Tokens a GPU are those of the whole job."""
    assert rates(hidden(a_job(), 1), **STATED).tokens_per_s_per_gpu == pytest.approx(3_000)


def test_without_a_pipeline_samples_are_counted_all_the_same():
    """Nothing tells micro-batches there."""
    lone = job(rank(0, stray=[(0, 60 * MS)], steps=[(0, 0, 100 * MS)]), pipelines=[[[0]]])
    lone = dataclasses.replace(lone, plan=dataclasses.replace(lone.plan, pipelines=()))
    found = rates(lone, batch_size=6)
    assert (found.microbatches_per_s, found.samples_per_s) == (None, pytest.approx(60))


def test_without_a_used_step_there_are_no_rates():
    """No step is complete: the second rank lacks a forward in each."""
    lines = (RANK_0, without(RANK_1, "1F1"))
    torn = job(*(rank(r, again(rows, 2), steps=steps(2)) for r, rows in enumerate(lines)))
    assert report(torn).steps
    assert rates(torn) is None


def test_the_peak_is_that_of_the_gpu_that_the_trace_names():
    """What is stated comes first."""
    assert rates(a_job(device="NVIDIA H100 80GB HBM3")).peak_flops == 989.4e12
    assert rates(a_job(device="NVIDIA H100 80GB HBM3"), peak_flops=5e14).peak_flops == 5e14


@pytest.mark.parametrize("device", ["", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", ("NVIDIA H100 80GB HBM3", "NVIDIA H20")])
def test_a_peak_that_is_not_known_is_not_guessed(device):
    """No name, a slice of a GPU, two GPUs that are unlike."""
    found = rates(a_job(device=device), **STATED | {"peak_flops": None})
    assert (found.peak_flops, found.mfu, found.hfu) == (None, None, None)
    assert found.model_flops_per_s_per_gpu is not None


@pytest.mark.parametrize(
    ("device", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("A100-SXM4-40GB", 312),
        ("NVIDIA A100 80GB PCIe", 312),
        ("NVIDIA A100-PCIE-40GB", 312),
        ("NVIDIA A800-SXM4-80GB", 312),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H200", 989.4),
        ("NVIDIA B200", 2250),
        ("NVIDIA L4", 121),
        ("NVIDIA L40", 181.05),
        ("AMD Instinct MI300X", 1307.4),
        ("NVIDIA A100-SXM-64GB", None),
        ("NVIDIA A10G", None),
        ("Tesla V100-SXM2-32GB", None),
        ("NVIDIA GH200 480GB", 989.4),
        ("AMD Radeon Graphics", None),
    ],
)
def test_peaks_are_of_whole_names(device, tera):
    """A variant whose name only begins alike is another GPU; one without bf16 has no peak."""
    assert peak_flops(device) == (None if tera is None else pytest.approx(tera * 1e12))


def test_an_mfu_above_one_is_said_to_be_wrong():
    """The number stays: it is what was stated."""
    (message,) = conflicts(a_job(), **STATED)
    assert message.startswith("an HFU of 700% cannot be")
    (message,) = conflicts(a_job(), **STATED | {"recompute": None})
    assert message.startswith("an MFU of 600% cannot be")
    assert not conflicts(a_job(), **STATED | {"peak_flops": 8e12})


def test_a_batch_of_one_replica_is_noticed():
    """2 micro-batches of 8 pipelines are 16 samples at least."""
    (message,) = conflicts(a_job(dp=8), batch_size=15)
    assert message.startswith("--batch-size 15 contradicts the 16 micro-batches of a step")
    assert not conflicts(a_job(dp=8), batch_size=16)


def test_contradictions_of_what_was_stated_degrade_nothing():
    """The bubble does not rest on it."""
    assert report(a_job(), **STATED).quality.verdict == report(a_job()).quality.verdict == "ok"


def test_the_first_step_slows_no_rate():
    """The means take the used steps: the first one took a second."""
    slow = [(n, s if k == 0 else s + 900, e if k == 0 else e + 900, k) for n, s, e, k in again(RANK_0, 4)]
    late = [(n, s if k == 0 else s + 900, e if k == 0 else e + 900, k) for n, s, e, k in again(RANK_1, 4)]
    marks = [(0, 0, 1000), (1, 1000, 1100), (2, 1100, 1200), (3, 1200, 1300)]
    assert rates(job(rank(0, slow, steps=marks), rank(1, late, steps=marks))).step_ns == 100
    assert rates(one_f_one_b(times=4)).step_ns == 100
