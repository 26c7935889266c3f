"""Which jobs can be: sizes, times and faults within reason, and no wish that contradicts another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, get_args, get_type_hints

from bubblescope.errors import UsageError
from bubblescope.model.actions import WHOLE, Action, Kind

if TYPE_CHECKING:
    from bubblescope.emit.job import Job

__all__ = ["check"]

MOST_SKEW_NS = 10**15  # 11 days: files that tell times from a base three months after it show no earlier ones
MOST_DRIFT_PPM = 100_000
LONGEST_NS = 10**15
MOST_KERNELS = 20_000_000  # more than an hour's work

AT_LEAST_1 = (
    "p",
    "m",
    "v",
    "slices",
    "d",
    "t",
    "c",
    "steps",
    "kernels",
    "ranks_a_host",
    "cycles",
    "recv_streams",
    "eval_m",
)
AT_LEAST_0 = (
    "variant",
    "forward_ns",
    "backward_ns",
    "p2p_ns",
    "host_gap_ns",
    "pause_ns",
    "offload_ns",
    "overrun_ns",
    "recv_ahead",
    "first_step",
    "dp_ns",
    "dp_buckets",
    "zero_grad_ns",
    "optimizer_ns",
    "kernel_gap_ns",
    "run_ahead_ns",
    "rest_ns",
    "jitter",
)
CHOICES = (
    "labels",
    "p2p_args",
    "backend",
    "era",
    "metadata",
    "pg_desc",
    "host",
    "kernel_names",
    "payloads",
    "one_file",
    "in_stage",
    "launches",
    "calls",
    "comm_names",
    "dp_op",
    "groups_told",
    "eval_at",
    "zero_grad",
    "marks",
)


def check(job: Job) -> None:
    """Raise UsageError with the first thing that is wrong."""
    for problems in (_sizes, _choices, _shape, _agenda, _orders, _blocks, _times, _faults, _wishes):
        problem = next(problems(job), None)
        if problem is not None:
            raise UsageError(problem)


def _sizes(job: Job) -> Iterator[str]:
    for least, names in ((1, AT_LEAST_1), (0, AT_LEAST_0)):
        for name in names:
            value = getattr(job, name)
            if not least <= value <= LONGEST_NS:
                yield f"{name} must be at least {least} and no more than 10^15, found {value}"
    for size in job.ramp:
        if size < 1:
            yield f"a ramp needs at least 1 micro-batch a step, found {size}"
    most = max((job.kernels, *job.stage_layers))
    microbatches = sum(job.ramp or (job.m,) * job.steps) + job.eval_m * len(job.eval_steps)
    kernels = 2 * job.p * job.v * microbatches * job.slices * most * job.d * job.c * job.t
    if kernels > MOST_KERNELS:
        yield f"the job would run about {kernels} kernels, and no more than {MOST_KERNELS} are emitted"


def _choices(job: Job) -> Iterator[str]:
    hints = get_type_hints(type(job))
    for name in CHOICES:
        known = get_args(hints[name])
        if getattr(job, name) not in known:
            yield f"{name} must be one of {', '.join(known)}, found {getattr(job, name)!r}"
    yield from _recorders(job)


def _recorders(job: Job) -> Iterator[str]:
    """One of them for all ranks, or as many as there are ranks."""
    if len(job.recorders) != job.world:
        yield f"recorder needs one for each of {job.world} ranks, found {len(job.recorders)}"
    known = get_args(get_args(get_type_hints(type(job))["recorder"])[0])
    for recorder in job.recorders:
        if recorder not in known:
            yield f"recorder must be one of {', '.join(known)}, found {recorder!r}"


def _shape(job: Job) -> Iterator[str]:
    if job.orders:
        return
    if job.group is not None and job.group < 1:
        yield f"group must be at least 1, found {job.group}"
    else:
        shapes = (replace(job.shape, m=m) for m in dict.fromkeys((job.m, *job.ramp)))
        yield from (problem for shape in shapes if (problem := job.family.problem(shape)) is not None)


def _agenda(job: Job) -> Iterator[str]:
    """What stands in which step."""
    if job.ramp and job.orders:
        yield "explicit orders have one size: there is no ramp"
    if job.eval_steps and not job.trains:
        yield "forwards alone have no evaluation beside them"
    for step in job.eval_steps:
        if not 0 <= step < job.steps:
            yield f"there is no step {step} among {job.steps} that could have an evaluation"
    if job.eval_steps and job.cycles > 1:
        yield "cycles hold as many steps each: there are no evaluations"
    if job.zero_grad != "none" and not job.trains:
        yield "forwards alone have no gradients to fill"


def _orders(job: Job) -> Iterator[str]:
    """Explicit orders name every action once."""
    for rank, order in enumerate(job.orders):
        if not order:
            yield f"rank {rank} has no actions"
        seen = set[Action]()
        for action in order:
            seen.add(action)
            if action._replace(kind=Kind.F) not in seen:
                yield f"{action} has no forward before it on its rank"
    twice = [action for action, count in Counter(a for order in job.orders for a in order).items() if count > 1]
    if twice:
        yield f"{twice[0]} stands more than once in the orders"
    if len({(action.slice == WHOLE) for order in job.orders for action in order}) > 1:
        yield "some actions are slices of micro-batches and some whole ones"


def _blocks(job: Job) -> Iterator[str]:
    """Blocks of explicit orders are pairs."""
    follower = {a: b for order in job.orders for a, b in pairwise(order)}
    for action in sorted(job.together):
        if action not in follower:
            yield f"{action} cannot run as one with the action behind it: there is none"
        elif follower[action] in job.together:
            yield f"a block is two actions, found {action}, {follower[action]} and the one behind it"


def _times(job: Job) -> Iterator[str]:
    if not 0 <= job.weight_fraction <= 1:
        yield f"weight_fraction must lie between 0 and 1, found {job.weight_fraction}"
    if not 0 <= job.tp_share < 1:
        yield f"tp_share must be at least 0 and below 1, found {job.tp_share}"
    if len(job.scale) not in (0, job.p, job.stages):
        yield f"scale needs a factor for each of {job.p} ranks or {job.stages} stages, found {len(job.scale)}"
    if job.stage_times and len(job.stage_times) != job.stages:
        yield f"times are needed for {job.stages} stages, found {len(job.stage_times)}"
    for stage, times in enumerate(job.stage_times):
        if not (0 <= times.forward_ns <= LONGEST_NS and 0 <= times.weight_ns <= times.backward_ns <= LONGEST_NS):
            yield f"stage {stage} needs a forward, and a backward no shorter than its weight part, found {tuple(times)}"
    if job.stage_layers and (len(job.stage_layers) != job.stages or min(job.stage_layers) < 1):
        yield f"stage_layers needs at least 1 for each of {job.stages} stages, found {job.stage_layers}"
    if job.edges_ns and len(job.edges_ns) != job.p - 1:
        yield f"transfer times are needed for {job.p - 1} pairs of neighbours, found {len(job.edges_ns)}"
    if any(not 0 <= edge <= LONGEST_NS for edge in job.edges_ns):
        yield f"a transfer takes no less than 0 and no more than 10^15 ns, found {max(job.edges_ns, key=abs)}"
    yield from _hosts(job)


def _hosts(job: Job) -> Iterator[str]:
    if len(job.host_gaps_ns) not in (0, job.p):
        yield f"host_gaps_ns needs a time for each of {job.p} ranks, found {len(job.host_gaps_ns)}"
    if any(not 0 <= gap <= LONGEST_NS for gap in job.host_gaps_ns):
        yield f"host_gaps_ns must be at least 0 and no more than 10^15, found {max(job.host_gaps_ns, key=abs)}"
    for name in ("pause_chance", "overrun_chance"):
        if not 0 <= getattr(job, name) <= 1:
            yield f"{name} must lie between 0 and 1, found {getattr(job, name)}"


def _faults(job: Job) -> Iterator[str]:
    factors = [*job.scale, *(factor for _, factor in (*job.slow, *job.straggler))]
    for factor in factors:
        if not (factor > 0 and isfinite(factor)):
            yield f"a factor must be above 0, found {factor}"
    for rank in (*(rank for rank, _ in job.straggler), *job.missing):
        if not 0 <= rank < job.world:
            yield f"there is no rank {rank} among {job.world}"
    if len(set(job.missing)) == job.world:
        yield "all ranks are missing: there is nothing to write"
    for name, most in (("skew_ns", MOST_SKEW_NS), ("drift_ppm", MOST_DRIFT_PPM)):
        values = getattr(job, name)
        if len(values) > job.world:
            yield f"{name} has {len(values)} values for {job.world} ranks"
        if any(not abs(value) <= most for value in values):
            yield f"{name} must lie between -{most} and {most}, found {max(values, key=abs)}"


def _wishes(job: Job) -> Iterator[str]:
    if job.fused and job.recv_ahead:
        yield "a fused receive cannot be posted ahead"
    if job.backend == "cpu":
        yield from _on_cpu(job)
    if job.c > 1 and min(job.layers) < 2:
        yield "keys and values pass under an attention, the second kernel of a stage: it needs 2"
    yield from _files(job)
    if job.comm_names == "generic" and job.p2p_args == "kernel":
        yield "kernels that are all called alike carry no arguments: p2p_args must be op or none"
    if (job.calls, job.comm_names) != ("all", "nccl") and (job.backend == "cpu" or {*job.recorders} != {"kineto"}):
        yield "calls are left out, and kernels called alike, of GPUs that Kineto records"
    plain = job.slices == 1 and job.kinds <= {Kind.F, Kind.B} and (job.v > 1 or not _both_ways(job))
    if job.labels == "torch" and not plain:
        yield "Forward i labels name no slice, no direction, and neither I nor W"


def _on_cpu(job: Job) -> Iterator[str]:
    """What a CPU has not."""
    if job.fused:
        yield "gloo fuses nothing"
    if job.host != "all" or job.recompute:
        yield "on a CPU the host is all that is recorded, and nothing is computed again"
    if job.offload_ns or job.overrun_ns:
        yield "on a CPU there are no copies to the host, and no kernels that could overrun"
    if job.announced or job.in_stage != "all-reduce" or job.launches != "joined":
        yield "on a CPU no message is announced, stages reduce, and nothing is launched"
    if job.c > 1 or job.dp_op != "all-reduce" or job.recv_streams > 1:
        yield "on a CPU nothing passes round a ring, gloo reduces all, and there are no streams"
    if "nsys" in job.recorders:
        yield "nsys records GPUs: on a CPU the recorder is kineto"


def _files(job: Job) -> Iterator[str]:
    """What stands in which file."""
    if job.steps % job.cycles:
        yield f"cycles must divide the steps, found {job.cycles} for {job.steps}"
    if "nsys" in job.recorders and (job.one_file != "no" or job.cycles > 1):
        yield "nsys puts ranks in one file by one_file_a_host, and records one cycle"
    if job.one_process and (job.backend == "cpu" or job.t * job.c * job.d > 1 or job.fused or job.one_gpu_visible):
        yield "one process drives GPUs of one pipeline, all of which it sees, and its copies are not fused"
    if job.one_process and (
        len({job.host_of(rank) for rank in range(job.world)}) > 1 or any(job.skew_ns) or job.missing
    ):
        yield "one process runs on one host, has one clock, and is recorded as a whole"
    if job.one_process and not (job.one_file != "no" or job.one_file_a_host):
        yield "one process leaves one file: one_file or one_file_a_host"


def _both_ways(job: Job) -> bool:
    """Whether a rank holds more than one stage although there is one chunk a rank."""
    if job.orders:
        return any(len({action.stage for action in order}) > 1 for order in job.orders)
    return any(len(held) > 1 for held in job.family.placement(job.shape))
