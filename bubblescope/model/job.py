"""A job: the timelines of its ranks on one clock, and where each rank stands in the pipeline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["CallKind", "ClockFit", "Job", "Match", "Parties", "Pipeline", "Plan"]

Pipeline = tuple[tuple[int, ...], ...]
"""The ranks of one pipeline by position; tensor-parallel ranks share a position."""


class CallKind(NamedTuple):
    """Collectives of a rank that do not say whom they join, told apart by the rest: such calls have like members.

    `group` is its name, empty where it has none; `bytes` is -1 where nobody tells them; `asked` is whether actions
    asked for them.
    """

    group: str
    op: str
    bytes: int = -1
    asked: bool = False


Parties = Mapping[CallKind, tuple[tuple[int, ...], ...]]
"""The groups of recorded ranks that calls of a kind join, each rank in one of them at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How ranks are laid out. A degree is None where nothing tells it; `source` says what did.

    `pipelines` name the ranks of the pipelines that have a recorded one: recorded ones, and those that they name.
    Where nothing tells how many ranks a pipeline has, it is not `sized`, and more may follow the last one; then
    `world_size` and `pp` are the least that they can be.
    """

    world_size: int
    pp: int
    tp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    source: str
    pipelines: tuple[Pipeline, ...] = ()
    sized: bool = True
    findings: tuple[Finding, ...] = ()

    def place_of(self) -> dict[int, tuple[int, int]]:
        """(pipeline, position) of every rank that has one."""
        return {
            rank: (number, position)
            for number, pipeline in enumerate(self.pipelines)
            for position, ranks in enumerate(pipeline)
            for rank in ranks
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFit:
    """What to add to each rank's clock, so that all show the time of one, the job's.

    Attributes:
        method: what decided: `none`, `recorded`, `collectives` or `p2p`.
        offsets: nanoseconds to add to each rank's clock when the job's clock shows `origin`.
        drift_ppm: by how much more to add a second of the job's clock from then on, in microseconds; absent is 0.
        origin: moment on the job's clock.
        error: the largest of `errors` against the lowest rank, over those that exchange anything with another clock;
            None where nothing bounds one of them.
        clocks: the number of each rank's clock; absent is 0, that of the lowest.
        errors: (clock, clock) -> nanoseconds by which the two may be off against each other at any moment of their
            steps, either way; infinite where nothing bounds that.
        tied: the lowest rank that links connect each rank with; absent is itself.
        violations: pairs of intervals that contradict the order of cause and effect on the job's clock.
    """

    method: str
    offsets: Mapping[int, int]
    drift_ppm: Mapping[int, float] = field(default_factory=dict)
    origin: int = 0
    error: int | None = None
    clocks: Mapping[int, int] = field(default_factory=dict)
    errors: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((1, 1)), compare=False)
    tied: Mapping[int, int] = field(default_factory=dict)
    violations: int = 0

    def ties(self, ranks: Iterable[int]) -> bool:
        """Whether moments of these ranks can be compared: all can, or links connect these with each other."""
        return self.method != "none" or len({self.tied.get(rank, rank) for rank in ranks}) < 2

    def between(self, one: int, other: int) -> int | None:
        """Nanoseconds by which moments of two ranks may be off against each other; None where nothing bounds that."""
        off = float(self.errors[self.clocks.get(one, 0), self.clocks.get(other, 0)])
        return int(off) if math.isfinite(off) else None

    def apart(self, ranks: Iterable[int]) -> int:
        """The most nanoseconds that `between` tells of any two of these ranks."""
        own = sorted({self.clocks.get(rank, 0) for rank in ranks})
        errors = self.errors[np.ix_(own, own)]
        return int(np.max(errors, initial=0, where=np.isfinite(errors)))

    def corrected(self, rank: int, times: Times) -> Times:
        """Times of a rank's own clock on the job's clock, int64 nanoseconds; to the nanosecond where nothing drifts."""
        moved = times + self.offsets[rank]
        drift = self.drift_ppm.get(rank, 0.0)
        return moved + np.rint((moved - self.origin) * (drift * 1e-6)).astype(np.int64) if drift else moved


@dataclass(frozen=True, eq=False)
class Match(Columns):
    """For each message of a rank the action at this end (row of `Actions`), and rank and row of the other half.

    Each is -1 where it was not recorded or not found.
    """

    action: Ints = column(np.int32)
    partner: Ints = column(np.int32)
    row: Ints = column(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Timelines by rank, clocks already applied, stages already filled in.

    `placement` gives the stages of each position of the pipeline, first chunk first. `untold_chunks`
    is the number of chunks a rank where there are several and nothing tells their actions apart.
    `matches` pairs the messages of each rank; empty where nobody has paired them yet. `parties` are the members of
    collectives that do not name them, as far as the clocks tell.
    """

    timelines: Mapping[int, RankTimeline]
    plan: Plan
    clock: ClockFit
    placement: Mapping[int, tuple[int, ...]]
    untold_chunks: int | None = None
    matches: Mapping[int, Match] = field(default_factory=dict)
    parties: Parties = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def virtual(self) -> int:
        """Chunks a rank, v."""
        return max((len(stages) for stages in self.placement.values()), default=1)

    @property
    def last_stage(self) -> int:
        """Number of the last stage of the whole pipeline."""
        return max((max(stages, default=0) for stages in self.placement.values()), default=0)
