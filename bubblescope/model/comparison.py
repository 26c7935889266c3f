"""Two runs side by side, `bubblescope.comparison/1`: what changed, by how much, and whether that is more than noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Difference
from bubblescope.model.metrics import Part, Unit
from bubblescope.model.report import Tool

__all__ = ["Change", "Comparison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A number of both runs.

    Attributes:
        before, after: its values; None in a run that does not have it.
        change: after - before.
        noise: what the change must exceed to be more than noise, None where a run has fewer than two steps.
        chance: how likely so much change is by the noise of the steps alone, corrected for all numbers of its kind.
        certain: whether the change is more than noise and large enough to be seen; None where nothing tells.
    """

    metric: str
    by: Part | None
    of: str | None
    unit: Unit
    before: float | None
    after: float | None
    change: float | None
    noise: float | None
    chance: float | None
    certain: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs.

    Attributes:
        names: what the two are called.
        level: how likely it may be that any change of a kind is called certain where there is none.
        differences: what differs between them beside their numbers; `baseline` is the run before, `found` the one
            after.
        changes: the whole job first; those of parts ranked within each kind, the largest change first.
    """

    schema: Literal["bubblescope.comparison/1"] = "bubblescope.comparison/1"
    tool: Tool
    before: Baseline
    after: Baseline
    names: tuple[str, str]
    level: float
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
