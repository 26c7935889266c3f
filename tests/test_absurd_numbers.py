"""Numbers that no column holds and no job has: unknown, never wrapped and never a crash."""

from __future__ import annotations

import json

import pytest

from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.ingest.chrome import read, read_all
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.calls import size_of

TINY = Job(p=2, m=3, steps=2, kernels=1, forward_ns=50_000, backward_ns=100_000, p2p_ns=5_000, compress=False)
ABSURD = [-(2**70), -(2**63), -(2**31) - 1, -2, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30]
NUMBERS = [
    *("Src Rank", "Dst Rank", "In msg nelems", "Out msg nelems", "Group size", "Seq"),
    *("Sequence number", "Fwd thread id", "correlation", "stream", "device"),
]


def spoil(paths, change):
    """Write the traces anew after `change` has seen each document."""
    for path in paths:
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document))


def events(document, key):
    """Arguments of the events that tell `key`."""
    return [event["args"] for event in document["traceEvents"] if key in event.get("args", {})]


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("number", ABSURD)
def test_absurd_arguments_crash_nothing(tmp_path, key, number):
    """An argument of any size, on the events that carry it and on a collective of all, leaves a report."""
    paths = write(TINY, tmp_path)
    call = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, key: number}
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 99, "dur": 10}

    def change(document):
        for args in events(document, key)[:3]:
            args[key] = number
        last = max(event["ts"] for event in document["traceEvents"] if "dur" in event)
        document["traceEvents"].append(kernel | {"ts": last, "args": call})

    spoil(paths, change)
    for path in paths:
        for trace in read_all(path):
            trace.self_check()
    report = analyze([str(tmp_path)]).report
    assert report.layout.world_size < 1_000_000
    assert all(entry.bytes is None or 0 <= entry.bytes < 2**62 for entry in report.communication)


@pytest.mark.parametrize("number", [-2, 1_000_000, 2**31, 2**40, 2**64])
def test_ranks_beyond_all_jobs_are_unknown(tmp_path, number):
    """A peer or a group that no job has is none."""
    arguments = {"Collective name": "send", "Src Rank": number, "Dst Rank": number}
    lists = [{"Process Group Ranks": ranks} for ranks in ([0, number], f"[0, {number}]")]
    kernels = [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": arguments | more} for more in lists]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": kernels}))
    trace = read(tmp_path / "trace.json")
    assert {(comm.src, comm.dst, comm.ranks) for comm in trace.comms} == {(-1, -1, ())}


def test_sizes_beyond_all_memory_are_unknown():
    """Bytes that no device holds are not told, so that no sum of them leaves 64 bits."""
    calls = [CommArgs(elements=n, dtype="Float") for n in (-5, -1, 0, 2**20, 2**40, 2**41, 2**62, 2**63 - 1)]
    assert [size_of(call) for call in calls] == [-1, -1, 0, 2**22, 2**42, -1, -1, -1]
