"""The events of one rank's file: ids, clocks, and the rows that belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from bubblescope.emit.calls import as_recorded
from bubblescope.emit.job import Job
from bubblescope.emit.run import Span

__all__ = ["BASE_NS", "COMPUTE_STREAM", "Args", "Call", "Launch", "Node", "Tape"]

BASE_NS = 1_790_857_026_000_000_000
ORIGIN_NS = BASE_NS + 5_112_000_000_000_000
COMPUTE_STREAM = 7
GPU_ROWS = frozenset({"kernel", "gpu_user_annotation"})
RECORDED = {"all": None, "launches": frozenset({"cuda_runtime", "kernel", "ac2g"}), "none": frozenset({"kernel"})}
STATIC = {"queued": 0, "registers per thread": 96, "shared memory": 49152, "blocks per SM": 1.0, "warps per SM": 8.0}
GRID = {"grid": [132, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 12}

Where = tuple[int, int]
"""A process and a thread; on a GPU a device and a stream."""

Args = dict[str, Any]
"""The arguments of an event."""

Row = tuple[int, int, Args]
"""Start, negative end, event."""


class Node(NamedTuple):
    """A node of autograd's graph: its sequence number, and when its forward operator began."""

    number: int
    begin: int


class Launch(NamedTuple):
    """A kernel's launch: when, for which operator, and by which thread, the main one if None."""

    begin: int
    end: int
    owner: Args
    tid: int | None = None


class Call(NamedTuple):
    """A call of NCCL as NCCL itself tells of it: what the rank's clock showed, the thread, and what it was called with.

    `values` are those of the fields that NCCL has for the function, in their order.
    """

    name: str
    start: int
    end: int
    tid: int
    values: tuple[int, ...]


def _stamp(job: Job) -> Callable[[int], Any]:
    """How a moment, in nanoseconds since the epoch, is written: microseconds always, as exact text."""
    if job.era == "epoch-int":
        return lambda ns: ns // 1000
    base = BASE_NS if job.era == "relative" else 0
    return lambda ns: orjson.Fragment(f"{(ns - base) // 1000}.{(ns - base) % 1000:03d}")


class Tape:
    """Collects one rank's events.

    Host rows and GPU rows are kept apart and written one after the other, as Kineto does. What NCCL tells of itself,
    which Kineto does not hear, is kept apart from both.
    """

    def __init__(self, job: Job, rank: int) -> None:
        self.job, self.rank = job, rank
        self.pid = 7000 + 13 * rank
        self.main, self.engine = self.pid, self.pid + (5 if job.backend == "cuda" else 0)
        self.device = rank % job.ranks_a_host
        self.skew = job.skew_ns[rank] if rank < len(job.skew_ns) else 0
        self.drift = job.drift_ppm[rank] if rank < len(job.drift_ppm) else 0.0
        self.stamp = _stamp(job)
        self.numbered = job.autograd and job.trains  # without a backward autograd counts nothing
        self.host: list[Row] = []
        self.gpu: list[Row] = []
        self.calls: list[Call] = []
        self.ids, self.correlation, self.flows = 0, 1000, 0
        self.number = 1

    def events(self) -> list[Args]:
        """Host rows, then GPU rows, each by start, outer before inner."""
        kept = RECORDED[self.job.host]
        rows = (sorted(rows, key=lambda row: row[:2]) for rows in (self.host, self.gpu))
        events = (event for part in rows for *_, event in part if kept is None or event["cat"] in kept)
        return list(as_recorded(self.job, events))

    def clock(self, ns: int) -> int:
        """What this rank's clock shows at a true moment."""
        return ORIGIN_NS + ns + self.skew + round(self.drift * ns / 1e6)

    def row(self, cat: str, name: str, where: Where, span: Span) -> Args:
        """Append a complete event to the host's rows, or to the GPU's, and hand back its arguments."""
        start, stop = self.clock(span[0]), self.clock(span[1])
        args: Args = {}
        if self.job.era == "epoch-int":
            took: Any = stop // 1000 - start // 1000
        else:
            took = orjson.Fragment(f"{(stop - start) // 1000}.{(stop - start) % 1000:03d}")
        event = {"ph": "X", "cat": cat, "name": name, "pid": where[0], "tid": where[1], "ts": self.stamp(start)}
        event |= {"dur": took, "args": args}
        (self.gpu if cat in GPU_ROWS else self.host).append((start, -stop, event))
        return args

    def flow(self, phase: str, cat: str, ident: int, where: Where, at: int) -> None:
        """Append one end of an arrow."""
        moment = self.clock(at)
        event = {"ph": phase, "id": ident, "pid": where[0], "tid": where[1], "ts": self.stamp(moment)}
        event |= {"cat": cat, "name": cat} | ({"bp": "e"} if phase == "f" else {})
        (self.gpu if (phase, cat) == ("f", "ac2g") else self.host).append((moment, 0, event))

    def mark(self, name: str, begin: int, end: int, *, cat: str = "user_annotation", tid: int | None = None) -> Args:
        """Append an operator or annotation of a host thread and hand back its arguments."""
        args = self.row(cat, name, (self.pid, self.main if tid is None else tid), (begin, end))
        self.ids += 1
        args |= {"External id": self.ids, "Record function id": 0, "Ev Idx": self.ids - 1}
        return args

    def op(self, name: str, begin: int, end: int, *, number: int | None = None, backward: bool = False) -> Args:
        """Append an operator, with an autograd number where it has one."""
        args = self.mark(name, begin, end, cat="cpu_op", tid=self.engine if backward else self.main)
        if number is not None and self.numbered:
            args |= {"Sequence number": number, "Fwd thread id": int(backward)}
        return args

    def kernel(
        self,
        name: str,
        span: Span,
        launch: Launch,
        *,
        stream: int = COMPUTE_STREAM,
        extra: Args | None = None,
    ) -> None:
        """Append a kernel, its launch, and the arrow between them."""
        self.correlation += 1
        thread = (self.pid, self.main if launch.tid is None else launch.tid)
        api = "cudaLaunchKernelExC" if name.startswith("nccl") else "cudaLaunchKernel"
        external = launch.owner["External id"]
        args = self.row("cuda_runtime", api, thread, (launch.begin, launch.end))
        args |= {"External id": external, "cbid": 211, "correlation": self.correlation}
        self.flow("s", "ac2g", self.correlation, thread, launch.begin)
        args = self.row("kernel", name, (self.device, stream), span)
        args |= {"External id": external, "device": self.device, "context": 1, "stream": stream}
        args |= {"correlation": self.correlation} | STATIC | GRID | (extra or {})
        self.flow("f", "ac2g", self.correlation, (self.device, stream), span[0])

    def call(self, name: str, span: Span, *values: int, tid: int | None = None) -> None:
        """Append a call of NCCL, by the main thread if no other is named."""
        moments = self.clock(span[0]), self.clock(span[1])
        self.calls.append(Call(name, *moments, self.main if tid is None else tid, values))

    def project(self, name: str, span: Span, owner: Args, stream: int) -> None:
        """Append the GPU's copy of an annotation: it spans the kernels launched right inside it, and 1 ns more."""
        if self.job.gpu_annotations:
            args = self.row("gpu_user_annotation", name, (self.device, stream), (span[0] - 1, span[1]))
            args["External id"] = owner["External id"]

    def link(self, node: Node, at: int) -> None:
        """Append the arrow from a forward operator to its backward one."""
        if self.numbered:
            self.flows += 1
            self.flow("s", "fwdbwd", self.flows, (self.pid, self.main), node.begin)
            self.flow("f", "fwdbwd", self.flows, (self.pid, self.engine), at)
