"""Runs with one planted cause of a known size, and what a report of them must say.

    for plant in plants(job):
        run = planted(plant, size=0.05)
        assert missed(run, analyzed(run.job)) == []

A cause's size is the bubble with it less that without it, of which the emitter's truth tells both. How strong it must
be for a size is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.errors import UsageError
from bubblescope.model.options import Options
from bubblescope.model.report import Report

__all__ = ["STEPS", "Plant", "Planted", "analyzed", "missed", "planted", "plants"]

STEPS = 11
"""The first is not used, which leaves ten."""

NEAR, LEAST = 0.15, 0.005
"""A cause must be found within this part of its size, or within half a point."""
STRAY = 0.01
"""What another cause may come to, beside twice its standard error."""

CLOSE = 1e-3
"""How near to the asked size is near enough: what it comes to is known all the same."""

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Plant:
    """A cause to plant in a job: `make` of a strength is the job with it, `bare` the job without it.

    `name` says what is planted, `cause` what the report calls it, `most` is the largest strength that makes sense.
    """

    name: str
    cause: str
    bare: Job
    make: Callable[[float], Job]
    most: float


@dataclass(frozen=True, slots=True)
class Planted:
    """A job with a plant, and by how much of the window the bubble is larger for it."""

    plant: Plant
    job: Job
    size: float


def planted(plant: Plant, size: float) -> Planted | None:
    """The plant as strong as that size takes; None where no strength does, or where a job cannot be."""
    try:
        bare = truth(plant.bare).bubble
        low, high = 0.0, plant.most
        job = plant.make(high)
        if truth(job).bubble - bare < size:
            return None
        for _ in range(30):
            middle = (low + high) / 2
            job = plant.make(middle)
            grown = truth(job).bubble - bare
            if abs(grown - size) < CLOSE:
                break
            low, high = (middle, high) if grown < size else (low, middle)
    except UsageError:
        return None
    return Planted(plant, job, truth(job).bubble - bare)


def plants(job: Job) -> Iterator[Plant]:
    """Everything that can be planted in a job that has no trouble yet."""
    yield from _uneven(job)
    if job.d > 2:
        yield from _slow_ranks(job)
        return
    yield from _varying(job)
    yield from _moving(job)
    yield from _late(job)


def _uneven(job: Job) -> Iterator[Plant]:
    dice = Random(job.stages)  # noqa: S311 - repeatable
    draws = [dice.random() for _ in range(job.stages)]
    for name, weights in {
        "last stage": [float(stage == job.stages - 1) for stage in range(job.stages)],
        "first stage": [float(stage == 0) for stage in range(job.stages)],
        "all stages": draws,
    }.items():
        yield Plant(name, "imbalance", job, _scaled(job, weights), 20.0)


def _scaled(job: Job, weights: list[float]) -> Callable[[float], Job]:
    return lambda by: replace(job, scale=tuple(1 + by * weight for weight in weights))


def _slow_ranks(job: Job) -> Iterator[Plant]:
    for name, rank in {"slow first": job.rank(0, 0, 0), "slow inner": job.rank(job.p // 2, job.d - 1, 0)}.items():
        yield Plant(name, "straggler", job, lambda by, rank=rank: replace(job, straggler=((rank, 1 + by),)), 30.0)


def _varying(job: Job) -> Iterator[Plant]:
    yield Plant("jitter", "jitter", job, lambda by: replace(job, jitter=by), 1.2)
    long = ("*.*[FBIW]1",)
    some = tuple(f"{step}.*[FBIW]{3 * step % job.m}" for step in range(0, job.steps, 2))
    for name, globs in {"long micro-batch": long, "long micro-batches of some steps": some}.items():
        yield Plant(
            name,
            "jitter",
            job,
            lambda by, globs=globs: replace(job, slow=tuple((glob, 1 + by) for glob in globs)),
            60.0,
        )


def _moving(job: Job) -> Iterator[Plant]:
    ahead = replace(job, recv_ahead=1)
    yield Plant("transfers", "p2p", job, lambda by: replace(job, p2p_ns=round(by * MS)), 60.0)
    yield Plant("transfers ahead", "p2p", ahead, lambda by: replace(ahead, p2p_ns=round(by * MS)), 60.0)
    if job.p > 2:
        others = (0,) * (job.p - 2)
        yield Plant("slow link", "p2p", job, lambda by: replace(job, edges_ns=(round(by * MS), *others)), 60.0)
    if job.schedule in {"1f1b", "interleaved-1f1b"}:  # others wait for each other, if only a little, in any case
        fused = replace(job, fused=True)
        yield Plant("fused transfers", "p2p", fused, lambda by: replace(fused, p2p_ns=round(by * MS)), 60.0)


def _late(job: Job) -> Iterator[Plant]:
    yield Plant("late hosts", "host", job, lambda by: replace(job, host_gap_ns=round(by * MS)), 60.0)
    yield Plant("holes", "host", job, lambda by: replace(job, kernel_gap_ns=round(by * MS)), 60.0)
    paused = replace(job, pause_chance=0.05)
    yield Plant("pauses", "host", job, lambda by: replace(paused, pause_ns=round(by * MS)), 1000.0)
    yield Plant(
        "late hosts of a rank",
        "host",
        job,
        lambda by: replace(job, host_gaps_ns=tuple(round(by * MS) * (pp == 1) for pp in range(job.p))),
        60.0,
    )


def analyzed(job: Job) -> Report:
    """The report of a job's traces."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze([folder], Options(jobs=1)).report


def missed(cause: str, size: float, report: Report) -> list[str]:
    """What a report gets wrong of a run in which a cause of that size was planted; empty where it is right."""
    found = {row.cause: row for row in report.bubble.causes}
    if cause not in found:
        return ["no causes"]
    points = found[cause].points
    off = abs(points - size) > max(NEAR * size, LEAST)
    wrong = [f"{cause}: {100 * points:.2f} points instead of {100 * size:.2f}"] if off else []
    return wrong + [
        f"{name}: {100 * row.points:.2f} points beside {cause}"
        for name, row in found.items()
        if name not in {"structural", cause} and abs(row.points) > STRAY + 2 * (row.error or 0.0)
    ]
