"""How much of a job's time uneven work costs: the numbers of ByteDance's straggler analysis, arXiv 2505.05713.

All pipelines of a step are replayed with free transfers; the slowest, and the rest of the step beside it, are the
step's time, T is the mean over the steps. T_ideal is the same with every action as long as the mean of its kind over
all steps, micro-batches, stages and replicas, and with the median rest: means for work, which a better balance keeps,
medians for communication, where what stands out is a fault (there, section 3).

    slowdown              S   = T / T_ideal
    slowest_stage_share   M_S = (T - T with the actions of the heaviest stage as in T_ideal) / (T - T_ideal)
    slowest_rank_share    M_W = likewise with the slowest 3 % of the ranks' places, at least one

There M_S takes the last stage, the rest of a step is replayed call by call, and a worker's slowness is estimated by
replays; here it is its useful time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Action
from bubblescope.schedules.replay import Deadlock, replay

__all__ = ["Slowdowns", "slowdowns"]

_WORST = 0.03
_LITTLE = 0.01
"""An excess over T_ideal below this share of it is too small to be divided up."""


class Slowdowns(NamedTuple):
    """S, M_S and M_W; None where there is nothing to replay, and the shares also where next to nothing is lost."""

    slowdown: float | None
    stage_share: float | None
    rank_share: float | None


def slowdowns(
    steps: Sequence[PipelineStep], beside: Mapping[int, int], last_stage: int, slowest: int | None
) -> Slowdowns:
    """The three numbers; `beside` is how long the rest of each step takes, `slowest` the heaviest stage."""
    try:
        return _slowdowns(steps, beside, last_stage, slowest) if steps else Slowdowns(None, None, None)
    except Deadlock:
        return Slowdowns(None, None, None)


def _slowdowns(
    steps: Sequence[PipelineStep], beside: Mapping[int, int], last_stage: int, slowest: int | None
) -> Slowdowns:
    ideal = means((row for step in steps for row in step.durations.items()), lambda action: action.kind)
    worst = _worst(steps)

    def length(step: PipelineStep, mended: Callable[[Action], bool]) -> float:
        durations = {a: ideal[a.kind] if mended(a) else ns for a, ns in step.durations.items()}
        return replay(step.replayed, durations, last_stage=last_stage, together=step.together).makespan

    def without_worst(step: PipelineStep, as_it_was: float) -> float:
        if step.pipeline not in worst:
            return as_it_was
        mended = {action for at in worst[step.pipeline] for action in step.replayed.get(at, ())}
        return length(step, mended.__contains__)

    own = [length(step, lambda _: False) for step in steps]
    alike: dict[object, float] = {}  # steps of the same orders are all the same with ideal actions

    def ideally(step: PipelineStep) -> float:
        key = frozenset(step.replayed.items()), step.together
        if key not in alike:
            alike[key] = length(step, lambda _: True)
        return alike[key]

    extra = fmean(beside.values())
    time, best = _time(steps, own) + extra, _time(steps, [ideally(step) for step in steps]) + median(beside.values())
    if time - best <= _LITTLE * best:
        return Slowdowns(time / best if best else None, None, None)
    stage = _time(steps, [length(step, lambda action: action.stage == slowest) for step in steps]) + extra
    rank = _time(steps, [without_worst(step, length) for step, length in zip(steps, own, strict=True)]) + extra
    return Slowdowns(time / best, (time - stage) / (time - best), (time - rank) / (time - best))


def _time(steps: Sequence[PipelineStep], makespans: Sequence[float]) -> float:
    """The time of all pipelines a step: the slowest counts."""
    longest: dict[int, float] = {}
    for step, length in zip(steps, makespans, strict=True):
        longest[step.step] = max(longest.get(step.step, 0.0), length)
    return fmean(longest.values())


def _worst(steps: Sequence[PipelineStep]) -> Mapping[int, frozenset[int]]:
    """Positions of the slowest ranks' places, by pipeline."""
    useful: dict[tuple[int, int], list[float]] = {}
    for step in steps:
        for position, length in step.useful_by_position.items():
            useful.setdefault((step.pipeline, position), []).append(length)
    slowest = sorted(useful, key=lambda place: -fmean(useful[place]))[: max(1, int(_WORST * len(useful)))]
    return {pipeline: frozenset(at for line, at in slowest if line == pipeline) for pipeline, _ in slowest}
