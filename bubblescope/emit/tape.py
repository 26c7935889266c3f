"""The events of one rank's file: ids, clocks, and the rows that belong together."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import orjson

from bubblescope.emit.calls import as_recorded
from bubblescope.emit.job import Job
from bubblescope.emit.run import Span
from bubblescope.emit.simulate import cycle_borders

__all__ = ["BASE_NS", "COMPUTE_STREAM", "Args", "Call", "Launch", "Node", "Tape"]

BASE_NS = 1_790_857_026_000_000_000
ORIGIN_NS = BASE_NS + 5_112_000_000_000_000
COMPUTE_STREAM = 7
COPY_ENDS = {"HtoD": "Pinned -> Device", "DtoH": "Device -> Pinned", "PtoP": "Device -> Device"}
MOST_OF_A_RANK = 10_000_000
"""Numbers that a GPU may use of those of its process."""

RAN = frozenset({"kernel", "gpu_memcpy"})
GPU_ROWS = RAN | {"gpu_user_annotation"}
RECORDED = {"all": None, "launches": RAN | {"cuda_runtime", "ac2g"}, "none": RAN}
STATIC = {"queued": 0, "registers per thread": 96, "shared memory": 49152, "blocks per SM": 1.0, "warps per SM": 8.0}
GRID = {"grid": [132, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 12}

CopyWay = Literal["HtoD", "DtoH", "PtoP"]

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
        self.pid = 7000 if job.one_process else 7000 + 13 * rank
        self.main = 7000 + 13 * rank
        self.engine = self.main + (5 if job.backend == "cuda" else 0)
        self.device = 0 if job.one_gpu_visible else rank % job.ranks_a_host
        self.borders = cycle_borders(job)
        self.skew = job.skew_ns[rank] if rank < len(job.skew_ns) else 0
        self.drift = job.drift_ppm[rank] if rank < len(job.drift_ppm) else 0.0
        self.stamp = _stamp(job)
        self.grads = job.trains
        self.host: list[Row] = []
        self.gpu: list[Row] = []
        self.calls: list[Call] = []
        before = rank * MOST_OF_A_RANK if job.one_process else 0
        self.ids, self.correlation, self.flows = before, 1000 + before, before
        self.number = 1
        self._overruns = random.Random(f"{job.seed}.{rank}.overruns")  # noqa: S311 - apart from what the run draws

    @property
    def numbered(self) -> bool:
        """Whether operators have numbers: without a backward autograd counts nothing."""
        return self.job.autograd and self.job.trains and self.grads

    def events(self, cycle: int = 0) -> list[Args]:
        """Host rows, then GPU rows of a recording, each by start, outer before inner."""
        kept = RECORDED[self.job.host]
        begins = [self.clock(border) for border in self.borders]
        rows = (sorted(rows, key=lambda row: row[:2]) for rows in (self.host, self.gpu))
        events = (
            event
            for part in rows
            for start, _, event in part
            if (kept is None or event["cat"] in kept) and bisect_right(begins, start) == cycle
        )
        return list(as_recorded(self.job, events))

    def clock(self, ns: int, cycle: int | None = None) -> int:
        """What this rank's clock shows at a true moment, of the recording that holds it if no other is named.

        Before each recording but the first there is a rest, of which the simulation knows nothing.
        """
        ns += self.job.rest_ns * (self.cycle(ns) if cycle is None else cycle)
        return ORIGIN_NS + ns + self.skew + round(self.drift * ns / 1e6)

    def cycle(self, ns: int) -> int:
        """Which recording holds a moment of the simulation."""
        return bisect_right(self.borders, ns)

    def row(self, cat: str, name: str, where: Where, span: Span) -> Args:
        """Append a complete event to the host's rows, or to the GPU's, and hand back its arguments."""
        cycle = self.cycle(span[0])
        start, stop = self.clock(span[0], cycle), self.clock(span[1], cycle)
        args: Args = {}
        if self.job.era == "epoch-int":
            took: Any = stop // 1000 - start // 1000
        else:
            took = orjson.Fragment(f"{(stop - start) // 1000}.{(stop - start) % 1000:03d}")
        event = {"ph": "X", "cat": cat, "name": name, "pid": where[0], "tid": where[1], "ts": self.stamp(start)}
        event |= {"dur": took, "args": args}
        if self.job.named_calls or cat == "kernel" or not name.startswith(("c10d::", "nccl:")):
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
        if stream == COMPUTE_STREAM and self._overruns.random() < self.job.overrun_chance:
            span = (span[0], span[1] + self.job.overrun_ns)
        self._ran("kernel", name, span, launch, stream).update(STATIC | GRID | (extra or {}))

    def copy(self, way: CopyWay, span: Span, launch: Launch, stream: int) -> None:
        """Append a copy from or to pinned memory of the host, or another GPU; its call, and the arrow between them."""
        self._ran("gpu_memcpy", f"Memcpy {way} ({COPY_ENDS[way]})", span, launch, stream)

    def _ran(self, cat: str, name: str, span: Span, launch: Launch, stream: int) -> Args:
        """Append what ran on a stream, with the call that asked for it; its arguments, to be completed."""
        self.correlation += 1
        number = 0 if self.job.launches == "unnumbered" else self.correlation
        thread = (self.pid, self.main if launch.tid is None else launch.tid)
        external = launch.owner["External id"]
        api = "cudaLaunchKernelExC" if name.startswith("nccl") else "cudaLaunchKernel"
        if cat == "gpu_memcpy":
            api = "cudaMemcpyPeerAsync" if "PtoP" in name else "cudaMemcpyAsync"
        if self.job.launches != "trimmed":
            args = self.row("cuda_runtime", api, thread, (launch.begin, launch.end))
            args |= {"External id": external, "cbid": 211, "correlation": number}
            self.flow("s", "ac2g", number, thread, launch.begin)
        args = self.row(cat, name, (self.device, stream), span)
        args |= {"External id": external, "device": self.device, "context": 1, "stream": stream}
        args |= {"correlation": number}
        if self.job.launches != "trimmed":
            self.flow("f", "ac2g", number, (self.device, stream), span[0])
        return args

    def call(self, name: str, span: Span, *values: int, tid: int | None = None) -> None:
        """Append a call of NCCL, by the main thread if no other is named."""
        moments = self.clock(span[0]), self.clock(span[1])
        if self.job.named_calls:
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
