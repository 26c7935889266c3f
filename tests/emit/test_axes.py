"""What messages, in-stage calls and launches look like where a job asks for it."""

from __future__ import annotations

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.errors import UsageError
from tests.emit.exports import KERNELS, LAUNCHES, exports
from tests.emit.jobs import read, rows

SMALL = {"p": 2, "m": 2, "steps": 1, "compress": False}


def contents(tmp_path, **fields):
    """The files of a small job."""
    return [read(path) for path in write(Job(**(SMALL | fields)), tmp_path)]


def messages(content):
    """Kernels that send and receive, in the order in which they ran on their streams."""
    return [row for row in rows(content, "kernel") if row["name"].startswith("ncclDevKernel_SendRecv")]


def test_each_message_follows_its_shape(tmp_path):
    """Twice as many kernels, and before each tensor three integers on its stream."""
    plain, announced = (contents(tmp_path / str(on), announced=on) for on in (False, True))
    for before, after in zip(plain, announced, strict=True):
        assert len(messages(after)) == 2 * len(messages(before)) > 0
        sizes = {}
        for row in sorted(messages(after), key=lambda row: row["start"]):
            sizes.setdefault(row["tid"], []).append((row["args"]["In msg nelems"], row["args"]["dtype"]))
        assert all(lane == [(3, "Long"), (4_194_304, "BFloat16")] * (len(lane) // 2) for lane in sizes.values())


def test_shapes_change_nothing_that_is_true():
    """They take a few microseconds of the message."""
    assert truth(Job(**SMALL)).bubble == truth(Job(**SMALL, announced=True)).bubble


def test_an_all_to_all_is_called_like_a_message(tmp_path):
    """Where the all-reduces of a stage would be; its arguments alone say what it is."""
    reduced, exchanged = (contents(tmp_path / way, t=2, in_stage=way) for way in ("all-reduce", "all-to-all"))
    for before, after in zip(reduced, exchanged, strict=True):
        calls = [row for row in messages(after) if row["args"]["Collective name"] == "all_to_allv"]
        assert [row["start"] for row in calls] == [
            row["start"] for row in rows(before, "kernel") if "AllReduce" in row["name"]
        ]


def test_calls_without_names(tmp_path):
    """Neither torch's operators and ranges nor NCCL's say what a kernel is; NCCL's arguments may."""
    for content in contents(tmp_path, t=2, in_stage="all-to-all", named_calls=False):
        names = {row["name"] for row in rows(content, "cpu_op", "user_annotation", "gpu_user_annotation")}
        assert not [name for name in names if name.startswith(("c10d::", "nccl:"))]
        assert "record_param_comms" in names


@pytest.mark.parametrize(("launches", "left"), [("joined", True), ("unnumbered", True), ("trimmed", False)])
def test_launches(tmp_path, launches, left):
    """A file without launches has its kernels still; one without numbers has 0 for all."""
    for content in contents(tmp_path, launches=launches):
        numbers = {row["args"]["correlation"] for row in rows(content, "kernel")}
        assert bool(rows(content, "cuda_runtime")) == left
        assert (numbers == {0}) == (launches == "unnumbered")
        assert not [e for e in content["traceEvents"] if e.get("cat") == "ac2g" and not left]
    (export, *_) = exports(tmp_path / "nsys", Job(**(SMALL | {"recorder": "nsys"})), launches=launches)
    assert (LAUNCHES in export.tables, KERNELS in export.tables) == (left, True)


@pytest.mark.parametrize("wish", [{"announced": True}, {"in_stage": "all-to-all", "t": 2}, {"launches": "trimmed"}])
def test_a_cpu_has_none_of_it(wish):
    """Gloo announces nothing, and a host launches nothing."""
    with pytest.raises(UsageError, match="on a CPU"):
        Job(**(SMALL | wish), backend="cpu")
