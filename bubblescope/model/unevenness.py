"""What of the report tells how unevenly the work is spread: stages, stragglers, micro-batches, pauses."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DataLength",
    "Imbalance",
    "Pause",
    "Pauses",
    "SlowMicrobatch",
    "StageLoad",
    "Straggler",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoad:
    """A stage's work over the mean stage's; `chance` is how likely it is no heavier than the others, null untested."""

    stage: int
    ratio: float
    chance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank slower than the other replicas of its stage; `ranks` are all that share its place.

    `steps` are those in which it was slow.
    """

    rank: int
    ranks: tuple[int, ...]
    slowdown: float
    forward: float | None
    backward: float | None
    chance: float
    persistent: bool | None
    steps: tuple[int, ...]
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMicrobatch:
    """A micro-batch that is long on every rank, over the median one of its step."""

    pipeline: int
    step: int
    microbatch: int
    factor: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLength:
    """Whether micro-batches are long or short on every rank, forwards and backwards alike; the longest of them."""

    found: bool
    correlation: float | None
    chance: float | None
    spread: float | None
    persistent: bool | None
    count: int
    slowest: tuple[SlowMicrobatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A forward that paused, on that rank: its work, or the host before or inside it."""

    rank: int
    step: int
    action: str
    ns: int
    host: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Pauses of forwards only; `share` is their part of the ranks' windows, `longest` the worst few."""

    count: int
    share: float
    longest: tuple[Pause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """How unevenly the work is spread over stages, over replicas of a stage, and over micro-batches.

    `slowdown` and the two shares are those of arXiv 2505.05713.
    """

    stage_ratio: float | None
    slowest_stage: int | None
    replica_ratio: float | None
    stages: tuple[StageLoad, ...]
    stragglers: tuple[Straggler, ...]
    data_length: DataLength | None
    pauses: Pauses | None
    slowdown: float | None
    slowest_stage_share: float | None
    slowest_rank_share: float | None
    notes: tuple[str, ...]
