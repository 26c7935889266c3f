"""Ordinary jobs, as frameworks record them: what may vary, what a report of them must say, and what nobody can know.

A job is drawn by a function that takes one of several values, so that hypothesis, a seeded generator and a sweep draw
from the same space:

    job = ordinary(Random(7).choice)
    assert complaints(job, analyzed(job)) == []
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.analysis import Analysis
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import find

__all__ = [
    "CLOSE",
    "SCHEDULES",
    "UNKNOWABLE",
    "Unknowable",
    "analyzed",
    "brief",
    "complaints",
    "kernels_only",
    "ordinary",
    "same_order",
    "tolerance",
    "unknowable",
    "whole",
]

Choose = Callable[[Sequence[Any]], Any]
"""Takes one of several values."""

SCHEDULES = (
    "1f1b",
    "gpipe",
    "eager-1f1b",
    "naive",
    "forward-only",
    "interleaved-1f1b",
    "looped-bfs",
    "zb-h1",
    "zb-h2",
    "zb-v",
)
CLOSE, NEAR = 0.006, 0.015
"""By how much the bubble may be off: told by labels or autograd, and told by kernels alone."""

SKEW_NS, DRIFT_PPM = 5_000_000, 20


def ordinary(choose: Choose, **fixed: Any) -> Job:
    """A job of the space; `fixed` fields are not drawn. What cannot be fused is not."""
    schedule = fixed.get("schedule") or choose(SCHEDULES)
    shape = choose(_shapes(schedule, fixed))
    d, t = fixed.get("d") or choose((1, 1, 2)), fixed.get("t") or choose((1, 1, 2))
    world = shape.p * d * t
    labels = choose(("none", "none", "pp", "torch") if schedule == "gpipe" else ("none", "none", "pp", "pp"))
    a_host = choose((1, 2, 8))
    drawn = {
        "schedule": schedule,
        "p": shape.p,
        "m": shape.m,
        "v": shape.v,
        "d": d,
        "t": t,
        "variant": choose((0, 1)) if schedule == "gpipe" else 0,
        "labels": labels,
        "autograd": choose((True, False)),
        "p2p_args": choose(("kernel", "op", "none")),
        "fused": choose((True, False)),
        "ranks_a_host": a_host,
        "skew_ns": _by_host(choose, world, a_host, range(-SKEW_NS, SKEW_NS + 1, 1000)),
        "drift_ppm": tuple(
            tenths / 10 for tenths in _by_host(choose, world, a_host, range(-10 * DRIFT_PPM, 10 * DRIFT_PPM + 1))
        ),
        "steps": choose((1, 2, 3)),
        "jitter": choose((0, 0.01, 0.05)),
        "p2p_ns": choose((0, 50_000, 200_000, 500_000)),
        "host_gap_ns": choose((0, 0, 100_000, 300_000)),
        "kernels": choose((2, 3, 5)),
        "missing": _missing(choose, world, t),
        "compress": False,
        "seed": choose(range(1 << 16)),
    }
    job = _runnable(drawn | fixed)
    if "kernel_names" not in fixed and kernels_only(job) and _splits(job):
        # As a rule the kernels of the two gradients have names of their own.
        job = replace(job, kernel_names=choose(("split", "split", "torch")))
    return job


def _shapes(schedule: str, fixed: dict[str, Any]) -> list[Shape]:
    family = find(schedule)
    shapes = [
        Shape(p, m, v)
        for p in ((fixed["p"],) if "p" in fixed else (2, 3, 4))
        for m in ((fixed["m"],) if "m" in fixed else (max(2, p), p + 1, 2 * p, 2 * p + 2, 3 * p))
        for v in (1, 2, 3)
    ]
    many = schedule not in {"interleaved-1f1b", "looped-bfs", "forward-only"}
    return [s for s in shapes if family.problem(s) is None and not (many and s.v != family.chunks)]


def _by_host(choose: Choose, world: int, a_host: int, values: range) -> tuple[int, ...]:
    """A value for each rank, alike on all ranks of a host; or none."""
    if not choose((True, True, False)):
        return ()
    each = [choose(values) for _ in range(0, world, a_host)]
    return tuple(each[rank // a_host] for rank in range(world))


def _missing(choose: Choose, world: int, t: int) -> tuple[int, ...]:
    """Ranks without a file: mostly none, else one, several anywhere, a whole stage of a replica, or all but one."""
    kind = choose(("none", "none", "none", "one", "some", "stage", "most"))
    one = choose(range(world))
    if kind == "one":
        return (one,)
    if kind == "some":
        return tuple(sorted({one, *(choose(range(world)) for _ in range(world // 2))} - {choose(range(world))}))
    if kind == "stage":
        return tuple(range(one // t * t, one // t * t + t))
    return tuple(rank for rank in range(world) if rank != one) if kind == "most" else ()


def _runnable(drawn: dict[str, Any]) -> Job:
    """The job; with its messages apart where fused ones would make its ranks wait for each other for ever."""
    job = Job(**{name: value for name, value in drawn.items() if name in Job.__dataclass_fields__})
    try:
        if job.fused:
            truth(job)
    except UsageError:
        job = replace(job, fused=False)
    return job


def analyzed(job: Job) -> Analysis:
    """The analysis of a job's traces."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze([folder], Options(jobs=1))  # starting processes takes longer


def brief(job: Job) -> str:
    """The job as an expression, less what is usual."""
    usual = Job()
    given = {field.name: getattr(job, field.name) for field in fields(job) if field.name not in {"orders", "together"}}
    return f"Job({', '.join(f'{name}={value!r}' for name, value in given.items() if value != getattr(usual, name))})"


def kernels_only(job: Job) -> bool:
    """Whether neither a label nor a number of autograd's tells its actions; without backwards autograd counts none."""
    return job.labels == "none" and not (job.autograd and job.trains)


def tolerance(job: Job) -> float:
    """By how much the bubble may be off."""
    return NEAR if kernels_only(job) else CLOSE


def present(job: Job) -> list[int]:
    """The ranks that have a file."""
    return [rank for rank in range(job.world) if rank not in job.missing]


def positions(job: Job, replica: int) -> set[int]:
    """The pipeline ranks of a replica of which a file tells."""
    return {job.place(rank).pp for rank in present(job) if job.place(rank).dp == replica}


def whole(job: Job) -> list[int]:
    """The replicas of which every stage has a file."""
    return [replica for replica in range(job.d) if len(positions(job, replica)) == job.p]


def true_bubble(job: Job, replicas: Sequence[int]) -> float:
    """The mean over the used steps and some replicas."""
    return fmean(step.pipelines[replica].bubble for step in truth(job).used for replica in replicas)


def same_order(job: Job, other: str) -> bool:
    """Whether the other schedule has an order that is the job's on the ranks present."""
    found = find(other)
    seen = {job.place(rank).pp for rank in present(job)}
    if found.problem(job.shape) is not None:
        return False
    mine = next(variant for k, variant in enumerate(job.family.variants(job.shape, EVEN)) if k == job.variant)
    shown = _joined if job.labels == "none" else tuple
    return any(
        all(shown(variant.order(rank)) == shown(mine.order(rank)) for rank in seen)
        for variant in found.variants(job.shape, EVEN)
    )


def _joined(order: Order) -> Order:
    """An order with the two halves of a backward as one, where they follow each other: without labels they look so."""
    joined: list[Action] = []
    for action in order:
        if action.kind == Kind.W and joined and joined[-1] == action._replace(kind=Kind.I):
            joined[-1] = action._replace(kind=Kind.B)
        else:
            joined.append(action)
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Unknowable:
    """What some traces cannot tell, and why: there a report may leave `spared` open, and must not make it up."""

    name: str
    why: str
    when: Callable[[Job], bool]
    spared: frozenset[str]


def _splits(job: Job) -> bool:
    """Whether its backwards are split."""
    return Kind.W in job.kinds


def _untold(job: Job) -> bool:
    return job.labels == "none"


def _no_end_seen(job: Job) -> bool:
    """Whether neither the first nor the last pipeline rank has a file in any replica."""
    return not any(positions(job, replica) & {0, job.p - 1} for replica in range(job.d))


def _tied(job: Job, replica: int) -> bool:
    """Whether the same tensor-parallel rank of every stage of a replica has a file."""
    mine = [job.place(rank) for rank in present(job) if job.place(rank).dp == replica]
    return any(len({place.pp for place in mine if place.tp == lane}) == job.p for lane in range(job.t))


def _peers_alike(job: Job) -> bool:
    """Whether all chunks of an inner rank have the same neighbours, or nothing names them."""
    return job.schedule != "zb-v" or (job.fused and job.p2p_args == "none")


UNKNOWABLE = (
    Unknowable(
        "inner ranks of a chunked job",
        "each of its forwards receives from the same rank and sends to the same rank, whichever chunk it is of: "
        "v chunks of m micro-batches leave the same events as one chunk of v m",
        lambda job: _untold(job) and job.v > 1 and _no_end_seen(job) and _peers_alike(job),
        frozenset({"schedule", "m", "v", "interval"}),
    ),
    Unknowable(
        "inner ranks that may be those of a chunked job",
        "forwards alone, and gpipe whose backwards come in reverse, are the same events as more chunks of fewer "
        "micro-batches",
        lambda job: (
            _untold(job)
            and job.v == 1
            and _no_end_seen(job)
            and (not job.trains or job.variant == 1 or (kernels_only(job) and job.schedule == "gpipe"))
        ),
        frozenset({"schedule", "m", "interval"}),
    ),
    Unknowable(
        "chunks by kernels alone",
        "kernels link no backward to its forward: with stages unseen, or with few micro-batches, the kinds of the "
        "actions and the numbers of messages fit several schedules",
        lambda job: kernels_only(job) and job.trains and job.v > 1 and (not whole(job) or job.m <= job.p),
        frozenset({"schedule", "m", "v", "interval"}),
    ),
    Unknowable(
        "hosts that nothing ties",
        "the recorded ranks of a pipeline are no tensor-parallel partners of each other's peers, so that no message "
        "of which both ends were recorded compares their clocks",
        lambda job: bool(job.skew_ns and whole(job)) and not any(_tied(job, replica) for replica in whole(job)),
        frozenset({"bubble", "interval"}),
    ),
    Unknowable(
        "a few forwards alone",
        "fewer than four stretches of kernels in all, and no other kind, are no pattern",
        lambda job: _untold(job) and not job.trains and job.v * job.m * job.steps < 4,
        frozenset({"schedule", "m", "v", "bubble", "interval"}),
    ),
    Unknowable(
        "split backwards of one kind of kernel",
        "the kernels of input gradients and of weight gradients have the same names, so that two halves that follow "
        "each other look like one backward, and two that do not like two",
        lambda job: kernels_only(job) and job.kernel_names == "torch" and _splits(job),
        frozenset({"schedule", "m", "v", "bubble", "interval"}),
    ),
)
"""Declared once; whatever is not listed here must be told right."""


def unknowable(job: Job) -> frozenset[str]:
    """What a report of the job may leave open."""
    return frozenset[str]().union(*(row.spared for row in UNKNOWABLE if row.when(job)))


def complaints(job: Job, report: Report) -> list[str]:
    """Everything that a report gets wrong, each as `subject: what was found`; empty where it is right."""
    spared = unknowable(job)
    layout, schedule = report.layout, report.schedule
    wrong = [
        *_size("p", layout.pp, job.p, spared),
        *_size("v", layout.virtual, job.v, spared, unknown=1),
        *_size("tp", layout.tp, job.t, spared),
        *_size("dp", layout.dp, job.d, spared),
        *_size("m", schedule.microbatches, job.m, spared),
        *_name(job, report, spared),
        *_bubble(job, report, spared),
    ]
    if spared and report.quality.verdict == "ok":
        wrong.append("verdict: ok, although something cannot be told")
    return wrong


def _size(subject: str, found: int | None, known: int, spared: frozenset[str], unknown: int | None = None) -> list[str]:
    if found == known or (subject in spared and found == unknown):
        return []
    return [f"{subject}: {found} instead of {known}"]


def _name(job: Job, report: Report, spared: frozenset[str]) -> list[str]:
    schedule = report.schedule
    if job.schedule in {schedule.name, *schedule.also} or (schedule.name == "unknown" and "schedule" in spared):
        return []
    if schedule.name not in {"unknown", "none"} and same_order(job, schedule.name):
        return []
    return [f"schedule: {schedule.name} instead of {job.schedule}"]


def _bubble(job: Job, report: Report, spared: frozenset[str]) -> list[str]:
    bubble, seen = report.bubble, whole(job)
    if seen:
        known = true_bubble(job, seen)
        if bubble.measured is None:
            return [] if "bubble" in spared else ["bubble: not measured"]
        off = bubble.measured - known
        if "bubble" in spared and bubble.lower is not None and bubble.lower <= known <= (bubble.upper or 0):
            return []
        return [f"bubble: {100 * off:+.2f} points"] if abs(off) > tolerance(job) else []
    known = true_bubble(job, [replica for replica in range(job.d) if positions(job, replica)])
    wrong = []
    if bubble.measured is not None:
        wrong.append("bubble: a number although stages are unseen")
    if bubble.lower is None or bubble.upper is None:
        return wrong if "interval" in spared else [*wrong, "interval: none"]
    if not bubble.lower <= known <= bubble.upper:
        wrong.append(f"interval: {100 * known:.1f} not in {100 * bubble.lower:.1f} to {100 * bubble.upper:.1f}")
    return wrong
