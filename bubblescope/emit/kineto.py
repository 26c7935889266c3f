"""The content of a rank's file, as Kineto writes it."""

from __future__ import annotations

from typing import Any

from bubblescope.emit.groups import distributed_info
from bubblescope.emit.job import Job
from bubblescope.emit.play import play
from bubblescope.emit.simulate import START_NS, simulate
from bubblescope.emit.tape import BASE_NS, Tape

__all__ = ["content"]


def content(job: Job, rank: int, name: str, cycle: int = 0) -> dict[str, Any]:
    """A rank's whole file of a recording as a value, its keys in the order they are written."""
    head, events = _metadata(job, rank), _events(job, rank, cycle)
    tail: dict[str, Any] = {"displayTimeUnit": "ns" if job.era == "epoch-fraction" else "ms"}
    if job.era == "relative":
        tail["baseTimeNanoseconds"] = BASE_NS
    if job.metadata == "before":
        return {"schemaVersion": 1, **head, **tail, "traceEvents": events, "traceName": name}
    return {"schemaVersion": 1, "traceEvents": events, **head, **tail, "traceName": name}


def _metadata(job: Job, rank: int) -> dict[str, Any]:
    """What stands beside the events: the device, and what torch knows of the job."""
    devices = [_device(r % job.ranks_a_host) for r in (range(job.world) if job.one_process else [rank])]
    head: dict[str, Any] = {"deviceProperties": devices if job.backend == "cuda" else []}
    if job.metadata == "none":
        return head
    if job.backend == "cuda":
        head |= {"cuda_runtime_version": 12040, "cuda_driver_version": 12040}
    told = {} if job.one_process else {"distributedInfo": distributed_info(job, rank)}
    return head | told | {"host_name": f"node{job.host_of(rank)}"}


def _device(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85_899_345_920,
        "computeMajor": 9,
        "computeMinor": 0,
        "numSms": 132,
    }


def _events(job: Job, rank: int, cycle: int) -> list[dict[str, Any]]:
    """Names of processes and threads, the steps, and the marks that close a file."""
    tape = play(job, rank)
    begin, end = ([START_NS, *tape.borders][cycle], [*tape.borders, simulate(job)[-1].end][cycle])
    opening = tape.stamp(tape.clock(begin - 500_000, cycle))
    closing = tape.stamp(tape.clock(end + 500_000, cycle))
    marks: list[dict[str, Any]] = [
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces"},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": closing},
    ]
    marks[0] |= {"tid": "Trace PyTorch Profiler", "ts": opening}
    names = [{"ph": "M", "ts": opening, **row} for row in _names(job, tape)]
    return names + tape.events(cycle) + marks


def _names(job: Job, tape: Tape) -> list[dict[str, Any]]:
    """Rows that name processes and threads; a thread is named twice, as Kineto does."""
    rows = [
        ("process_name", tape.pid, 0, {"name": "python"}),
        ("process_labels", tape.pid, 0, {"labels": "CPU"}),
        ("process_sort_index", tape.pid, 0, {"sort_index": tape.pid}),
        ("thread_name", tape.pid, tape.main, {"name": f"thread {tape.main} (python)"}),
    ]
    if job.backend == "cuda":
        rows += [
            ("process_name", tape.device, 0, {"name": "python"}),
            ("process_labels", tape.device, 0, {"labels": f"GPU {tape.device}"}),
            ("thread_name", tape.device, 7, {"name": "stream 7 "}),
            ("thread_name", tape.pid, tape.engine, {"name": f"thread {tape.engine} (python)"}),
            ("thread_name", tape.pid, tape.engine, {"name": f"thread {tape.engine} (pt_autograd_0)"}),
        ]
    return [{"name": name, "pid": pid, "tid": tid, "args": args} for name, pid, tid, args in rows]
