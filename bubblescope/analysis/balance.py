"""How unevenly work is spread: over stages, over replicas of a stage, over micro-batches; and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median_low

import numpy as np

from bubblescope.analysis.compare import Pairs, above, pairs_of
from bubblescope.analysis.leftover import rest
from bubblescope.analysis.loads import Loads, loads
from bubblescope.analysis.pauses import pauses_of_host
from bubblescope.analysis.slowdowns import slowdowns
from bubblescope.analysis.stragglers import replica_ratio, stragglers
from bubblescope.analysis.study import Study
from bubblescope.analysis.variation import SlowMicrobatch, Variation
from bubblescope.model import report
from bubblescope.model.chance import holm

__all__ = ["imbalance", "stage_ratios"]

_WORST = 5
"""How many slow micro-batches and pauses are listed."""


def imbalance(found: Study, stages: Sequence[report.Stage], variation: Variation | None) -> report.Imbalance:
    """All of it; nothing where no stage was seen."""
    if not stages:
        return _NOTHING
    work = loads(found.steps)
    ratios = stage_ratios(work, [stage.stage for stage in stages])
    slowest = max(ratios, key=lambda stage: ratios[stage])
    whole = [] if found.job.untold_chunks else found.whole
    costs = slowdowns(whole, rest(found.views, whole), found.job.last_stage, slowest)
    return report.Imbalance(
        stage_ratio=ratios[slowest] or None,
        slowest_stage=slowest,
        replica_ratio=replica_ratio(work),
        stages=_stages(work, ratios),
        stragglers=stragglers(found.steps, work),
        data_length=_data_length(variation) if variation else None,
        pauses=_pauses(found, variation) if variation else None,
        slowdown=costs.slowdown,
        slowest_stage_share=costs.stage_share,
        slowest_rank_share=costs.rank_share,
        notes=_notes(work),
    )


_NOTHING = report.Imbalance(
    stage_ratio=None,
    slowest_stage=None,
    replica_ratio=None,
    stages=(),
    stragglers=(),
    data_length=None,
    pauses=None,
    slowdown=None,
    slowest_stage_share=None,
    slowest_rank_share=None,
    notes=(),
)


def stage_ratios(work: Loads, stages: Sequence[int]) -> dict[int, float]:
    """The work of each stage over the mean of the stages: over replicas the lower median, as in the profiles.

    One slow rank makes no heavy stage.
    """
    times = work.by_stage[:, [work.stages.index(stage) for stage in stages]].sum(axis=(3, 4))
    ran = times > 0
    means = times.sum(axis=2) / np.maximum(ran.sum(axis=2), 1)
    usual = [median_low(of[of > 0].tolist() or [0.0]) for of in means.T]
    mean = fmean(usual)
    return {stage: length / mean if mean else 0.0 for stage, length in zip(stages, usual, strict=True)}


def _stages(work: Loads, ratios: Mapping[int, float]) -> tuple[report.StageLoad, ...]:
    """Each stage against the mean of the others, all pipelines and steps (or their micro-batches) being pairs."""
    seen = [work.stages.index(stage) for stage in ratios]
    times = work.by_stage[:, seen].sum(axis=4)
    if _stage_pairs(work) == "steps":
        times = times.sum(axis=3, keepdims=True)
    tests = above(times.swapaxes(0, 1).reshape(len(seen), -1), against="mean")
    chances = holm([test.chance for test in tests])
    known = len(seen) > 1 and times[:, 0].size > 1
    return tuple(
        report.StageLoad(stage=stage, ratio=ratio or 1.0, chance=chance if known else None)
        for (stage, ratio), chance in zip(ratios.items(), chances, strict=True)
    )


def _stage_pairs(work: Loads) -> Pairs:
    return pairs_of(len(work.pipelines) * len(work.steps))


def _notes(work: Loads) -> tuple[str, ...]:
    notes = []
    if len(work.pipelines) == 1:
        notes.append("one replica: a slow rank and a heavy stage look alike")
    if pairs_of(len(work.steps)) != "steps":
        notes.append(
            "few steps: replicas are compared by micro-batches, and it is not tested whether a difference lasts"
        )
    return tuple(notes)


def _data_length(variation: Variation) -> report.DataLength:
    shared = variation.shared
    return report.DataLength(
        found=shared.found,
        correlation=shared.correlation,
        chance=shared.chance,
        spread=shared.spread,
        persistent=shared.persistent,
        count=len(shared.slow),
        slowest=tuple(map(_slow, shared.slow[:_WORST])),
    )


def _slow(one: SlowMicrobatch) -> report.SlowMicrobatch:
    return report.SlowMicrobatch(
        pipeline=one.pipeline,
        step=one.step,
        microbatch=one.microbatch,
        factor=one.factor,
        evidence=f"{one.factor:.3g} times the median micro-batch of its step on every stage, forwards and backwards "
        f"alike; p {one.chance:.1g} corrected for all micro-batches",
    )


def _pauses(found: Study, variation: Variation) -> report.Pauses:
    """Pauses in the work of actions, on all ranks that share it, and of the host beside it."""
    rows = [
        report.Pause(rank=rank, step=step.step, action=str(action), ns=round(ns), host=False)
        for step in found.whole
        for action, ns in variation.pauses.get((step.pipeline, step.step), {}).items()
        for rank, mine in step.steps.items()
        if action in mine.order
    ]
    rows += [
        report.Pause(rank=one.rank, step=one.step, action=str(one.action), ns=round(one.ns), host=True)
        for one in pauses_of_host(found)
    ]
    rows.sort(key=lambda pause: (-pause.ns, pause.rank, pause.step))
    windows = sum(step.window.length * len(step.steps) for step in found.steps)
    return report.Pauses(
        count=len(rows),
        share=sum(pause.ns for pause in rows) / windows if windows else 0.0,
        longest=tuple(rows[:_WORST]),
    )
