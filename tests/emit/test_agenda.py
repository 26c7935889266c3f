"""Steps that differ: evaluations beside training, ramps, what precedes the first action, and marks."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.errors import UsageError
from tests.emit.exports import exports
from tests.emit.jobs import read, rows

MS = 1_000_000
EVEN = {"forward_ns": 10 * MS, "backward_ns": 20 * MS}


def labels(content):
    """The names of the actions in order."""
    found = sorted(rows(content, "user_annotation"), key=lambda row: row["start"])
    return [row["name"][3:] for row in found if row["name"].startswith("PP:")]


def marks(content):
    """The profiler's marks in order."""
    found = [row for row in rows(content, "user_annotation") if row["name"].startswith("ProfilerStep#")]
    return sorted(found, key=lambda row: row["start"])


@pytest.mark.parametrize(
    ("at", "written", "counted"),
    [
        ("between", "0F0 0B0 0F0 0F1 0F2 0F0 0B0", [(1, 0), (0, 3), (1, 0)]),
        ("before", "0F0 0F1 0F2 0F0 0B0 0F0 0B0", [(1, 3), (1, 0)]),
        ("behind", "0F0 0B0 0F0 0F1 0F2 0F0 0B0", [(1, 3), (1, 0)]),
    ],
)
def test_where_an_evaluation_stands(at, written, counted, tmp_path):
    """In a step of its own, or in its step's before or behind the training; the truth counts both."""
    job = Job(p=1, m=1, eval_steps=(0,), eval_m=3, eval_at=at)
    content = read(write(job, tmp_path)[0])
    assert labels(content) == written.split()
    assert [(step.m, step.evaluated) for step in truth(job).steps] == counted
    assert [row["name"] for row in marks(content)] == [f"ProfilerStep#{i}" for i in range(len(counted))]


def test_no_gradients_no_numbers(tmp_path):
    """Operators of an evaluation carry no numbers of autograd's, and those behind it go on where training was."""
    job = Job(p=1, m=1, kernels=2, steps=2, eval_steps=(0,), eval_m=3)
    content = read(write(job, tmp_path)[0])
    found = sorted(rows(content, "cpu_op"), key=lambda row: row["start"])
    numbers = [
        row["args"].get("Sequence number") for row in found if row["name"] == "aten::addmm" and row["tid"] == 7000
    ]
    assert numbers == [1, None, None, None, 3]
    assert len([row for row in rows(content, "user_annotation") if row["name"].startswith("Optimizer.step")]) == 2


@pytest.mark.parametrize("schedule", ["zb-v", "interleaved-1f1b", "dualpipe", "seq1f1b"])
def test_an_evaluation_runs_where_training_does(schedule):
    """Each stage takes every micro-batch once, in the placement of the schedule's first direction."""
    extra = {"zb-v": {"v": 2}, "interleaved-1f1b": {"v": 2}, "seq1f1b": {"slices": 2}}.get(schedule, {})
    job = Job(schedule=schedule, p=2, m=4, eval_steps=(0,), eval_m=3, **extra)
    ranks = truth(job).steps[1].pipelines[0].ranks
    names = [action.name for rank in ranks for action in rank.actions]
    slices = [""] if job.slices == 1 else [".0", ".1"]
    assert Counter(names) == Counter(f"{s}F{i}{c}" for s in range(job.stages) for i in range(3) for c in slices)
    trained = {action.name: rank.pp for rank in truth(job).steps[0].pipelines[0].ranks for action in rank.actions}
    assert all(trained[action.name] == rank.pp for rank in ranks for action in rank.actions if "F0" in action.name)


def test_the_bubble_is_that_of_the_training_steps():
    """One that evaluates, too, is not used; neither is an evaluation, whose own bubble is that of forwards alone."""
    plain = truth(Job(**EVEN, p=2, m=4)).bubble
    for at in ("between", "before", "behind"):
        known = truth(Job(**EVEN, p=2, m=4, steps=4, eval_steps=(1,), eval_m=3, eval_at=at))
        assert known.bubble == pytest.approx(plain, abs=1e-12)
        assert [s.m for s in known.used] == [4] * (3 if at == "between" else 2) or at == "between"
        assert all(step.evaluated == 0 for step in known.used)
    evaluation = truth(Job(**EVEN, p=2, m=4, eval_steps=(0,), eval_m=3)).steps[1]
    assert evaluation.bubble == pytest.approx(1 / 4, abs=1e-9)


@pytest.mark.parametrize("at", ["before", "behind"])
def test_where_every_step_evaluates_the_bubble_is_that_of_their_training(at):
    """Such a step spans both, and its pipelines hold the training alone; so it is where all of one size evaluate."""
    plain = truth(Job(**EVEN, p=2, m=4)).bubble
    known = truth(Job(**EVEN, p=2, m=4, steps=4, eval_steps=(0, 1, 2, 3), eval_m=3, eval_at=at))
    assert [(step.number, step.m, step.evaluated) for step in known.used] == [(1, 4, 3), (2, 4, 3), (3, 4, 3)]
    assert known.bubble == pytest.approx(plain, abs=1e-12)
    ramp = truth(Job(**EVEN, p=4, ramp=(4, 4, 4, 8, 8), eval_steps=(3, 4), eval_at=at))
    assert ramp.bubble_by_size == {4: pytest.approx(3 / 7, abs=1e-9), 8: pytest.approx(3 / 11, abs=1e-9)}
    assert [step.number for step in ramp.usable] == [1, 2, 3, 4]


def test_each_size_of_a_ramp_has_its_bubble():
    """That of the commonest is the job's; of two equally common ones that of the larger."""
    job = Job(**EVEN, ramp=(8, 4, 4, 8, 8))
    assert (job.m, job.steps) == (8, 5)
    by_size = truth(job).bubble_by_size
    assert by_size == {4: pytest.approx(3 / 7, abs=1e-9), 8: pytest.approx(3 / 11, abs=1e-9)}
    assert truth(job).bubble == by_size[8]
    assert truth(Job(**EVEN, ramp=(4, 4, 4, 8, 8, 8))).bubble == pytest.approx(3 / 11, abs=1e-9)
    assert truth(Job(**EVEN, ramp=(4, 8, 4, 4))).bubble == pytest.approx(3 / 7, abs=1e-9)


def test_a_ramp_is_written(tmp_path):
    """Each step's labels are those of its size."""
    found = labels(read(write(Job(p=1, ramp=(1, 2)), tmp_path)[0]))
    assert found == ["0F0", "0B0", "0F0", "0B0", "0F1", "0B1"]


@pytest.mark.parametrize(
    ("what", "name", "times"), [("fill", "FillFunctor", 3), ("foreach", "ZeroFunctor", 2), ("cast", "bfloat16_copy", 3)]
)
def test_what_precedes_the_first_action(what, name, times, tmp_path):
    """Kernels of the compute stream, outside of all labels, before each training step and no evaluation."""
    job = Job(p=2, m=2, zero_grad=what, zero_grad_ns=6 * MS, eval_steps=(0,))
    for content in map(read, write(job, tmp_path)):
        kernels = sorted((r for r in rows(content, "kernel") if r["tid"] == 7), key=lambda row: row["start"])
        places = [k for k, row in enumerate(kernels) if name in row["name"]]
        assert len(places) == 2 * times
        assert places[:times] == list(range(times))
        assert sum(kernels[k]["end"] - kernels[k]["start"] for k in places) == 2 * 6 * MS
        assert all(one["end"] <= other["start"] for one, other in pairwise(kernels))
        launches = {row["args"]["correlation"]: row for row in rows(content, "cuda_runtime")}
        ranges = [row for row in rows(content, "user_annotation") if row["name"].startswith("PP:")]
        for launch in (launches[kernels[k]["args"]["correlation"]] for k in places):
            assert not [row for row in ranges if row["start"] <= launch["start"] <= row["end"]]


def test_zeros_lie_before_the_window():
    """All ranks compute before any of them begins, so that the bubble stays."""
    plain, filled = (truth(Job(p=3, m=4, zero_grad=what, zero_grad_ns=6 * MS)) for what in ("none", "fill"))
    assert filled.bubble == plain.bubble
    assert filled.steps[0].pipelines[0].start == plain.steps[0].pipelines[0].start + 6 * MS


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_marks_of_micro_batches(backend, tmp_path):
    """As many a step as it has micro-batches, one behind the other without a gap, numbered on."""
    job = Job(p=2, m=3, first_step=7, marks="micro-batch", backend=backend, eval_steps=(1,), eval_at="before", eval_m=2)
    for content in map(read, write(job, tmp_path)):
        found = marks(content)
        assert [row["name"] for row in found] == [f"ProfilerStep#{7 + i}" for i in range(3 + 2 + 3)]
        assert all(one["end"] == other["start"] for one, other in pairwise(found))
        held = [
            sum(
                row["start"] <= action["start"] < row["end"]
                for action in rows(content, "user_annotation")
                if action["name"].startswith("PP:")
            )
            for row in found
        ]
        assert held == [2, 2, 2, 1, 1, 2, 2, 2]


def test_no_marks(tmp_path):
    """Nothing tells where a step begins, in any format."""
    job = Job(p=2, m=3, marks="none")
    assert not [mark for path in write(job, tmp_path) for mark in marks(read(path))]
    for export in exports(tmp_path / "nsys", job):
        assert not [row for row in export["NVTX_EVENTS"] if (row["text"] or "").startswith("ProfilerStep")]


def test_early_receives_spin_side_by_side(tmp_path):
    """All of a step's receives are posted before its first action; on streams in turns several run at a time."""
    plain = Job(p=2, m=3, steps=1, recv_ahead=99)
    for streams, most in ((1, 1), (2, 2), (9, 3)):
        job = Job(p=2, m=3, steps=1, recv_ahead=99, recv_streams=streams)
        assert truth(job).bubble == truth(plain).bubble
        content = read(write(job, tmp_path / str(streams))[1])
        found = [r for r in rows(content, "kernel") if r["args"].get("Collective name") == "recv"]
        begin = min(r["start"] for r in rows(content, "kernel") if r["tid"] == 7)
        assert sum(r["start"] < begin for r in found) == most
        assert len({r["tid"] for r in found}) == min(streams, 3)


def test_rings_pass_under_attention(tmp_path):
    """C - 1 exchanges in each attention, forwards and backwards alike, that all ranks of a context begin and end."""
    job = Job(p=2, m=2, c=3, t=2, steps=1)
    kernels = [sorted(rows(read(path), "kernel"), key=lambda row: row["start"]) for path in write(job, tmp_path)]
    rings = [[(r["start"], r["end"]) for r in each if "CONTEXT" in str(r["args"])] for each in kernels]
    attention = [[(r["start"], r["end"]) for r in each if "flash" in r["name"]] for each in kernels]
    assert job.world == 12
    for rank in range(job.world):
        place = job.place(rank)
        assert len(rings[rank]) == 2 * len(attention[rank]) == 2 * 2 * 2
        for k, (begin, end) in enumerate(rings[rank]):
            around = attention[rank][k // 2]
            assert around[0] <= begin < end <= around[1]
        assert rings[rank] == rings[job.rank(place.pp, place.dp, place.tp)]


@pytest.mark.parametrize("desc", ["megatron", "mesh"])
def test_groups_of_a_context(desc, tmp_path):
    """Rank 1 shares its stage with rank 0; gradients are reduced over the context, whatever replicas there are."""
    config = read(write(Job(p=2, m=2, c=2, pg_desc=desc), tmp_path)[1])["distributedInfo"]["pg_config"]
    found = {group["pg_desc"]: group["ranks"] for group in config}
    names = {
        "megatron": ("CONTEXT_PARALLEL_GROUP", "DATA_PARALLEL_GROUP", "DATA_PARALLEL_GROUP_WITH_CP"),
        "mesh": ("mesh_cp", "mesh_dp", "mesh_dp_cp"),
    }[desc]
    assert [found[name] for name in names] == [[0, 1], [1], [0, 1]]


def test_contexts_change_nothing_that_is_true():
    """They work at the same moments, each of them."""
    one, two = (truth(Job(p=2, m=4, c=c, d=2)) for c in (1, 2))
    assert one.bubble == two.bubble
    assert len(two.steps[0].pipelines[1].ranks) == 2 * len(one.steps[0].pipelines[1].ranks)


def test_slow_evaluations_have_names():
    """A pattern that names steps by number does not hit the evaluation in them."""
    with pytest.raises(UsageError, match="too short"):
        truth(Job(p=2, m=2, eval_steps=(0,), slow=[("evaluation 1.*", 1e-6)]))
    slow = truth(Job(p=1, m=2, eval_steps=(0,), slow=[("evaluation*", 2.0)])).steps
    assert [step.pipelines[0].window for step in slow] == [60 * MS, 40 * MS, 60 * MS]
