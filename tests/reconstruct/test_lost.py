"""Events that the profiler lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.model.trace import Finding, Identity
from bubblescope.reconstruct.lost import cut_off, lost, unfinished
from tests.building import kernel, launch, op, run, trace


def codes(*rows):
    """The codes of what is found in a trace."""
    return [finding.code for finding in lost(trace(*rows))]


def runs(count, start=0):
    """Kernels with their launches, ten apart."""
    return [run("gemm", start + 10 * i, start + 10 * i + 5, start + 10 * i + 9) for i in range(count)]


def test_every_launch_with_its_kernel_is_whole():
    """Nothing is missing of a whole recording, nor of one without a GPU or without a host."""
    assert codes(runs(20)) == []
    assert codes(op("aten::mm", 0, 10)) == []
    assert codes(kernel("gemm", 0, 5), kernel("gemm", 10, 15, 7)) == []


@pytest.mark.parametrize(
    "alone",
    [kernel("gemm", 52, 54, 99), launch(99, 52)],
    ids=["a kernel without a launch", "a launch without a kernel"],
)
def test_one_of_a_few_alone_is_lost(alone):
    """One in twenty is more than half a percent; one in three hundred is forgiven."""
    assert codes(runs(20), alone) == ["lost-kernels"]
    assert codes(runs(300), alone) == []


def test_what_the_recording_cut_off_is_not_lost():
    """Before the first pair and behind the last one the recording begins and ends."""
    assert codes(launch(98, -5), runs(20), launch(99, 900), kernel("gemm", -9, -7, 97)) == []


def test_a_job_on_nccl_without_kernels_lost_them():
    """The host of a GPU job recorded alone tells when work was asked for, and not when it ran."""
    alone = trace(op("aten::mm", 0, 10))
    told = {name: replace(alone, identity=Identity(backend=name)) for name in ("nccl", "cpu:gloo,cuda:nccl", "gloo")}
    assert [len(lost(built)) for built in told.values()] == [1, 0, 0]


def test_launches_without_any_kernel_are_all_lost():
    """A rank whose GPU was not recorded launched all the same."""
    assert codes([launch(i, 10 * i) for i in range(5)]) == ["lost-kernels"]


def test_launches_behind_the_last_pair_were_cut_off():
    """The recording ended before the GPU came to them; one that was lost in between is none of them."""
    ended = trace(runs(3), launch(97, 15), launch(99, 40), launch(98, 30))
    assert cut_off(ended).tolist() == [30, 40]
    assert [len(cut_off(trace(*rows))) for rows in ([runs(3)], [launch(1, 5)], [])] == [0, 0, 0]


@pytest.mark.parametrize(("backend", "name"), [("nccl", "aten::mm"), (None, "nccl:send 0->1")])
def test_no_kernel_of_a_job_on_gpus_stands_before_a_cut(backend, name):
    """Where a file that is cut off holds none, no operator has run as far as it tells; one of a CPU has."""
    rows = [op(name, 0, 5), op(name, 20, 25)]
    assert unfinished(cut(rows, backend), several=True).tolist() == [0, 20]
    assert unfinished(cut([op("aten::mm", 0, 5), op("aten::mm", 20, 25)], "gloo"), several=True).tolist() == [20]


def test_a_launch_alone_anywhere_before_a_cut():
    """Kernels may be written stream by stream, so that those of an early launch are behind the cut."""
    rows = [*runs(2), launch(99, 8), run("gemm", 30, 31, 35)]
    assert 8 in unfinished(cut(rows, "nccl"), several=True).tolist()


def cut(rows, backend):
    """A trace that is cut off."""
    found = trace(*rows)
    identity = replace(found.identity, backend=backend)
    return replace(found, identity=identity, findings=(Finding("truncated", "warning", "cut off"),))
