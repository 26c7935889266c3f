"""The report, `bubblescope.report/1`: one frozen value that every output renders.

Field for field it is the JSON that `bubblescope analyze --json` writes; the JSON Schema is made
from these types. Times are integer nanoseconds (`*_ns`), shares are fractions of 1, ids are
integers, unknown is None. Definitions of every number: docs/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.metrics import Metric
from bubblescope.model.quality import Coverage, NumberVerdict, Quality, RankCoverage
from bubblescope.model.sums import check
from bubblescope.model.throughput import Throughput
from bubblescope.model.trace import RankSource
from bubblescope.model.traffic import Communication, Link
from bubblescope.model.unevenness import DataLength, Imbalance, Pause, Pauses, SlowMicrobatch, StageLoad, Straggler

__all__ = [
    "Bubble",
    "Cause",
    "CausePart",
    "Clock",
    "Communication",
    "Coverage",
    "DataLength",
    "Departure",
    "Guess",
    "Imbalance",
    "Input",
    "Layout",
    "Link",
    "Metric",
    "NumberVerdict",
    "Outside",
    "Pause",
    "Pauses",
    "PhaseCauses",
    "Pipeline",
    "PositionCauses",
    "Proposal",
    "Quality",
    "Rank",
    "RankCoverage",
    "Report",
    "Schedule",
    "SizeBubble",
    "SlowMicrobatch",
    "Stage",
    "StageLoad",
    "StageRanks",
    "Step",
    "Straggler",
    "Throughput",
    "Tool",
    "WorstBubble",
]

Phase = Literal["warmup", "steady", "cooldown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The program that wrote the report."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A file that was used."""

    path: str
    format: Literal["kineto", "chrome", "nsys", "timeline", "table"]
    bytes: int
    events: int
    rank: int
    rank_source: RankSource
    device: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Nanoseconds to add to each rank's clock in the middle of the recording, by rank, and the error that stays.

    `drift_ppm` is by how many microseconds a second that changes. `violations` counts pairs of messages,
    actions and collectives that contradict the order of cause and effect all the same.
    """

    method: Literal["none", "recorded", "collectives", "p2p"]
    offsets_ns: dict[str, int]
    drift_ppm: dict[str, float]
    error_ns: int | None
    violations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRanks:
    """The ranks that hold a stage."""

    stage: int
    chunk: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the job is spread over ranks; a degree or a number of ranks is null where nothing tells it."""

    world_size: int | None
    pp: int | None
    tp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    virtual: int
    source: str
    missing_ranks: tuple[int, ...]
    stages: tuple[StageRanks, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A schedule that fits less well."""

    name: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A place where the recovered order leaves the schedule's; actions are written 2F4."""

    rank: int
    position: int
    expected: str | None
    found: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The schedule found; `also` names those whose order is the same on the ranks present."""

    name: str
    also: tuple[str, ...]
    microbatches: int | None
    confidence: float
    runner_up: Guess | None
    reconstruction: Literal["labels", "autograd", "frames", "p2p", "kernels", "table"] | None
    evidence: tuple[str, ...]
    departures: tuple[Departure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimizer step; times count from the first moment of the job. `points` are its bubble's, by cause.

    `left_out` is why means do not take it, and `missing_ranks` are those that lack it or some of its actions. `kind` is
    what it holds, None where ranks do not tell it alike: a training of so many `microbatches`, an evaluation of them,
    a training with `extra_forwards` more than backwards (mixed), or an inference.
    """

    step: int
    complete: bool
    used: bool
    start_ns: int
    end_ns: int
    window_ns: int | None
    bubble: float | None
    points: dict[str, float] | None = None
    left_out: Literal["incomplete", "first", "not-asked", "evaluation", "other-size"] | None = None
    missing_ranks: tuple[int, ...] = ()
    kind: Literal["training", "mixed", "evaluation", "inference"] | None = None
    microbatches: int | None = None
    extra_forwards: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePart:
    """A part of a cause; the parts add up to it. Of jitter `data`, `pauses`, `rest`, of host `pauses` and `rest`."""

    part: str
    ns: int
    share: float
    points: float
    error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A part of the measured bubble: time, share of the window, percentage points / 100.

    `error` is the standard error of `points`, null for theory and with fewer than two steps. `alone` is what the
    cause adds to the bare schedule, `removed` what the run would save without it; null unless asked for.
    """

    cause: str
    ns: int
    share: float
    points: float
    error: float | None = None
    alone: float | None = None
    removed: float | None = None
    parts: tuple[CausePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionCauses:
    """The bubble of the ranks that share a position, in points by cause; negative where waiting is saved."""

    stages: tuple[int, ...]
    ranks: tuple[int, ...]
    bubble: float
    points: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCauses:
    """The part of the bubble that lies in a phase, in points by cause."""

    phase: Phase
    bubble: float
    points: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBubble:
    """The bubble of the steps of one size, and what their schedule owes, as in `Bubble`."""

    microbatches: int
    steps: tuple[int, ...]
    measured: float | None
    formula: float | None
    formula_source: Literal["closed-form", "simulated"] | None
    replay: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """Measured against theory; every share is of the pipeline window unless it says otherwise.

    `by_microbatches` has each size of steps of which there are two, where steps differ; all else is of the commonest.
    """

    measured: float | None
    lower: float | None
    upper: float | None
    spread: float | None
    formula: float | None
    formula_source: Literal["closed-form", "simulated"] | None
    replay: float | None
    gap: float | None
    ratio_to_ideal: float | None
    span: float | None
    window_ns: int | None
    trusted: bool
    attribution: Literal["ladder", "shapley"] = "ladder"
    causes: tuple[Cause, ...]
    by_position: tuple[PositionCauses, ...] = ()
    by_phase: tuple[PhaseCauses, ...] = ()
    by_microbatches: tuple[SizeBubble, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One replica of the model, its tensor-parallel ranks included."""

    pipeline: int
    ranks: tuple[int, ...]
    bubble: float | None
    window_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Means a micro-batch and step of a stage; bubble and phases of its ranks, None where no window is known."""

    stage: int
    chunk: int
    ranks: tuple[int, ...]
    forward_ns: int | None
    backward_ns: int | None
    weight_ns: int | None
    work_ns: int
    bubble: float | None
    warmup_ns: int | None
    steady_ns: int | None
    cooldown_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A rank's time outside the window, up to the step."""

    dp_ns: int
    optimizer_ns: int
    host_ns: int
    other_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Where a rank's time went, means a step: the parts add up to window_ns.

    `busy` and `useful` are shares of the step: any kernel ran, and something useful did.
    """

    rank: int
    stages: tuple[int, ...]
    pipeline: int | None
    window_ns: int
    compute_ns: int
    in_stage_comm_ns: int
    dp_ns: int
    pp_ns: int
    pp_transfer_ns: int | None
    pp_wait_ns: int | None
    host_ns: int
    other_ns: int
    bubble: float | None
    busy: float | None = None
    useful: float | None = None
    outside: Outside


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstBubble:
    """A long idle gap of a rank; `before` is the action that ends it."""

    rank: int
    stage: int | None
    step: int
    start_ns: int
    duration_ns: int
    before: str | None
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change that would help; `gain` is the share of a step that it saves at most, None where no replay tells.

    `change` is the what-if that was replayed, None where it is not one; `limits` is what stands against the gain.
    """

    code: str
    title: str
    detail: str
    gain_ns: int | None
    gain: float | None
    formula: str
    limits: str
    source: str
    change: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that an analysis found."""

    schema: Literal["bubblescope.report/1"] = "bubblescope.report/1"
    tool: Tool
    inputs: tuple[Input, ...]
    quality: Quality
    clock: Clock
    layout: Layout
    schedule: Schedule
    steps: tuple[Step, ...]
    bubble: Bubble
    throughput: Throughput | None = None
    pipelines: tuple[Pipeline, ...]
    stages: tuple[Stage, ...]
    ranks: tuple[Rank, ...]
    communication: tuple[Communication, ...]
    links: tuple[Link, ...]
    imbalance: Imbalance
    worst_bubbles: tuple[WorstBubble, ...]
    findings: tuple[Proposal, ...]
    metrics: tuple[Metric, ...] = ()

    @property
    def undecided(self) -> bool:
        """Whether no pipeline was identified although something points to one (finding `unlabelled`)."""
        return self.schedule.name == "none" and any(each.code == "unlabelled" for each in self.quality.findings)

    def self_check(self) -> None:
        """Raise ValueError unless the parts of every whole add up to it (`bubblescope.model.sums`)."""
        check(self)
