"""A run in a few kB, `bubblescope.baseline/1`: what it was, its numbers, and how much its steps differ.

Made to be committed: it holds no path, no time of day and no name from a trace but those of its GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bubblescope.model.metrics import Metric, Part
from bubblescope.model.report import Tool
from bubblescope.model.writing import counted

__all__ = ["Baseline", "Fingerprint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a run was: two that differ in it may not be comparable. A degree is None where nothing told it.

    `also` are schedules whose order is the same; `recorded` counts the ranks of `world_size` that were; `steps` are
    those that the means take; `attribution` says how the bubble is divided among causes.
    """

    schedule: str
    also: tuple[str, ...]
    pp: int | None
    tp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    virtual: int
    microbatches: int | None
    world_size: int | None
    recorded: int
    devices: tuple[str, ...]
    formats: tuple[str, ...]
    reconstruction: str | None
    attribution: str
    steps: int

    @property
    def missing(self) -> int | None:
        """Ranks that were not recorded; None where nothing tells how many there are."""
        return None if self.world_size is None else self.world_size - self.recorded

    @property
    def ranks(self) -> str:
        """`4 ranks`, or `an unknown number of ranks`."""
        return "an unknown number of ranks" if self.world_size is None else counted(self.world_size, "rank")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A run as gates and comparisons take it.

    `doubts` are the numbers of the report that were degraded or unusable, each with the reasons; `reason` is why
    somebody accepted these values.
    """

    schema: Literal["bubblescope.baseline/1"] = "bubblescope.baseline/1"
    tool: Tool
    reason: str | None = None
    fingerprint: Fingerprint
    doubts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: tuple[Metric, ...]

    def metric(self, name: str, by: Part | None = None, of: str | None = None) -> Metric | None:
        """The number of that name, None where the run does not have it."""
        wanted = (name, by, of)
        return next((each for each in self.metrics if (each.metric, each.by, each.of) == wanted), None)

    def parts(self, name: str, by: Part) -> tuple[Metric, ...]:
        """The number of that name of every such part."""
        return tuple(each for each in self.metrics if (each.metric, each.by) == (name, by))
