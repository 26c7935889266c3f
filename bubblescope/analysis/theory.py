"""What the schedule owes: its closed form, and the replay of the measured run without communication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.job import Job
from bubblescope.schedules import registry
from bubblescope.schedules.detect import Difference, Verdict, detect, differences
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.replay import Deadlock, replay

__all__ = ["Schedule", "Theory", "find_schedule", "theory"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of the job; `agreeing` of `seen` orders (a rank and step each) are the usual one."""

    verdict: Verdict
    shape: Shape
    departures: tuple[tuple[int, Difference], ...]  # (position, difference)
    agreeing: int
    seen: int

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


def find_schedule(job: Job, steps: Sequence[PipelineStep], m: int, stated: str | None) -> Schedule:
    """Name the schedule from the usual order of every position over steps and replicas."""
    shape = Shape(job.plan.pp, m, job.virtual)
    votes: dict[int, Counter[Order]] = {}
    for step in steps:
        for position, order in step.orders.items():
            votes.setdefault(position, Counter())[order] += 1
    usual = {position: count.most_common(1)[0][0] for position, count in sorted(votes.items())}
    families = [registry.find(stated)] if stated else registry.FAMILIES
    verdict = detect(usual, shape, families)
    expected = verdict.best.expected if verdict.best is not None else {}
    departures = tuple((p, d) for p, order in expected.items() for d in differences(usual[p], order))
    agreeing = sum(count.most_common(1)[0][1] for count in votes.values())
    return Schedule(verdict, shape, departures, agreeing, sum(count.total() for count in votes.values()))


def theory(job: Job, steps: Sequence[PipelineStep], schedule: Schedule) -> Theory:
    """Closed form and replay, means over used steps and replicas that are seen whole."""
    family = schedule.family
    closed = family.bubble(schedule.shape) if family is not None else None
    try:
        runs = [(_owed(job, step), _replayed(job, step, step.durations())) for step in steps if step.seen]
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
    orders = step.orders
    makespan = replay(orders, durations, last_stage=job.last_stage).makespan
    useful = fmean(sum(durations[action] for action in order) for order in orders.values())
    return 1 - useful / makespan if makespan else 0.0


def _owed(job: Job, step: PipelineStep) -> float:
    """The bubble with every action of a kind as long as the mean of its kind: 1 - T0/T1 of docs/definitions.md."""
    durations = step.durations()
    means = {kind: fmean(d for a, d in durations.items() if a.kind == kind) for kind in _kinds(durations)}
    return _replayed(job, step, {action: means[action.kind] for action in durations})


def _kinds(durations: Mapping[Action, float]) -> set[Kind]:
    return {action.kind for action in durations}
