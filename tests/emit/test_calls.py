"""What a file leaves out of communication."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.emit import Job, write
from bubblescope.emit.calls import GENERIC_KERNEL
from tests.emit.jobs import read, rows

JOB = Job(p=2, m=4, t=2, p2p_args="op", steps=1)
CALLS = {"params": "record_param_comms", "ops": "c10d::", "ranges": "nccl:"}


def content(job, folder):
    """The file of rank 1."""
    folder.mkdir()
    write(job, folder)
    return read(folder / "rank1_trace.json.gz")


def asked(file):
    """The names of calls, each by its beginning."""
    names = {event["name"] for event in rows(file, "cpu_op", "user_annotation", "gpu_user_annotation")}
    return {kind for kind, beginning in CALLS.items() if any(name.startswith(beginning) for name in names)}


@pytest.mark.parametrize("calls", ["all", *CALLS, "none"])
def test_only_the_calls_that_are_asked_for_are_there(calls, tmp_path):
    """On the host, and their copies on the GPU."""
    file = content(replace(JOB, calls=calls), tmp_path / "a")
    assert asked(file) == ({*CALLS} if calls == "all" else {calls} - {"none"})


@pytest.mark.parametrize("args", ["op", "none"])
def test_kernels_of_one_name_are_those_of_the_usual_ones(args, tmp_path):
    """At the same times; what they did is told by the arguments of calls, or by none."""
    usual, generic = (
        content(replace(JOB, p2p_args=args, comm_names=names), tmp_path / names) for names in ("nccl", "generic")
    )
    kernels = rows(generic, "kernel")
    assert [(k["start"], k["end"], k["tid"]) for k in kernels] == [
        (k["start"], k["end"], k["tid"]) for k in rows(usual, "kernel")
    ]
    named = [k for k in kernels if k["name"].startswith("nccl")]
    assert {k["name"] for k in named} == {GENERIC_KERNEL}
    assert not [key for k in named for key in k["args"] if key.startswith(("Collective", "Process", "Dst", "Src"))]
    told = [r for r in rows(generic, "cpu_op") if "Collective name" in r["args"]]
    assert bool(told) == (args == "op")
