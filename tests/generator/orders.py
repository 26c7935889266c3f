"""The order in which each rank runs its actions, per schedule."""

from collections.abc import Callable
from itertools import zip_longest
from typing import NamedTuple

from tests.generator.job import Job


class Action(NamedTuple):
    """One piece of work: F, B, I or W of a stage and a micro-batch."""

    kind: str
    stage: int
    micro: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro}"


def orders(job: Job) -> list[list[Action]]:
    """Each pipeline rank's actions of one step, in order."""
    rule = RULES.get(job.schedule)
    if rule is None:
        raise ValueError(f"no rule for schedule {job.schedule!r}")
    return [rule(job, rank) for rank in range(job.p)]


def _forwards(stage: int, micros: range) -> list[Action]:
    return [Action("F", stage, i) for i in micros]


def _gpipe(job: Job, rank: int) -> list[Action]:
    return _forwards(rank, range(job.m)) + [Action("B", rank, i) for i in range(job.m)]


def _gpipe_reversed(job: Job, rank: int) -> list[Action]:
    return _forwards(rank, range(job.m)) + [Action("B", rank, i) for i in reversed(range(job.m))]


def _naive(job: Job, rank: int) -> list[Action]:
    return [Action(kind, rank, i) for i in range(job.m) for kind in "FB"]


def _one_f_one_b(job: Job, rank: int) -> list[Action]:
    return _alternate(job, rank, job.p - 1 - rank)


def _eager(job: Job, rank: int) -> list[Action]:
    return _alternate(job, rank, 2 * (job.p - 1 - rank))


def _alternate(job: Job, rank: int, warmup: int) -> list[Action]:
    forwards = _forwards(rank, range(job.m))
    backwards = [Action("B", rank, i) for i in range(job.m)]
    return _merge(forwards, backwards, min(warmup, job.m))


def _merge(forwards: list[Action], backwards: list[Action], warmup: int) -> list[Action]:
    """Warm-up forwards, then a forward and a backward in turn, then what is left."""
    pairs = zip_longest(forwards[warmup:], backwards)
    return forwards[:warmup] + [action for pair in pairs for action in pair if action is not None]


def _rounds(job: Job) -> tuple[int, list[tuple[int, int]]]:
    """Group size and the (chunk, micro-batch) pairs of an interleaved schedule."""
    group = job.m // max(1, job.m // job.p)
    if job.m % group:
        raise ValueError(f"m = {job.m} makes no whole groups of {group}")
    table = [(chunk, first + i) for first in range(0, job.m, group) for chunk in range(job.v) for i in range(group)]
    return group, table


def _interleaved(job: Job, rank: int) -> list[Action]:
    group, table = _rounds(job)
    warmup = min(2 * (job.p - 1 - rank) + (job.v - 1) * group, len(table))
    forwards = [Action("F", chunk * job.p + rank, i) for chunk, i in table]
    backwards = [Action("B", (job.v - 1 - chunk) * job.p + rank, i) for chunk, i in table]
    return _merge(forwards, backwards, warmup)


def _looped_bfs(job: Job, rank: int) -> list[Action]:
    stages = range(rank, job.stages, job.p)
    forwards = [Action("F", stage, i) for stage in stages for i in range(job.m)]
    return forwards + [Action("B", stage, i) for stage in reversed(stages) for i in reversed(range(job.m))]


def _zero_bubble(table: list[tuple[int, int]], job: Job, rank: int, warmup: int) -> list[Action]:
    """Warm-up forwards, then F, I and, once the lag is over, W."""
    forwards = [Action("F", chunk * job.p + rank, i) for chunk, i in table]
    backwards = [((job.v - 1 - chunk) * job.p + rank, i) for chunk, i in table]
    order, weights = forwards[:warmup], iter(backwards)
    for k, (stage, i) in enumerate(backwards):
        order += forwards[warmup + k : warmup + k + 1]
        order.append(Action("I", stage, i))
        if k >= rank:
            order.append(Action("W", *next(weights)))
    return order + [Action("W", *weight) for weight in weights]


def _zb_h1(job: Job, rank: int) -> list[Action]:
    return _zero_bubble([(0, i) for i in range(job.m)], job, rank, min(job.p - 1 - rank, job.m))


def _interleaved_zb(job: Job, rank: int) -> list[Action]:
    group, table = _rounds(job)
    return _zero_bubble(table, job, rank, min((job.v - 1) * group + job.p - 1 - rank, len(table)))


def _zb_v(job: Job, rank: int) -> list[Action]:
    """The hand-made order for equal F, I and W; made for many micro-batches, then those past m are dropped."""
    p, total = job.p, max(2 * job.p - 1, job.m)
    early, late = rank, 2 * p - 1 - rank
    counts = dict.fromkeys([(kind, stage) for kind in "FIW" for stage in (early, late)], 0)
    order: list[Action] = []

    def put(*cells: tuple[str, int]) -> None:
        for kind, stage in cells:
            order.append(Action(kind, stage, counts[kind, stage]))
            counts[kind, stage] += 1

    put(*[("F", early)] * (2 * (p - rank) - 1))
    put(*[("F", late), ("F", early)] * rank)
    put(*[("F", late), ("I", late), ("W", late)] * (p - rank))
    while counts["F", early] < total or counts["F", late] < total:
        if counts["F", early] < total:
            put(("F", early))
        put(("I", early), ("W", early), ("F", late), ("I", late), ("W", late))
    put(*[("I", early), ("I", late)] * rank)
    put(*[("I", early), ("W", early)] * (p - rank))
    for stage in (late, early):
        put(*[("W", stage)] * (counts["I", stage] - counts["W", stage]))
    return [action for action in order if action.micro < job.m]


RULES: dict[str, Callable[[Job, int], list[Action]]] = {
    "naive": _naive,
    "gpipe": _gpipe,
    "gpipe-reversed-drain": _gpipe_reversed,
    "1f1b": _one_f_one_b,
    "eager-1f1b": _eager,
    "interleaved-1f1b": _interleaved,
    "looped-bfs": _looped_bfs,
    "zb-h1": _zb_h1,
    "interleaved-zb": _interleaved_zb,
    "zb-v": _zb_v,
}
