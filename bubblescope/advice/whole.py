"""Where the time of a whole step goes, and whether the bubble is what to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bubblescope.advice.context import Basis, Context, proposal, sentences
from bubblescope.model import writing as words
from bubblescope.model.report import Proposal, Rank, Report

__all__ = ["IN_STAGE", "MUCH", "REDUCTION", "Overhead", "Spent", "not_the_bubble", "spent"]

MUCH = 0.05
"""Share of a step below which neither the bubble nor an overhead is what to look at."""

Measure = Callable[[Rank], int]

REDUCTION = "exposed data-parallel communication"
IN_STAGE = "exposed tensor-, context- or expert-parallel communication"

_REDUCTION = (
    REDUCTION,
    "Reduce gradients and gather parameters while backwards and forwards still run, in buckets of a chunk each.",
)
_IN_STAGE = (
    IN_STAGE,
    "Overlap these collectives with compute, use sequence parallelism, or fewer ranks a stage.",
)
_PIPED: tuple[tuple[str, str, Measure], ...] = (
    (*_REDUCTION, lambda rank: rank.outside.dp_ns),
    (*_IN_STAGE, lambda rank: rank.in_stage_comm_ns),
    (
        "the optimizer",
        "Use a fused optimizer, and shard its states over the replicas.",
        lambda rank: rank.outside.optimizer_ns,
    ),
    (
        "idle time outside the pipeline",
        "Look between the steps: data loading, logging, checkpoints, and calls that wait for the GPU.",
        lambda rank: rank.outside.host_ns,
    ),
    (
        "other work outside the pipeline",
        "See what runs there: gradient norm, loss scaling, casts, collectives of groups without a description.",
        lambda rank: rank.outside.other_ns,
    ),
)
_ALONE: tuple[tuple[str, str, Measure], ...] = (
    (*_REDUCTION, lambda rank: rank.dp_ns),
    (*_IN_STAGE, lambda rank: rank.in_stage_comm_ns),
    (
        "waiting for the host",
        "Launch less and earlier: larger kernels and batches, more loader workers, no call that waits for the device.",
        lambda rank: rank.host_ns,
    ),
    (
        "exposed communication of groups that nobody describes",
        "Overlap it with compute; a description of each group (group_desc) would tell what it is for.",
        lambda rank: rank.other_ns + rank.pp_ns,
    ),
)
_COMPUTE = "Look at the kernels: larger matrices, fused kernels, lower precision, less recomputation."


@dataclass(frozen=True, slots=True)
class Overhead:
    """A part of a step that is neither bubble nor compute; `remedy` is what to do about it."""

    name: str
    remedy: str
    ns: float


@dataclass(frozen=True, slots=True)
class Spent:
    """Mean nanoseconds of a step's parts over the ranks of the slowest pipeline, the largest overhead first."""

    step: float
    bubble: float
    compute: float
    overheads: tuple[Overhead, ...]

    def of(self, name: str) -> float:
        """Nanoseconds of the overhead of that name."""
        return next(overhead.ns for overhead in self.overheads if overhead.name == name)

    @property
    def overshadowed(self) -> bool:
        """Whether an overhead is larger than the bubble, and large enough to look at."""
        return self.overheads[0].ns > self.bubble and self.overheads[0].ns >= MUCH * self.step


def spent(report: Report) -> Spent | None:
    """None where a pipeline has no bubble that could be measured, or where there may be one that nobody told.

    The ranks of the slowest pipeline wait for no other replica, so that what they spend on gradients is communication.
    """
    piped = report.schedule.name != "none"
    if (piped and report.bubble.measured is None) or any(f.code == "unlabelled" for f in report.quality.findings):
        return None
    ranks = _slowest(report) if piped else report.ranks
    step = _mean(ranks, _whole)
    if not step:
        return None
    overheads = [Overhead(name, remedy, _mean(ranks, of)) for name, remedy, of in (_PIPED if piped else _ALONE)]
    return Spent(
        step=step,
        bubble=_mean(ranks, lambda r: r.window_ns - r.compute_ns - r.in_stage_comm_ns) if piped else 0.0,
        compute=_mean(ranks, lambda rank: rank.compute_ns),
        overheads=tuple(sorted(overheads, key=lambda overhead: -overhead.ns)),
    )


def _slowest(report: Report) -> Sequence[Rank]:
    seen = {pipeline.window_ns: pipeline for pipeline in report.pipelines if pipeline.window_ns is not None}
    if not seen:
        return report.ranks
    return [rank for rank in report.ranks if rank.rank in seen[max(seen)].ranks]


def _whole(rank: Rank) -> int:
    rest = rank.outside
    return rank.window_ns + rest.dp_ns + rest.optimizer_ns + rest.host_ns + rest.other_ns


def _mean(ranks: Sequence[Rank], of: Measure) -> float:
    return sum(map(of, ranks)) / len(ranks) if ranks else 0.0


def not_the_bubble(context: Context) -> Iterator[Proposal]:
    """What is, where another part of the step is larger than the bubble or the bubble is below `MUCH` of it."""
    parts = spent(context.report)
    if parts is None or not (parts.overshadowed or parts.bubble < MUCH * parts.step):
        return
    largest = parts.overheads[0]
    compute = Overhead("compute", _COMPUTE, parts.compute)
    blamed = largest if largest.ns >= MUCH * parts.step else compute
    piped = context.report.schedule.name != "none"
    opening = "The bubble is not the problem" if piped else "No pipeline, so no bubble"
    yield proposal(
        "not-the-bubble",
        f"{opening}: {words.percent(blamed.ns / parts.step)} of a step is {blamed.name}",
        sentences(_spent(parts, blamed, piped), blamed.remedy),
        None,
        Basis(
            formula="each part over the whole step, means over the ranks of the slowest pipeline",
            limits="The shares say where the time is, not how much of it can be saved.",
            source="bubblescope itself",
        ),
    )


def _spent(parts: Spent, blamed: Overhead, piped: bool) -> str:
    """All parts of the step; without a pipeline the report begins with them, so only the time of the one to blame."""
    step = words.duration(parts.step)
    return f"A step of {step} is {_parts(parts)}." if piped else f"That is {words.duration(blamed.ns)} of {step}."


def _parts(parts: Spent) -> str:
    rows = [("compute", parts.compute), ("bubble", parts.bubble)]
    rows += [(overhead.name, overhead.ns) for overhead in parts.overheads if overhead.ns >= 0.01 * parts.step]
    return words.enumerate_words([f"{words.percent(ns / parts.step)} {name}" for name, ns in rows])
