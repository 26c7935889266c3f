"""The order in which each rank runs its actions, per schedule: written without a look at the package, to check it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import NamedTuple


class Size(NamedTuple):
    """p ranks, m micro-batches, v chunks a rank."""

    p: int
    m: int
    v: int = 1

    @property
    def stages(self) -> int:
        """Stages of the whole pipeline."""
        return self.p * self.v


class Action(NamedTuple):
    """One piece of work: F, B, I or W of a stage and a micro-batch."""

    kind: str
    stage: int
    micro: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro}"


def orders(name: str, size: Size) -> list[list[str]]:
    """Each pipeline rank's actions of one step, in order, as the field writes them."""
    return [[str(action) for action in RULES[name](size, rank)] for rank in range(size.p)]


def group(size: Size) -> int:
    """How many micro-batches an interleaved schedule takes through a chunk at a time, as torch does."""
    return size.m // max(1, size.m // size.p)


def _forwards(stage: int, micros: range) -> list[Action]:
    return [Action("F", stage, i) for i in micros]


def _gpipe(size: Size, rank: int) -> list[Action]:
    return _forwards(rank, range(size.m)) + [Action("B", rank, i) for i in range(size.m)]


def _gpipe_reversed(size: Size, rank: int) -> list[Action]:
    return _forwards(rank, range(size.m)) + [Action("B", rank, i) for i in reversed(range(size.m))]


def _naive(size: Size, rank: int) -> list[Action]:
    return [Action(kind, rank, i) for i in range(size.m) for kind in "FB"]


def _one_f_one_b(size: Size, rank: int) -> list[Action]:
    return _alternate(size, rank, size.p - 1 - rank)


def _eager(size: Size, rank: int) -> list[Action]:
    return _alternate(size, rank, 2 * (size.p - 1 - rank))


def _alternate(size: Size, rank: int, warmup: int) -> list[Action]:
    forwards = _forwards(rank, range(size.m))
    backwards = [Action("B", rank, i) for i in range(size.m)]
    return _merge(forwards, backwards, min(warmup, size.m))


def _merge(forwards: list[Action], backwards: list[Action], warmup: int) -> list[Action]:
    """Warm-up forwards, then a forward and a backward in turn, then what is left."""
    pairs = zip_longest(forwards[warmup:], backwards)
    return forwards[:warmup] + [action for pair in pairs for action in pair if action is not None]


def _table(size: Size) -> list[tuple[int, int]]:
    """The (chunk, micro-batch) pairs of an interleaved schedule, in whole groups of micro-batches."""
    many = group(size)
    return [(chunk, first + i) for first in range(0, size.m, many) for chunk in range(size.v) for i in range(many)]


def _interleaved(size: Size, rank: int) -> list[Action]:
    table = _table(size)
    warmup = min(2 * (size.p - 1 - rank) + (size.v - 1) * group(size), len(table))
    forwards = [Action("F", chunk * size.p + rank, i) for chunk, i in table]
    backwards = [Action("B", (size.v - 1 - chunk) * size.p + rank, i) for chunk, i in table]
    return _merge(forwards, backwards, warmup)


def _looped_bfs(size: Size, rank: int) -> list[Action]:
    stages = range(rank, size.stages, size.p)
    forwards = [Action("F", stage, i) for stage in stages for i in range(size.m)]
    return forwards + [Action("B", stage, i) for stage in reversed(stages) for i in reversed(range(size.m))]


def _zero_bubble(table: list[tuple[int, int]], size: Size, rank: int, warmup: int) -> list[Action]:
    """Warm-up forwards, then F, I and, once the lag is over, W."""
    forwards = [Action("F", chunk * size.p + rank, i) for chunk, i in table]
    backwards = [((size.v - 1 - chunk) * size.p + rank, i) for chunk, i in table]
    order, weights = forwards[:warmup], iter(backwards)
    for k, (stage, i) in enumerate(backwards):
        order += forwards[warmup + k : warmup + k + 1]
        order.append(Action("I", stage, i))
        if k >= rank:
            order.append(Action("W", *next(weights)))
    return order + [Action("W", *weight) for weight in weights]


def _zb_h1(size: Size, rank: int) -> list[Action]:
    return _zero_bubble([(0, i) for i in range(size.m)], size, rank, min(size.p - 1 - rank, size.m))


def _interleaved_zb(size: Size, rank: int) -> list[Action]:
    table = _table(size)
    return _zero_bubble(table, size, rank, min((size.v - 1) * group(size) + size.p - 1 - rank, len(table)))


def _zb_v(size: Size, rank: int) -> list[Action]:
    """The hand-made order for equal F, I and W; made for many micro-batches, then those past m are dropped."""
    p, total = size.p, max(2 * size.p - 1, size.m)
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
    return [action for action in order if action.micro < size.m]


RULES: dict[str, Callable[[Size, int], list[Action]]] = {
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
