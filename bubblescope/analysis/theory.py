"""What the schedule owes: its closed form, and the replay of the measured run without communication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import numpy as np

from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import WHOLE, Action, Kind, Order
from bubblescope.model.job import Job
from bubblescope.schedules import registry
from bubblescope.schedules.detect import Difference, Verdict, detect, differences
from bubblescope.schedules.family import Costs, Family, Shape
from bubblescope.schedules.replay import Deadlock, replay

__all__ = ["Schedule", "Theory", "find_schedule", "theory"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of the job; `agreeing` of `seen` orders (a rank and step each) are the usual one.

    `alike` tells whether all stages show the same kinds of actions, as closed forms assume: a first
    stage without input gradients has less to do.
    """

    verdict: Verdict
    shape: Shape
    costs: Costs
    departures: tuple[tuple[int, Difference], ...]  # (position, difference)
    agreeing: int
    seen: int
    alike: bool

    @property
    def family(self) -> Family | None:
        """The schedule, if it is known."""
        return self.verdict.best.family if self.verdict.best is not None else None


@dataclass(frozen=True, slots=True)
class Theory:
    """Shares of the window: the closed form or its simulation, and the replay of the run; None where impossible."""

    formula: float | None
    source: str | None
    replay: float | None
    problem: str | None = None


def find_schedule(
    job: Job, steps: Sequence[PipelineStep], m: int, transfer: float, stated: str | None = None
) -> Schedule:
    """Name the schedule from the usual order of every position over steps and replicas.

    `transfer` is how long a message moves, as schedules that search for their order take it into account.
    """
    shape = _shape(job, steps, m)
    costs = replace(_costs(shape, steps), transfer=transfer)
    votes: dict[int, Counter[Order]] = {}
    for step in steps:
        for position, order in step.orders.items():
            votes.setdefault(position, Counter())[order] += 1
    usual = {position: _usual(count) for position, count in sorted(votes.items())}
    families = [registry.find(stated)] if stated else _possible(job)
    verdict = detect(usual, shape, families, costs)
    expected = verdict.best.expected if verdict.best is not None else {}
    departures = tuple((p, d) for p, order in expected.items() for d in differences(usual[p], order))
    agreeing = sum(count[usual[position]] for position, count in votes.items())
    seen = sum(count.total() for count in votes.values())
    return Schedule(verdict, shape, costs, departures, agreeing, seen, _alike(usual.values()))


def _usual(votes: Counter[Order]) -> Order:
    """The most common order; of several the longest, as the others lack something."""
    return max(votes, key=lambda order: (votes[order], len(order)))


def _alike(orders: Iterable[Order]) -> bool:
    kinds: dict[int, set[Kind]] = {}
    for action in chain.from_iterable(orders):
        kinds.setdefault(action.stage, set()).add(action.kind)
    return len({frozenset(found) for found in kinds.values()}) == 1


def _possible(job: Job) -> list[Family]:
    """The schedules that may have run: none whose steps overlap where each was seen to drain.

    Several steps, each with all of its own actions, have drained; so has one with an optimizer behind it.
    """
    drains = any(len(t.steps) > 1 or len(t.optimizer) for t in job.timelines.values())
    return [family for family in registry.FAMILIES if not (drains and family.asynchronous)]


def _shape(job: Job, steps: Sequence[PipelineStep], m: int) -> Shape:
    """p, m, v and slices; where a pipeline runs both ways a rank holds twice the stages that a micro-batch meets.

    Stages and slices are counted: the number in a single odd label says nothing about how many there are.
    """
    stages = {stage for held in job.placement.values() for stage in held}
    slices = {part for step in steps for s in step.steps.values() for part in np.unique(s.actions.slice).tolist()}
    return Shape(job.plan.pp, m, max(1, len(stages) // job.plan.pp), max(1, len(slices - {WHOLE})))


def _costs(shape: Shape, steps: Sequence[PipelineStep]) -> Costs:
    """Mean times of a micro-batch on a rank; where backwards are not split, half of one counts as W."""
    of = means((row for step in steps for row in step.durations.items()), lambda action: action.kind)
    full = of.get(Kind.B, of.get(Kind.I, 0.0) + of.get(Kind.W, 0.0))
    weight = of.get(Kind.W, full / 2)
    chunks = shape.v * shape.slices
    return Costs(of.get(Kind.F, 0.0) * chunks, of.get(Kind.I, max(0.0, full - weight)) * chunks, weight * chunks)


def theory(job: Job, steps: Sequence[PipelineStep], schedule: Schedule) -> Theory:
    """Closed form and replay, means over used steps and replicas that are seen whole."""
    family = schedule.family
    closed = family.bubble(schedule.shape, schedule.costs) if family is not None and schedule.alike else None
    try:
        runs = [(_owed(job, step), _replayed(job, step, step.durations)) for step in steps if step.seen]
    except Deadlock as deadlock:
        return Theory(closed, "closed-form" if closed is not None else None, None, f"the order deadlocks: {deadlock}")
    replayed = fmean(run for _, run in runs) if runs else None
    if closed is not None:
        return Theory(closed, "closed-form", replayed)
    if family is None or not runs:
        return Theory(None, None, replayed)
    return Theory(fmean(owed for owed, _ in runs), "simulated", replayed)


def _replayed(job: Job, step: PipelineStep, durations: Mapping[Action, float]) -> float:
    """The bubble of the step's own order with these durations and communication that takes no time."""
    orders = step.replayed
    makespan = replay(orders, durations, last_stage=job.last_stage, together=step.together).makespan
    useful = fmean(sum(durations[action] for action in order) for order in orders.values())
    return 1 - useful / makespan if makespan else 0.0


def _owed(job: Job, step: PipelineStep) -> float:
    """The bubble with every action of a kind as long as the mean of its kind: 1 - T0/T1 of docs/definitions.md."""
    durations = step.durations
    mean = means(durations.items(), lambda action: action.kind)
    return _replayed(job, step, {action: mean[action.kind] for action in durations})
