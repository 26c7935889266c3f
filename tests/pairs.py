"""Pairs of generated runs, one with a change and one without it, to hold forecasts against.

    for pair in pairs():
        assert missed(pair) == []

The generator makes the change; the forecast sees the traces of the run without it alone. What the generator knows, how
long the steps of both are, is the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from bubblescope import engine
from bubblescope.emit import Job, truth, write
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options
from bubblescope.model.whatif import WhatIf

__all__ = ["Pair", "forecast", "missed", "pairs", "step_ns"]

STEPS = 11
NEAR, SAME = 0.02, 0.01
"""How near a forecast must come to the step time, and the replay of the unmodified run to its own."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A job, what changes, in words and in fact."""

    job: Job
    change: str
    changed: Job

    def __str__(self) -> str:
        job = self.job
        extra = [name for name in _EXTRAS if getattr(job, name) != getattr(_PLAIN, name)]
        return " ".join((f"{job.schedule} p{job.p} m{job.m} v{job.v} d{job.d}", *extra, "->", self.change))


_PLAIN = Job()
_EXTRAS = ("scale", "jitter", "p2p_ns", "host_gap_ns", "straggler", "fused", "slow", "labels", "recorder")


def step_ns(job: Job) -> float:
    """Nanoseconds of a step, the mean over those that means are taken over."""
    return fmean(step.end - step.start for step in truth(job).used)


def forecast(pair: Pair) -> WhatIf:
    """What is forecast from the traces of the run without the change."""
    with TemporaryDirectory() as folder:
        write(pair.job, Path(folder))
        return engine.whatif([folder], [Changes.parse(pair.change)], Options(jobs=1))


def missed(pair: Pair) -> list[str]:
    """What a forecast gets wrong; empty where it is right."""
    told, was, is_ = forecast(pair), step_ns(pair.job), step_ns(pair.changed)
    if told.forecasts[0].run is None:
        return [f"{told.forecasts[0].problem}"]
    found = told.forecasts[0].run.step_ns
    wrong = [] if abs(found / is_ - 1) <= NEAR else [f"step {found / is_ - 1:+.2%} of {is_ / 1e6:.1f} ms"]
    replayed = told.replayed.step_ns / was - 1
    wrong += [] if max(abs(replayed), told.error) <= SAME else [f"replay {replayed:+.2%}, error {told.error:.2%}"]
    bubble = truth(pair.changed).bubble
    off = told.forecasts[0].run.bubble - bubble
    return wrong + ([] if abs(off) <= NEAR else [f"bubble {100 * off:+.2f} points of {100 * bubble:.1f}"])


SPARE = {"compress": False, "kernels": 2, "steps": STEPS, "ranks_a_host": 64, "dp_ns": 1_000_000}
NOISE = {"jitter": 0.03, "p2p_ns": 300_000, "host_gap_ns": 150_000}


def pairs() -> Iterator[Pair]:
    """All of them."""
    yield from _schedules()
    yield from _microbatches()
    yield from _chunks()
    yield from _balances()
    yield from _transfers()
    yield from _slow_ranks()
    yield from _other_sizes()


def _schedules() -> Iterator[Pair]:
    for job, names in (
        (Job(**SPARE, **NOISE, p=4, m=8), ("gpipe", "zb-h1", "eager-1f1b")),
        (Job(**SPARE, **NOISE, schedule="gpipe", p=3, m=6, scale=(1.3, 1.0, 0.9)), ("1f1b", "zb-h2")),
        (Job(**SPARE, **NOISE, schedule="zb-h1", p=4, m=8, weight_fraction=0.4), ("1f1b", "zb-h2")),
        (Job(**SPARE, **NOISE, schedule="interleaved-1f1b", p=2, m=6, v=2), ("looped-bfs", "interleaved-zb")),
    ):
        yield from (Pair(job, f"schedule={name}", replace(job, schedule=name)) for name in names)


def _microbatches() -> Iterator[Pair]:
    for job, counts in (
        (Job(**SPARE, **NOISE, p=4, m=8), (4, 12, 24)),
        (Job(**SPARE, **NOISE, schedule="zb-h1", p=3, m=6, labels="none"), (9, 18)),
        (Job(**SPARE, **NOISE, schedule="interleaved-1f1b", p=2, m=4, v=2), (8, 10)),
        (Job(**SPARE, p=3, m=6, fused=True, p2p_ns=600_000), (3, 12)),
    ):
        yield from (Pair(job, f"m={m}", replace(job, m=m)) for m in counts)


def _chunks() -> Iterator[Pair]:
    one = Job(**SPARE, **NOISE, p=4, m=8)
    yield Pair(one, "v=2", replace(one, schedule="interleaved-1f1b", v=2))
    yield Pair(one, "v=4", replace(one, schedule="interleaved-1f1b", v=4))
    two = replace(one, schedule="interleaved-1f1b", v=2)
    yield Pair(two, "v=1", replace(two, schedule="1f1b", v=1))
    uneven = replace(one, p=2, scale=(1.0, 1.4))
    yield Pair(uneven, "v=2", replace(uneven, schedule="interleaved-1f1b", v=2, scale=(1.0, 1.0, 1.4, 1.4)))
    yield Pair(one, "schedule=zb-v", replace(one, schedule="zb-v", v=2))


def _balances() -> Iterator[Pair]:
    for schedule, p, m, v, scale in (
        ("1f1b", 4, 8, 1, (1.0, 1.0, 1.0, 1.5)),
        ("1f1b", 4, 8, 1, (1.4, 1.0, 1.0, 1.0)),
        ("gpipe", 3, 6, 1, (0.8, 1.0, 1.3)),
        ("interleaved-1f1b", 2, 4, 2, (1.0, 1.1, 1.2, 1.6)),
        ("zb-h1", 4, 8, 1, (1.0, 1.2, 1.0, 1.3)),
    ):
        job = Job(**SPARE, **NOISE, schedule=schedule, p=p, m=m, v=v, scale=scale)
        even = (fmean(scale),) * len(scale)
        yield Pair(job, "without=imbalance", replace(job, scale=even))


def _transfers() -> Iterator[Pair]:
    job = Job(**SPARE, p=4, m=8, p2p_ns=1_500_000, jitter=0.03)
    yield Pair(job, "p2p=free", replace(job, p2p_ns=0))
    yield Pair(job, "p2p=0.25", replace(job, p2p_ns=375_000))
    yield Pair(job, "p2p=2", replace(job, p2p_ns=3_000_000))
    fused = replace(job, fused=True)
    yield Pair(fused, "p2p=free", replace(fused, p2p_ns=0))
    eager = Job(**SPARE, schedule="eager-1f1b", p=2, m=12, fused=True, p2p_ns=500_000)
    yield Pair(eager, "schedule=gpipe", replace(eager, schedule="gpipe"))
    split = replace(job, schedule="zb-h1")
    yield Pair(split, "p2p=0.5", replace(split, p2p_ns=750_000))
    late = replace(job, host_gap_ns=800_000)
    yield Pair(late, "without=host", replace(late, host_gap_ns=0))


def _slow_ranks() -> Iterator[Pair]:
    for schedule, p, m, rank in (("1f1b", 3, 6, 4), ("gpipe", 2, 4, 0), ("zb-h1", 3, 6, 8), ("1f1b", 4, 8, 11)):
        job = Job(**SPARE, **NOISE, schedule=schedule, p=p, m=m, d=3, straggler=((rank, 1.4),))
        yield Pair(job, "without=straggler", replace(job, straggler=()))
    yield Pair(job, "m=16", replace(job, m=16))
    yield Pair(job, "schedule=zb-v", replace(job, schedule="zb-v", v=2))


def _other_sizes() -> Iterator[Pair]:
    job = Job(**SPARE, **NOISE, p=4, m=8)
    half = {"forward_ns": job.forward_ns // 2, "backward_ns": job.backward_ns // 2, "p2p_ns": job.p2p_ns // 2}
    yield Pair(job, "microbatch=0.5", replace(job, m=16, **half))
    twice = {"forward_ns": job.forward_ns * 2, "backward_ns": job.backward_ns * 2, "p2p_ns": job.p2p_ns * 2}
    yield Pair(job, "microbatch=2", replace(job, m=4, **twice))
    yield Pair(job, "tp=2", replace(job, p=2, t=2, tp_share=0.0))
