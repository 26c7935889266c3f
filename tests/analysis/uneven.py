"""Runs of 1f1b with times drawn at random and one thing planted, on timelines made without any file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bubblescope.analysis.study import Study, study
from bubblescope.model.actions import Action, Kind
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import Delays, replay
from tests.building import job, timeline

__all__ = ["drawn", "played", "studied"]

FORWARD, BACKWARD = 1e6, 2e6
Plant = Callable[[int, int, Action], float]


def played(
    *, p=4, m=8, replicas=1, steps=4, jitter=0.02, seed=0, tp=1, factor: Plant | None = None, late: Plant | None = None
) -> Job:
    """A job; `factor` and `late` (nanoseconds) tell of a step, a replica and an action what happened to it."""
    dice = np.random.default_rng(seed)
    orders = find("1f1b").orders(Shape(p, m))
    rows: dict[tuple[int, int], list[tuple]] = {(at, r): [] for at in range(p) for r in range(replicas)}
    borders, now = [], 0
    for step in range(steps):
        ends = []
        for replica in range(replicas):
            lengths = {
                a: (FORWARD if a.kind == Kind.F else BACKWARD)
                * dice.normal(1, jitter)
                * (factor or _one)(step, replica, a)
                for order in orders.values()
                for a in order
            }
            host = {a: ns for a in lengths if late is not None and (ns := late(step, replica, a))}
            run = replay(orders, lengths, last_stage=p - 1, delays=Delays(host=host))
            ends.append(run.makespan)
            for at, order in orders.items():
                times = [(str(a), now + round(run.start[a]), now + round(run.end[a]), step) for a in order]
                rows[at, replica] += times
        borders.append((step, now, now + round(max(ends)) + 1000))
        now = borders[-1][2]
    numbers = {place: [tp * k + i for i in range(tp)] for k, place in enumerate(rows)}
    timelines = [
        timeline(rank, actions=rows[place], steps=borders, host="node")
        for place, ranks in numbers.items()
        for rank in ranks
    ]
    return job(*timelines, pipelines=[[numbers[at, r] for at in range(p)] for r in range(replicas)])


def _one(*_) -> float:
    return 1.0


def studied(**job_of) -> Study:
    """The study of such a job, all its steps used."""
    return study(played(**job_of), Options())


def drawn(seed: int) -> dict[str, int | float]:
    """A shape, a number of steps and a jitter of up to 5 %."""
    dice = np.random.default_rng(10_000 + seed)
    return {
        "p": int(dice.choice([2, 3, 4])),
        "m": int(dice.choice([2, 4, 8])),
        "steps": int(dice.choice([1, 2, 3, 7])),
        "jitter": float(dice.uniform(0.001, 0.05)),
        "seed": seed,
    }
