"""The measured steps of a pipeline as tables: a row a step, a column an action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median_low

import numpy as np
import numpy.typing as npt

from bubblescope.analysis.means import means
from bubblescope.analysis.pauses import host_pauses
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.profiles import Place, Profiles
from bubblescope.analysis.rerun import Rerun
from bubblescope.analysis.study import Study
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.timeline import Messages
from bubblescope.schedules.replay import NEVER, Course

__all__ = ["Measured", "before", "measured"]

Table = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """The steps of one pipeline.

    Tables have a row a step and a column an action, and NaN where nothing is known.

    Attributes:
        steps: in time order.
        column: of each action.
        position: of each action.
        profiles: of the stages, common and the pipeline's own.
        quick: by kind, the mean of the replicas' usual ranks over the mean of this pipeline's; 1 where no rank is slow.
        mean: of the action's kind in the step, nanoseconds.
        imbalance: what the stage's profile makes of it, a factor.
        jitter: what is left of the action's own time, beside the profiles; a factor.
        data: the part of `jitter` that is the length of the data; a factor.
        pause: nanoseconds of the action in which it paused.
        inside: nanoseconds of gaps within it.
        late: nanoseconds that the host kept it waiting after its input came.
        late_pause: the part of `late`, then of `inside`, that is a pause.
        transfer: nanoseconds that its input moved.
        posted: nanoseconds from the end of the action before to when its input was asked for.
        blocking: by step, whether a send holds its rank.
        fused: whether kernels hold several messages, which then end together.
        in_stage: by position, the share of useful time that is exposed communication of the stage itself.
    """

    steps: tuple[PipelineStep, ...]
    column: Mapping[Action, int]
    position: Mapping[Action, int]
    profiles: Profiles
    quick: Mapping[Kind, float]
    mean: Table
    imbalance: Table
    jitter: Table
    data: Table
    pause: Table
    inside: Table
    late: Table
    late_pause: Table
    transfer: Table
    posted: Table
    blocking: tuple[bool, ...]
    fused: bool
    in_stage: Mapping[int, float]

    @property
    def pipeline(self) -> int:
        """Its number."""
        return self.steps[0].pipeline

    @property
    def orders(self) -> Mapping[int, Order]:
        """Of the first step, by position."""
        return self.steps[0].replayed

    def straggler(self, position: int, stage: int, kind: Kind) -> float:
        """By how much a position takes longer for a stage than the common profile says; 1 where it is not known."""
        own, common = self.profiles.own[self.pipeline], self.profiles.common
        place = position, stage, kind
        return own[place] / common[place] if place in own and common.get(place) else 1.0

    @cached_property
    def before(self) -> dict[Action, Action | None]:
        """The action before each on its rank."""
        return before(self.orders)

    @cached_property
    def edges(self) -> dict[tuple[int, int], float]:
        """How long a transfer between two positions usually takes: the median.

        Of kernels that hold several messages the least: the others also tell how long they waited for each other.
        """
        known: dict[tuple[int, int], list[Table]] = {}
        course = Course(dict(sorted(self.orders.items())), last_stage=max(a.stage for a in self.column))
        for k, source in enumerate(course.source):
            if source != NEVER and course.rank[source] != course.rank[k]:
                times = self.transfer[:, self.column[course.actions[k]]]
                known.setdefault((course.rank[source], course.rank[k]), []).append(times)
        joined = {edge: np.concatenate(times) for edge, times in known.items()}
        seen = {edge: of[~np.isnan(of)] for edge, of in joined.items()}
        return {edge: float(of.min() if self.fused else np.median(of)) for edge, of in seen.items() if len(of)}

    @cached_property
    def usual_posting(self) -> dict[int, float]:
        """The median by position, and that of all under -1."""
        of: dict[int, list[Table]] = {-1: [np.zeros(0)]}
        for action, column in self.column.items():
            times = self.posted[:, column]
            for key in (self.position[action], -1):
                of.setdefault(key, []).append(times[~np.isnan(times)])
        joined = {key: np.concatenate(times) for key, times in of.items()}
        return {
            key: float(np.median(times)) if len(times) else 0.0
            for key, times in joined.items()
            if len(times) or key < 0
        }


def measured(found: Study, steps: Sequence[PipelineStep]) -> tuple[Measured, ...]:
    """The tables of every pipeline among some steps. Raises Deadlock where an order cannot run."""
    by_pipeline: dict[int, list[PipelineStep]] = {}
    for step in steps:
        by_pipeline.setdefault(step.pipeline, []).append(step)
    assert found.variation is not None
    paused, quick = host_pauses(found), _quick(by_pipeline, found.variation.profiles)
    return tuple(_pipeline(found, mine, paused, quick[number]) for number, mine in sorted(by_pipeline.items()))


def _quick(steps: Mapping[int, Sequence[PipelineStep]], profiles: Profiles) -> dict[int, dict[Kind, float]]:
    """How much less the actions of each kind would take on the mean were no rank of the pipeline slow.

    A profile has a mean of 1, so that what is slow on one rank is missing on the others: this is what it is off by.
    """
    own = {
        number: means((row for step in mine for row in step.durations.items()), profiles.place)
        for number, mine in steps.items()
    }
    places = {place for lengths in own.values() for place in lengths}
    usual = {place: median_low([lengths[place] for lengths in own.values() if place in lengths]) for place in places}
    result = {}
    for number, lengths in own.items():
        slow = {place[-1] for place in lengths if profiles.own[number][place] != profiles.common[place]}
        result[number] = {
            kind: _sum(usual, lengths, kind) / _sum(lengths, lengths, kind) if kind in slow else 1.0 for kind in Kind
        }
    return result


def _sum(of: Mapping[Place, float], places: Iterable[Place], kind: Kind) -> float:
    return sum(of[place] for place in places if place[-1] == kind)


def _pipeline(
    found: Study,
    steps: Sequence[PipelineStep],
    paused: Mapping[tuple[int, int], Mapping[Action, float]],
    quick: Mapping[Kind, float],
) -> Measured:
    variation = found.variation
    assert variation is not None
    reruns = [Rerun.of(found, step, variation.profiles) for step in steps]
    position = {action: at for step in steps for at, order in sorted(step.replayed.items()) for action in order}
    column = {action: k for k, action in enumerate(position)}
    places = [np.array([column[action] for action in rerun.course.actions]) for rerun in reruns]

    def table(of: Callable[[Rerun], Table]) -> Table:
        rows = np.full((len(steps), len(column)), np.nan)
        for row, rerun, place in zip(rows, reruns, places, strict=True):
            row[place] = of(rerun)
        return rows

    def sparse(of: Sequence[Mapping[Action, float]], absent: float) -> Table:
        rows = np.full((len(steps), len(column)), absent)
        for row, mine in zip(rows, of, strict=True):
            known = [action for action in mine if action in column]
            row[[column[action] for action in known]] = [mine[action] for action in known]
        return rows

    keys = [(step.pipeline, step.step) for step in steps]
    return Measured(
        steps=tuple(steps),
        column=column,
        position=position,
        profiles=variation.profiles,
        quick=quick,
        mean=table(lambda rerun: rerun.mean),
        imbalance=table(lambda rerun: rerun.factors["imbalance"]),
        jitter=table(lambda rerun: rerun.factors["jitter"]),
        data=sparse([_factors(variation.kept.get(key, {}), column) for key in keys], 1.0),
        pause=sparse([variation.pauses.get(key, {}) for key in keys], 0.0),
        inside=table(lambda rerun: rerun.inside),
        late=sparse([rerun.host for rerun in reruns], 0.0),
        late_pause=sparse([paused.get(key, {}) for key in keys], 0.0),
        transfer=sparse([_mapped(rerun.wire.transfer) for rerun in reruns], np.nan),
        posted=sparse([_mapped(rerun.wire.posted) for rerun in reruns], np.nan),
        blocking=tuple(rerun.wire.blocking for rerun in reruns),
        fused=any(_fused(found.views[rank].timeline.messages) for step in steps for rank in step.steps),
        in_stage=_in_stage(steps),
    )


def _factors(kept: Mapping[tuple[int, bool], float], column: Mapping[Action, int]) -> dict[Action, float]:
    """What the length of the data makes of each action."""
    return {a: kept.get((a.microbatch, a.kind == Kind.F), 1.0) for a in column} if kept else {}


def _mapped(times: float | Mapping[Action, float] | None) -> Mapping[Action, float]:
    return times if isinstance(times, Mapping) else {}


def _fused(messages: Messages) -> bool:
    """Whether a kernel holds several messages."""
    return len(np.unique(messages.kernel)) < len(messages)


def _in_stage(steps: Sequence[PipelineStep]) -> dict[int, float]:
    """Exposed communication over useful time, by position."""
    compute: dict[int, int] = {}
    useful: dict[int, int] = {}
    for step in steps:
        for rank, mine in step.steps.items():
            at = step.position[rank]
            compute[at] = compute.get(at, 0) + mine.compute.total
            useful[at] = useful.get(at, 0) + mine.useful.total
    return {at: 1 - compute[at] / total if total else 0.0 for at, total in useful.items()}


def before(orders: Mapping[int, Order]) -> dict[Action, Action | None]:
    """The action before each on its rank."""
    return {action: order[k - 1] if k else None for order in orders.values() for k, action in enumerate(order)}
