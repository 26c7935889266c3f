"""How far data and numbers can be trusted: the part of the report that stands before all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.trace import Finding

__all__ = ["SYSTEMATIC", "Coverage", "Number", "NumberVerdict", "Quality", "RankCoverage", "Verdict"]

SYSTEMATIC = frozenset({"unlabelled", "told-by-kernels", "layout-assumed", "steps-assumed"})
"""Doubts about how a number is told, which are the same in every run of a job: comparing is as right as the number."""

Verdict = Literal["ok", "degraded", "unusable"]
Number = Literal[
    "bubble", "schedule", "formula", "causes", "stages", "ranks", "communication", "imbalance", "throughput"
]
"""What has a verdict of its own: parts of the report, `formula` and `causes` being those of its bubble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCoverage:
    """What the numbers rest on of one rank, as in `Coverage`; `left_out` is why it has no part in the pipeline's."""

    rank: int
    left_out: Literal["no-pipeline", "no-actions"] | None
    kernels: int
    launched: float | None
    inside_ns: int
    explained: float | None
    messages: int
    paired: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the numbers rest on: shares of what is counted beside them, null of nothing.

    `launched` kernels have a launch, `explained` compute inside the pipeline of used steps belongs to an action, and
    `paired` sends and receives of used steps have their other half.
    """

    kernels: int
    launched: float | None
    inside_ns: int
    explained: float | None
    messages: int
    paired: float | None
    ranks: tuple[RankCoverage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberVerdict:
    """Whether a number stands; `reasons` are codes of findings, or words of docs/definitions.md."""

    number: Number
    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How far the data can be trusted."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    coverage: Coverage | None = None
    numbers: tuple[NumberVerdict, ...] = ()
