"""DualPipe and DualPipeV: two streams of micro-batches meet on every rank, forwards hidden behind backwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import mirrored, vee
from bubblescope.schedules.family import Costs, Family, Form, Memory, Shape, Variant

__all__ = ["FAMILY", "FOLDED"]


@dataclass(slots=True)
class _Rank:
    """A rank writes its order. A phase is one of the two streams: phase 0 enters nearer to this rank.

    `stages` and `first` are the stage and the first micro-batch of each phase, `depth` is how many ranks
    lie before this one on the way of phase 0, and `half` how many of them there are in all.
    """

    stages: tuple[int, int]
    first: tuple[int, int]
    depth: int
    half: int
    order: list[Action] = field(default_factory=list)
    together: set[Action] = field(default_factory=set)
    counts: dict[tuple[int, Kind], int] = field(default_factory=dict)
    owed: deque[tuple[int, int]] = field(default_factory=deque)  # stage and micro-batch of each W to come

    def _put(self, phase: int, kind: Kind, *, split: bool = False) -> Action:
        k = self.counts.get((phase, kind), 0)
        self.counts[phase, kind] = k + 1
        action = Action(self.stages[phase], Kind.I if split else kind, self.first[phase] + k)
        if split:
            self.owed.append((action.stage, action.microbatch))
        self.order.append(action)
        return action

    def forward(self, phase: int) -> None:
        self._put(phase, Kind.F)

    def backward(self, phase: int, *, split: bool = False) -> None:
        self._put(phase, Kind.B, split=split)

    def weight(self) -> None:
        stage, i = self.owed.popleft()
        self.order.append(Action(stage, Kind.W, i))

    def both(self, ahead: int, back: int) -> None:
        """The forward of a phase and the backward of the other one as one block."""
        self.together.add(self._put(ahead, Kind.F))
        self._put(back, Kind.B)

    def run(self, count: int) -> None:
        """The eight parts of DualPipe.step (deepseek-ai/DualPipe, dualpipe/dualpipe.py) for `count` a phase."""
        h, behind = self.depth, self.half - self.depth - 1
        for _ in range(2 * behind):
            self.forward(0)
        for _ in range(h + 1):
            self.forward(0)
            self.forward(1)
        for _ in range(behind):
            self.backward(1, split=True)
            self.weight()
            self.forward(1)
        for k in range(count - 2 * self.half + h + 1):
            if k == 0 and not behind:  # where the streams meet there is nothing yet to overlap with
                self.forward(0)
                self.backward(1)
            else:
                self.both(0, 1)
            self.both(1, 0)
        for _ in range(behind):
            self.backward(1)
            self.both(1, 0)
        self._drain(h, behind)

    def _drain(self, h: int, behind: int) -> None:
        """Half-way through the last backwards their weight gradients are put off, to fill what is left."""
        split = False
        for k in range(h + 1):
            split |= k == (h + 1) // 2 and h % 2 == 1
            self.backward(1, split=split)
            split |= k == (h + 1) // 2 and h % 2 == 0
            self.backward(0, split=split)
        for _ in range(behind):
            self.weight()
            self.backward(0, split=True)
        while self.owed:
            self.weight()


def _both_ways(shape: Shape, rank: int) -> _Rank:
    p, count = shape.p, shape.m // 2
    lane = _Rank((rank, p - 1 - rank), (0, count), min(rank, p - 1 - rank), p // 2)
    if rank >= p // 2:
        lane.stages, lane.first = lane.stages[::-1], lane.first[::-1]
    lane.run(count)
    return lane


def _folded(shape: Shape, rank: int) -> _Rank:
    lane = _Rank((rank, 2 * shape.p - 1 - rank), (0, 0), rank, shape.p)
    lane.run(shape.m)
    return lane


def _order(shape: Shape, rank: int) -> Order:
    return tuple(_both_ways(shape, rank).order)


def _folded_order(shape: Shape, rank: int) -> Order:
    return tuple(_folded(shape, rank).order)


def _variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - the order does not depend on them
    yield Variant(partial(_order, shape))


def _folded_variants(shape: Shape, costs: Costs) -> Iterator[Variant]:  # noqa: ARG001 - likewise
    yield Variant(partial(_folded_order, shape))


def _problem(shape: Shape) -> str | None:
    if shape.v != 1:
        return "dualpipe has one chunk a rank each way"
    if shape.p % 2 or shape.m % 2 or shape.m < 2 * shape.p:
        return f"dualpipe needs p even, m even and m >= 2p, found p={shape.p} m={shape.m}"
    return None


def _folded_problem(shape: Shape) -> str | None:
    if shape.v != 2:
        return "dualpipe-v has two chunks a rank"
    if shape.m < 2 * shape.p:
        return f"dualpipe-v needs m >= 2p, found p={shape.p} m={shape.m}"
    return None


def _idle(shape: Shape, costs: Costs) -> float | None:
    """Where F = I = W the (p/2-1)(F&B+B-3W) of DeepSeek-V3, arXiv 2412.19437, table 2, with F&B = F+B.

    An overlapped block hides communication, not the other's work. Elsewhere the gaps before the first
    backward and those of the drain differ, and the longer one counts; exact by replay over a grid.
    """
    return _gaps(shape.p // 2, costs)


def _folded_idle(shape: Shape, costs: Costs) -> float | None:
    """The same with p in place of p/2, each stage taking half of the time."""
    gaps = _gaps(shape.p, costs)
    return None if gaps is None else gaps / 2


def _gaps(half: int, costs: Costs) -> float | None:
    """Idle time of a rank where each stream meets `half` ranks before it meets the other one."""
    f, i, w = costs.forward, costs.input, costs.weight
    return (half - 1) * (f + i - w) + max((half - 1) * f, (half - 1) * i - f) if w <= i else None


FAMILY = Family(
    name="dualpipe",
    summary="two copies of the model, micro-batches from both ends; forwards overlapped with backwards",
    rule="F of the near stream; F of both; I, W and F of the far one; blocks of F and B; B; I and W that fill the end",
    source="DeepSeek-V3, arXiv 2412.19437, section 3.2.1; deepseek-ai/DualPipe, dualpipe/dualpipe.py",
    variants=_variants,
    idle=Form("(h-1)(F+I-W) + max((h-1)F, (h-1)I-F) where W <= I, h = p/2", _idle),
    memory=Memory("p+1", lambda shape, _: shape.p + 1, "2", lambda *_: 2.0),
    layout=mirrored,
    limits=_problem,
    kinds=frozenset(Kind),
    together=lambda shape, rank: frozenset(_both_ways(shape, rank).together),
)

FOLDED = Family(
    name="dualpipe-v",
    summary="dualpipe folded like a V: two chunks a rank and one copy of the model",
    rule="as dualpipe, with the first chunk for the near stream and the second for the far one",
    source="deepseek-ai/DualPipe, dualpipe/dualpipev.py; PyTorch, torch/distributed/pipelining/schedules.py "
    "(ScheduleDualPipeV)",
    aliases=("dualpipev", "cut-in-half"),
    variants=_folded_variants,
    idle=Form("((p-1)(F+I-W) + max((p-1)F, (p-1)I-F))/2 where W <= I", _folded_idle),
    memory=Memory("p+1/2", lambda shape, _: shape.p + 0.5),
    layout=vee,
    limits=_folded_problem,
    chunks=2,
    kinds=frozenset(Kind),
    together=lambda shape, rank: frozenset(_folded(shape, rank).together),
)
