"""Why the bubble is what it is: the step replayed with one more of its troubles at a time.

The order of the actions is kept throughout. T(k) is the length of the k-th replay:

    T0  the ranks' mean useful time
    T1  every action as long as the mean of its kind, transfers free      T1 - T0      structural
    T2  times the profile of its stage                                    T2 - T1      imbalance
    T3  times the profile that the stage has in this replica              T3 - T2      straggler
    T4  every action as long as it was                                    T4 - T3      jitter
    T5  with the transfers as they were                                   T5 - T4      p2p
    T6  with the host's gaps, inside actions and before them              T6 - T5      host
                                                                          window - T6  residual

Differences of one chain add up to window - T0, so the shares add up to the measured bubble. Replaying
with selected changes is the method of ByteDance's straggler analysis, arXiv 2505.05713, section 3.

What a trouble costs depends on which others are there. The chain asks in one order; `shapley` asks in every
order and takes the mean (Shapley, A value for n-person games, 1953), with two brackets beside it: what the
trouble costs alone, and what would be saved without it.

All is kept by position and phase: what a position stands idle in each phase of a replay, less what it does in
the replay before, is what the trouble costs there. It can be negative: who is slow waits less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from math import comb, sqrt
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from bubblescope.analysis.cause_parts import Parts, parts_of
from bubblescope.analysis.means import by_step
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.rerun import TROUBLES, Rerun, mean_idle
from bubblescope.analysis.stages import phase_times
from bubblescope.analysis.study import Study
from bubblescope.analysis.variation import Variation
from bubblescope.model import report
from bubblescope.model.options import Attribution
from bubblescope.schedules.replay import Deadlock

__all__ = ["CAUSES", "LIMIT", "Reasons", "reasons"]

CAUSES = ("structural", *TROUBLES, "residual")
LIMIT = 0.05
"""Share of the window beyond which what the causes leave over makes them untrusted (arXiv 2505.05713, section 6)."""

PHASES: tuple[report.Phase, ...] = ("warmup", "steady", "cooldown")

Lengths = npt.NDArray[np.float64]
Replayed = Callable[[frozenset[str]], Lengths]
"""Length and useful time of each position's phases, (2, p, 3), in a replay with some troubles."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """The causes of a job's bubble, and the same by position, phase and step; all empty where nothing is explained."""

    causes: tuple[report.Cause, ...] = ()
    positions: tuple[report.PositionCauses, ...] = ()
    phases: tuple[report.PhaseCauses, ...] = ()
    steps: Mapping[int, dict[str, float]] = field(default_factory=dict)


def reasons(found: Study, measured: float | None, variation: Variation | None, how: Attribution) -> Reasons:
    """The causes, means over the used steps and their pipelines.

    None where a stage is unseen, where nothing tells a rank's chunks apart, and where the order deadlocks.

    `points` of the structural part are the formula, those of the others their share times 1 - formula, so that
    all but the structural part add up to measured - formula; the residual takes what rounding leaves.
    """
    if measured is None or variation is None:
        return Reasons()
    formula = found.theory.formula
    try:
        reruns = [Rerun.of(found, step, variation.profiles) for step in found.whole]
        told = [_told(rerun, step, how) for rerun, step in zip(reruns, found.whole, strict=True)]
    except Deadlock:
        return Reasons()
    spent = by_step(found.whole, [parts.spent for parts in told])
    shares = by_step(found.whole, [parts.spent / parts.window for parts in told])
    scale = 1.0 if formula is None else 1 - formula
    idle = mean_idle(shares)
    causes = _causes(mean_idle(spent).mean(axis=0), idle.mean(axis=0), measured, formula, _errors(idle * scale))
    if how == "shapley":
        causes = _bracketed(causes, by_step(found.whole, [parts.bracket for parts in told]).mean(axis=0) * scale)
    else:
        causes = _parted(causes, parts_of(found, reruns, variation), scale)
    whole = shares.mean(axis=0)
    return Reasons(
        causes=causes,
        positions=_positions(found, whole, scale),
        phases=_phases(whole, scale),
        steps=_steps(found, shares, scale),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """A step taken apart.

    `spent` is what each cause adds to the length and to the useful time of each position's phases, nanoseconds,
    (7, 2, p, 3); `bracket` what each trouble alone adds to the idle share of the window, and what is saved without
    it, (5, 2).
    """

    spent: Lengths
    window: int
    bracket: Lengths


def _told(rerun: Rerun, step: PipelineStep, how: Attribution) -> _Told:
    @cache
    def times(troubles: frozenset[str]) -> Lengths:
        return rerun.times(troubles)

    bare, full = times(frozenset()), times(frozenset(TROUBLES))
    costs = {"ladder": _chained, "shapley": _averaged}[how](times)
    bracket = np.zeros((len(TROUBLES), 2))
    if how == "shapley":
        pairs = [(times(frozenset({name})) - bare, full - times(frozenset(TROUBLES) - {name})) for name in TROUBLES]
        bracket = mean_idle(np.array(pairs)) / step.window.length
    return _Told(np.stack([bare, *costs, _stood(step) - full]), step.window.length, bracket)


def _chained(times: Replayed) -> list[Lengths]:
    """What each trouble adds to those before it."""
    chain = [times(frozenset(TROUBLES[:k])) for k in range(len(TROUBLES) + 1)]
    return list(np.diff(chain, axis=0))


def _averaged(times: Replayed) -> list[Lengths]:
    """What each trouble adds to those before it, the mean over all orders of the troubles."""
    return [_shapley(times, name) for name in TROUBLES]


def _shapley(times: Replayed, name: str) -> Lengths:
    others = [trouble for trouble in TROUBLES if trouble != name]
    total = np.zeros_like(times(frozenset()))
    for size in range(len(TROUBLES)):
        for chosen in map(frozenset, combinations(others, size)):
            total += (times(chosen | {name}) - times(chosen)) / (len(TROUBLES) * comb(len(others), size))
    return total


def _stood(step: PipelineStep) -> Lengths:
    """The same as it was; tensor-parallel ranks count as their mean."""
    of: dict[int, list[tuple[list[int], list[int]]]] = {}
    for rank, mine in step.steps.items():
        of.setdefault(step.position[rank], []).append(phase_times(mine, step.window_of(rank)))
    return np.stack([np.mean(rows, axis=0) for _, rows in sorted(of.items())], axis=1)


def _causes(
    lengths: Lengths, shares: Lengths, measured: float, formula: float | None, errors: Sequence[float | None]
) -> tuple[report.Cause, ...]:
    points = shares.copy()
    if formula is not None:
        points *= 1 - formula
        points[0] = formula
    points[-1] = measured - points[:-1].sum()
    shares[-1] = measured - shares[:-1].sum()
    rows = zip(CAUSES, lengths.tolist(), shares.tolist(), points.tolist(), (None, *errors[1:]), strict=True)
    return tuple(
        report.Cause(cause=name, ns=round(ns), share=share, points=part, error=error)
        for name, ns, share, part, error in rows
    )


def _errors(points: Lengths) -> list[float | None]:
    """Standard errors of means over the steps; None with fewer than two."""
    if len(points) < 2:
        return [None] * points.shape[1]
    errors: list[float | None] = (points.std(axis=0, ddof=1) / sqrt(len(points))).tolist()
    return errors


def _bracketed(causes: Sequence[report.Cause], bracket: Lengths) -> tuple[report.Cause, ...]:
    """The troubles with what they cost alone, and what would be saved without them, in points."""
    found = dict(zip(TROUBLES, bracket.tolist(), strict=True))
    return tuple(
        replace(c, alone=found[c.cause][0], removed=found[c.cause][1]) if c.cause in found else c for c in causes
    )


def _parted(causes: Sequence[report.Cause], parts: Parts, scale: float) -> tuple[report.Cause, ...]:
    """The causes with the parts that some of them have."""

    def part(name: str, lengths: Lengths, shares: Lengths) -> report.CausePart:
        share = float(shares.mean())
        return report.CausePart(
            part=name,
            ns=round(float(lengths.mean())),
            share=share,
            points=share * scale,
            error=_errors(shares[:, None] * scale)[0],
        )

    return tuple(
        replace(cause, parts=tuple(part(name, *values) for name, values in parts.get(cause.cause, {}).items()))
        for cause in causes
    )


def _positions(found: Study, shares: Lengths, scale: float) -> tuple[report.PositionCauses, ...]:
    held, pipelines = found.job.placement, found.job.plan.pipelines
    by_position = shares.sum(axis=-1)
    return tuple(
        report.PositionCauses(
            stages=held[at],
            ranks=tuple(sorted(rank for pipeline in pipelines for rank in pipeline[at])),
            **_part(by_position[:, :, at], scale),
        )
        for at in range(by_position.shape[-1])
    )


def _phases(shares: Lengths, scale: float) -> tuple[report.PhaseCauses, ...]:
    by_phase = shares.mean(axis=2)
    return tuple(report.PhaseCauses(phase=name, **_part(by_phase[:, :, k], scale)) for k, name in enumerate(PHASES))


def _steps(found: Study, shares: Lengths, scale: float) -> dict[int, dict[str, float]]:
    numbers = dict.fromkeys(step.step for step in found.whole)
    by_step = shares.sum(axis=-1).mean(axis=-1)
    return {n: _part(parts, scale)["points"] for n, parts in zip(numbers, by_step, strict=True)}


class _Part(TypedDict):
    bubble: float
    points: dict[str, float]


def _part(shares: Lengths, scale: float) -> _Part:
    """A part of the whole, from what each cause adds to its length and to its useful time: (7, 2).

    Of the length a cause counts as in the whole, (1 - formula) of it; who works more for it stands that much less
    idle. So the structural cause, which takes what makes the points add up, is the formula for every rank alike.
    """
    length, useful = shares.T
    points = scale * length - useful
    bubble = float(length.sum() - useful.sum())
    points[0] = bubble - points[1:].sum()
    return {"bubble": bubble, "points": dict(zip(CAUSES, points.tolist(), strict=True))}
