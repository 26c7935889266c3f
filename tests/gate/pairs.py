"""Pairs of generated runs: the same job twice, or the second time with a bubble that is larger by a known amount."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev

from bubblescope.emit import Job, truth
from bubblescope.model.metrics import Metric

EXTRA = 0.03
JITTERS = (0.01, 0.02, 0.03, 0.04, 0.05)
JOB = Job(p=4, m=8, kernels=1, labels="pp", autograd=False, gpu_annotations=False)


def _late(job: Job, x: float) -> Job:
    return replace(job, host_gap_ns=round(x * 1e7))


def _far(job: Job, x: float) -> Job:
    return replace(job, p2p_ns=round(x * 1e7))


def _uneven(job: Job, x: float) -> Job:
    return replace(job, scale=(*(1.0 for _ in range(job.p - 1)), 1.0 + x))


PLANTS: dict[str, Callable[[Job, float], Job]] = {"host": _late, "p2p": _far, "imbalance": _uneven}
"""What makes a bubble larger."""


@dataclass(frozen=True)
class Pair:
    """Two runs of a job; the second one may be worse."""

    before: Job
    after: Job


@cache
def planted(name: str, jitter: float) -> Job:
    """The job with `EXTRA` more bubble than without, in the mean of many steps: jitter hides a part of it."""
    usual = replace(JOB, jitter=jitter)
    wanted = _long_run(usual) + EXTRA
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _long_run(PLANTS[name](usual, middle)) < wanted else (low, middle)
    return PLANTS[name](usual, high)


def _long_run(job: Job) -> float:
    return truth(replace(job, steps=60, seed=7)).bubble


def pairs(count: int, *, worse: bool, seed: int = 0) -> Iterator[Pair]:
    """Pairs of 3 to 20 steps whose actions vary by 1 to 5 %."""
    for k in range(count):
        draw = random.Random(seed + k)  # noqa: S311  no secret
        jitter, plant = draw.choice(JITTERS), draw.choice(list(PLANTS))
        usual = replace(JOB, jitter=jitter)
        after = planted(plant, jitter) if worse else usual
        first, second = (replace(job, steps=draw.randint(3, 20), seed=draw.randrange(10**6)) for job in (usual, after))
        yield Pair(first, second)


def true_bubble(job: Job) -> Metric:
    """The bubble as the generator knows it."""
    values = [step.bubble for step in truth(job).used]
    return Metric(metric="bubble", value=fmean(values), spread=stdev(values), steps=len(values))
