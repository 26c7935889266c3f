"""What files are, `bubblescope.info/1`: one frozen value that every output of `bubblescope info` renders.

Field for field it is the JSON that `bubblescope info --json` writes; the JSON Schema is made from these types. Times
are integer nanoseconds (`*_ns`), unknown is None. docs/info.md says what every key means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.report import Tool
from bubblescope.model.trace import Finding, RankSource

__all__ = [
    "ActionsInfo",
    "Counts",
    "FileInfo",
    "GroupInfo",
    "Info",
    "JobInfo",
    "LaneInfo",
    "Need",
    "RankInfo",
    "StepInfo",
    "ThreadInfo",
]

ToldBy = Literal["labels", "autograd", "frames", "p2p", "kernels", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Events of a rank that are kept, by what they are.

    `launches` are calls that put work on a GPU, `copies` are copies and fills, `ranges` are named by a user or a
    framework. `collectives` and `messages` (sends and receives between stages, each side by itself) are among the
    kernels, or among the ranges of a run without GPU.
    """

    operators: int
    launches: int
    kernels: int
    copies: int
    ranges: int
    frames: int
    collectives: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """A step of a rank: how many actions it has, and whether it has as many as a whole step; None where none is told.

    `kind` is what the step holds, by the actions of this rank alone; None where these do not tell it. Times are on the
    rank's own clock, from `RankInfo.start_ns` on.
    """

    step: int
    kind: Literal["training", "mixed", "evaluation", "inference"] | None
    actions: int
    complete: bool | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionsInfo:
    """How forwards and backwards were told apart, and how many of each kind (F, B, I, W) there are.

    `dialect` is the one whose texts name actions (docs/labels.md), also where something else told them in the end.
    """

    told_by: ToldBy | None
    dialect: str | None
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneInfo:
    """A stream of a GPU: what ran on it, by number, and for how long anything did.

    `copies` are those between the host and the device.
    """

    lane: int
    compute: int
    messages: int
    collectives: int
    copies: int
    busy_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """A thread of the host: its names, and how many events it has."""

    pid: str
    tid: str
    names: tuple[str, ...]
    operators: int
    ranges: int
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInfo:
    """A communicator: its name and description, empty where there is none, what it serves, and its ranks.

    `purpose` is pp, tp, dp, cp or ep, as the description says. `calls` says how often the rank used it.
    """

    name: str
    description: str
    purpose: str | None
    ranks: tuple[int, ...]
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that a recording lacks: what it is, what cannot be told without it, and what to add to get it."""

    code: str
    lacks: str
    add: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInfo:
    """What a file holds of one rank.

    Attributes:
        rank: None where the file does not tell it.
        start_ns: first moment of anything, since the Unix epoch where `absolute`, else on a clock of its own.
        span_ns: from there to the last moment of anything; None where nothing happened.
        marked: whether the profiler or the framework marked steps, also where these marks are closer than steps.
        problem: why nothing can be told of the rank's work, None where it can.
    """

    rank: int | None
    rank_source: RankSource | None
    world_size: int | None
    host: str | None
    backend: str | None
    devices: tuple[str, ...]
    events: int
    counts: Counts
    absolute: bool
    start_ns: int | None
    span_ns: int | None
    marked: bool
    steps: tuple[StepInfo, ...]
    actions: ActionsInfo
    lanes: tuple[LaneInfo, ...]
    threads: tuple[ThreadInfo, ...]
    groups: tuple[GroupInfo, ...]
    needs: tuple[Need, ...]
    findings: tuple[Finding, ...]
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file: what it looks like, whether it was read, and what of each rank it holds.

    `trace` is whether it looks like one that this version reads; `format` is None where nothing was read of it.
    `problem` says why, and `hint` what to do.
    """

    path: str
    looks_like: str
    trace: bool
    format: Literal["kineto", "chrome", "nsys", "timeline", "table"] | None
    bytes: int
    gzip: bool
    ranks: tuple[RankInfo, ...]
    problem: str | None
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """The files taken as one job.

    Attributes:
        ranks: those that the files hold.
        missing_ranks: those of `world_size` that they do not.
        common_steps: steps that every rank has.
        complete_steps: those in which every rank has all of its actions.
        answer: what `bubblescope analyze` can tell: the bubble, an interval for it, where the time went (no pipeline is
            in sight), or nothing; `problem` says why it is not more.
        command: what to run next, None where that would fail.
    """

    world_size: int | None
    ranks: tuple[int, ...]
    missing_ranks: tuple[int, ...]
    common_steps: tuple[int, ...]
    complete_steps: tuple[int, ...]
    answer: Literal["bubble", "interval", "time", "nothing"]
    verdict: Literal["ok", "degraded", "unusable"]
    problem: str | None
    command: str | None
    needs: tuple[Need, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """All that `bubblescope info` tells."""

    schema: Literal["bubblescope.info/1"] = "bubblescope.info/1"
    tool: Tool
    files: tuple[FileInfo, ...]
    job: JobInfo

    @property
    def readable(self) -> bool:
        """Whether anything was read of any file."""
        return any(file.ranks for file in self.files)
