"""What each stage costs, and how long its ranks stand idle in each phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

import numpy as np

from bubblescope.analysis.partition import Window
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.steps import RankStep
from bubblescope.model import report
from bubblescope.model.actions import Kind
from bubblescope.model.job import Job

__all__ = ["holders", "phase_of", "phase_times", "phases", "stages"]


def phases(step: RankStep, window: Window) -> tuple[int, int, int]:
    """Idle nanoseconds of a rank in warm-up, steady state and cool-down; they add up to window - useful."""
    warm, steady, cool = (length - useful for length, useful in zip(*phase_times(step, window), strict=True))
    return warm, steady, cool


def phase_times(step: RankStep, window: Window) -> tuple[list[int], list[int]]:
    """How long warm-up, steady state and cool-down of a rank last, and how much of each is useful, in nanoseconds.

    Warm-up ends where its first backward starts, cool-down begins where its last forward ends.
    """
    edges = list(pairwise((window.start, *_borders(step, window), window.end)))
    useful = step.useful
    return [hi - lo for lo, hi in edges], [useful.clip(lo, hi).total for lo, hi in edges]


def phase_of(step: RankStep, window: Window, moment: int) -> report.Phase:
    """The phase that a moment lies in."""
    warm, cool = _borders(step, window)
    return "warmup" if moment < warm else "steady" if moment < cool else "cooldown"


def _borders(step: RankStep, window: Window) -> tuple[int, int]:
    forward = step.actions.kind == Kind.F
    backward = (step.actions.kind == Kind.B) | (step.actions.kind == Kind.I)
    warm = int(step.actions.start[backward].min(initial=window.end))
    cool = int(step.actions.end[forward].max(initial=window.start))
    warm = min(max(warm, window.start), window.end)
    return warm, min(max(cool, warm), window.end)


@dataclass(slots=True)
class _Sums:
    """What is gathered of a stage over steps and ranks."""

    lengths: dict[Kind, list[int]] = field(default_factory=dict)
    work: list[int] = field(default_factory=list)
    bubble: list[float] = field(default_factory=list)
    idle: list[tuple[int, int, int]] = field(default_factory=list)


def stages(job: Job, steps: Sequence[PipelineStep]) -> tuple[report.Stage, ...]:
    """Means a micro-batch and step of every stage that was recorded.

    Bubble and idle phases are told where the window of a pipeline is known.
    """
    sums: dict[int, _Sums] = {}
    for pipeline_step in steps:
        for step in pipeline_step.steps.values():
            _gather(sums, pipeline_step, step)
    held = holders(job)
    return tuple(_stage(stage, *held[stage], sums[stage]) for stage in sorted(sums) if stage in held)


def _gather(sums: dict[int, _Sums], pipeline_step: PipelineStep, step: RankStep) -> None:
    window = pipeline_step.window_of(step.rank)
    durations, idle = step.durations, phases(step, window)
    bubble = 1 - step.useful.total / window.length
    for stage in np.unique(step.actions.stage).tolist():
        mine = step.actions.stage == stage
        entry = sums.setdefault(stage, _Sums())
        for kind in np.unique(step.actions.kind[mine]).tolist():
            lengths = durations[mine & (step.actions.kind == kind)]
            entry.lengths.setdefault(Kind(kind), []).extend(lengths.tolist())
        entry.work.append(int(durations[mine].sum()))
        if pipeline_step.spanned:
            entry.bubble.append(bubble)
            entry.idle.append(idle)


def holders(job: Job) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The chunk that each stage is, and all ranks that hold it; where pipelines run both ways two positions do."""
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    for position, stages_held in job.placement.items():
        here = tuple(r for p in job.plan.pipelines if position < len(p) for r in p[position])
        for chunk, stage in enumerate(stages_held):
            first, ranks = found.get(stage, (chunk, ()))
            found[stage] = first, tuple(sorted({*ranks, *here}))
    return found


def _stage(stage: int, chunk: int, ranks: tuple[int, ...], sums: _Sums) -> report.Stage:
    mean = {kind: round(fmean(lengths)) for kind, lengths in sums.lengths.items()}
    idle = list(zip(*sums.idle, strict=True)) or [()] * 3
    return report.Stage(
        stage=stage,
        chunk=chunk,
        ranks=ranks,
        forward_ns=mean.get(Kind.F),
        backward_ns=mean.get(Kind.I, mean.get(Kind.B)),
        weight_ns=mean.get(Kind.W),
        work_ns=round(fmean(sums.work)),
        bubble=fmean(sums.bubble) if sums.bubble else None,
        warmup_ns=_mean(idle[0]),
        steady_ns=_mean(idle[1]),
        cooldown_ns=_mean(idle[2]),
    )


def _mean(lengths: Sequence[int]) -> int | None:
    return round(fmean(lengths)) if lengths else None
