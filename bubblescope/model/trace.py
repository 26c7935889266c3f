"""What a parser hands over: the events of one rank, as the profiler recorded them.

A `RankTrace` knows kernels, operators, launches and annotations; it knows nothing of pipelines.
Times are int64 nanoseconds. Where `absolute` is true they count from the Unix epoch, so that
traces of one job share an axis; else the origin is unknown and ranks cannot be compared.
Ids that a trace does not give are -1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bubblescope.model.columns import Columns, Ints, Times, column

__all__ = [
    "UNNAMED",
    "Annotations",
    "CommArgs",
    "Coordinate",
    "Device",
    "Doubts",
    "Finding",
    "Identity",
    "Kernels",
    "Launches",
    "Membership",
    "Ops",
    "ProcessGroup",
    "RankSource",
    "RankTrace",
    "Severity",
    "Source",
    "Thread",
]

UNNAMED = "unknown"
"""`CommArgs.op` of a kernel that nothing names: it may be anything, a send or a receive as well."""

Severity = Literal["info", "warning", "error"]
RankSource = Literal["user", "metadata", "environment", "label", "filename", "order"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about an input that a reader of the numbers must know."""

    code: str
    severity: Severity
    message: str
    input: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Which file the events came from; `events` counts all of its events, kept or not."""

    path: str
    format: Literal["kineto", "chrome", "nsys", "timeline", "table"]
    bytes: int
    events: int


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A communicator as the trace describes it: its name, its purpose, its global ranks."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU of the process; `name` as the driver tells it."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where a rank stands on one axis of the job: `position` of `degree` in the parallelism `purpose` (pp, tp, ...).

    `degree` is 0 where only the position is told.
    """

    purpose: str
    position: int
    degree: int


@dataclass(frozen=True, slots=True)
class Membership:
    """The place of a process in a communicator, as it told when that was made: `rank` of `ranks` members."""

    communicator: str
    rank: int
    ranks: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Who recorded the trace, as far as the file tells.

    `clock` names the clock that the times count by: ranks that name the same one share it; None is one of its own.
    `process` names the process on its host; None where the file does not tell. `device` is the device of the rank where
    its process drives several.
    `virtual` is how many chunks a rank holds.
    """

    rank: int | None = None
    rank_source: RankSource | None = None
    world_size: int | None = None
    virtual: int | None = None
    backend: str | None = None
    host: str | None = None
    clock: str | None = None
    process: str | None = None
    device: str | None = None
    devices: tuple[Device, ...] = ()
    groups: tuple[ProcessGroup, ...] = ()
    coordinates: tuple[Coordinate, ...] = ()
    memberships: tuple[Membership, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """A host thread; `names` are all that the file gives it, oldest first."""

    pid: str
    tid: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommArgs:
    """What a communication call says of itself; empty strings and -1 where it says nothing.

    `src` and `dst` are global ranks; `peer` is the other side's rank in the group, where only that is known, or where
    nothing but a label says which group that is and this rank may be counted there as in the job.
    `elements` counts what this rank puts in or, if more, takes out.
    `purpose` is what the group is for, where it shows although nobody describes it.
    """

    op: str = ""
    group: str = ""
    description: str = ""
    ranks: tuple[int, ...] = ()
    group_size: int = -1
    src: int = -1
    dst: int = -1
    elements: int = -1
    dtype: str = ""
    seq: int = -1
    purpose: str = ""
    peer: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """Events of a rank whose times cannot be, mostly as counts by what became of them.

    Attributes:
        unplaced: left out, for they have no usable time.
        misplaced: left out, for they lie where they cannot have been.
        shortened: kept where they begin, without a length that cannot be.
        overran: kernels that ran on when the next one of their stream had begun, cut there.
        overran_ns: by how much the worst of these did.
        overlapping: kernels that do so on a stream that seems to be several, kept as they are.
        doubled: left out, for the file holds them twice.
        ahead: kernels that begin before their launches, kept as they are: the clock of the GPU is off.
        moments: when, on the host's clock, something that counts is missing or wrong, as far as that is known; sorted.
    """

    unplaced: int = 0
    misplaced: int = 0
    shortened: int = 0
    overran: int = 0
    overran_ns: int = 0
    overlapping: int = 0
    doubled: int = 0
    ahead: int = 0
    moments: Times = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Ops(Columns):
    """Operators on host threads.

    `sequence` is autograd's number; `forward_thread` is above 0 on backward operators;
    `comm` indexes `RankTrace.comms`.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    name: Ints = column(np.int32)
    thread: Ints = column(np.int32)
    sequence: Times = column(np.int64)
    forward_thread: Ints = column(np.int32)
    comm: Ints = column(np.int32)


@dataclass(frozen=True, eq=False)
class Annotations(Columns):
    """Ranges that a user or a framework named, on host threads. They need not nest."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    name: Ints = column(np.int32)
    thread: Ints = column(np.int32)


@dataclass(frozen=True, eq=False)
class Launches(Columns):
    """Calls of the host that put work on a GPU, joined to it by `correlation`."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    name: Ints = column(np.int32)
    thread: Ints = column(np.int32)
    correlation: Times = column(np.int64)


@dataclass(frozen=True, eq=False)
class Kernels(Columns):
    """Work on a GPU: kernels, copies and fills, told apart by `kind`.

    `lane` numbers the streams of the file; `comm` indexes `RankTrace.comms`.
    """

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    name: Ints = column(np.int32)
    lane: Ints = column(np.int32)
    correlation: Times = column(np.int64)
    kind: Ints = column(np.int8)
    comm: Ints = column(np.int32)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RankTrace:
    """The events of one rank. `names` is the table that every `name` column indexes.

    `frames` are calls of those Python functions that `bubblescope.model.frames` lists, and of modules that
    are layers (`bubblescope.model.layer_names`).
    """

    source: Source
    identity: Identity
    absolute: bool
    names: tuple[str, ...]
    threads: tuple[Thread, ...] = ()
    comms: tuple[CommArgs, ...] = ()
    ops: Ops = field(default_factory=Ops.empty)
    annotations: Annotations = field(default_factory=Annotations.empty)
    launches: Launches = field(default_factory=Launches.empty)
    kernels: Kernels = field(default_factory=Kernels.empty)
    frames: Annotations = field(default_factory=Annotations.empty)
    doubts: Doubts = field(default_factory=Doubts)
    findings: tuple[Finding, ...] = ()

    @property
    def on_gpu(self) -> bool:
        """Whether the work of this rank is seen on a GPU; else its operators are the work.

        Copies alone make no work, nor do kernels without a length, which profilers leave where they collected none.
        """
        kernels = self.kernels
        return bool(np.any((kernels.kind == Kernels.KERNEL) & (kernels.end > kernels.start)))

    def self_check(self) -> None:
        """Raise ValueError unless every index points into its table and no time runs backwards."""
        tables = {"name": self.names, "thread": self.threads, "comm": self.comms}
        for block in (self.ops, self.annotations, self.launches, self.kernels, self.frames):
            if np.any(block.end < block.start):
                raise ValueError(f"{type(block).__name__}: an end lies before its start")
            for name, table in tables.items():
                index = getattr(block, name, None)
                least = -1 if name == "comm" else 0
                if index is not None and len(index) and not (index.min() >= least and index.max() < len(table)):
                    raise ValueError(f"{type(block).__name__}.{name} points outside its table")
