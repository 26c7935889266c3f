"""Tiny traces, timelines and jobs from literal rows, so that a test reads like a timeline.

    trace(
        note("PP:0F0", 0, 10),
        run("gemm", 2, 20, 30),  # launched at 2, ran from 20 to 30
    )
    timeline(0, actions=[("0F0", 0, 10)], messages=[("send 1 0F0", 10, 12)])
    job(first, second)

Times are nanoseconds as the test writes them; rows may come in any order and in nested lists.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.job import ClockFit, Job, Plan
from bubblescope.model.timeline import Actions, Collectives, Messages, RankTimeline, Steps, Work
from bubblescope.model.trace import (
    Annotations,
    CommArgs,
    Identity,
    Kernels,
    Launches,
    Ops,
    ProcessGroup,
    RankTrace,
    Source,
    Thread,
)

__all__ = [
    "Call",
    "Kernel",
    "Launch",
    "Note",
    "Op",
    "Run",
    "actions_of",
    "backward",
    "call",
    "forward",
    "group",
    "job",
    "kernel",
    "launch",
    "loose",
    "messages_of",
    "note",
    "op",
    "run",
    "steps_of",
    "timeline",
    "trace",
    "work_of",
]

SOURCE = Source("rank.json", "kineto", 1, 1)
GRADIENT = "autograd::engine::evaluate_function: MmBackward0"


class Op(NamedTuple):
    """An operator on a host thread."""

    name: str
    start: int
    end: int
    seq: int
    forward_thread: int
    thread: str
    comm: CommArgs | None


class Note(NamedTuple):
    """An annotation on a host thread."""

    name: str
    start: int
    end: int
    thread: str


class Call(NamedTuple):
    """A frame of a Python function on a host thread."""

    name: str
    start: int
    end: int
    thread: str


class Launch(NamedTuple):
    """A call that puts work on a GPU."""

    id: int
    start: int
    end: int
    thread: str


class Kernel(NamedTuple):
    """Work on a GPU."""

    name: str
    start: int
    end: int
    id: int
    comm: CommArgs | None


class Run(NamedTuple):
    """A kernel with a launch of its own."""

    name: str
    host: int
    start: int
    end: int
    thread: str
    comm: CommArgs | None


def op(name: str, start: int, end: int, *, seq=-1, forward_thread=0, thread="main", comm=None) -> Op:
    """An operator; a `forward_thread` above 0 marks a backward one. Thread `2:loader` is of process 2."""
    return Op(name, start, end, seq, forward_thread, thread, comm)


def note(name: str, start: int, end: int, thread="main") -> Note:
    """An annotation."""
    return Note(name, start, end, thread)


def call(name: str, start: int, end: int, thread="main") -> Call:
    """A frame, as the profiler writes it: `path/file.py(12): function`."""
    return Call(name, start, end, thread)


def launch(number: int, start: int, end: int | None = None, thread="main") -> Launch:
    """A launch with a correlation number."""
    return Launch(number, start, start + 1 if end is None else end, thread)


def kernel(name: str, start: int, end: int, number=-1, *, comm=None) -> Kernel:
    """A kernel with the correlation number of its launch, if any."""
    return Kernel(name, start, end, number, comm)


def run(name: str, host: int, start: int, end: int, *, thread="main", comm=None) -> Run:
    """A kernel that is launched at `host` and runs from `start` to `end`."""
    return Run(name, host, start, end, thread, comm)


def forward(at: int, *numbers: int, thread="main") -> list[Op]:
    """Operators of 10 each, from `at` on, with autograd's numbers."""
    return [op("aten::mm", at + 10 * i, at + 10 * i + 9, seq=n, thread=thread) for i, n in enumerate(numbers)]


def backward(at: int, *numbers: int, thread="main") -> list[Op]:
    """Backward operators of 10 each, from `at` on; -1 is the accumulation of a gradient."""
    accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    return [
        op(
            accumulate if n < 0 else GRADIENT, at + 10 * i, at + 10 * i + 9, seq=n, forward_thread=int(n >= 0),
            thread=thread,
        )
        for i, n in enumerate(numbers)
    ]  # fmt: skip


def group(name: str, description: str, *ranks: int) -> ProcessGroup:
    """A process group."""
    return ProcessGroup(name, description, ranks)


def trace(*rows: Any, groups: Sequence[ProcessGroup] = (), absolute=True, rank: int | None = 0) -> RankTrace:
    """A trace of the given rows; it has been through its own self-check."""
    flat = list(_flat(rows))
    runs = [row for row in flat if isinstance(row, Run)]
    ids = range(10**6, 10**6 + len(runs))
    flat += [launch(i, r.host, r.host + 1, r.thread) for i, r in zip(ids, runs, strict=True)]
    flat += [kernel(r.name, r.start, r.end, i, comm=r.comm) for i, r in zip(ids, runs, strict=True)]
    names, threads, comms = _Table(), _Table(), _Table()
    ops = [
        (r.start, r.end, names(r.name), threads(r.thread), r.seq, r.forward_thread, comms(r.comm))
        for r in flat if isinstance(r, Op)
    ]  # fmt: skip
    notes = [(r.start, r.end, names(r.name), threads(r.thread)) for r in flat if isinstance(r, Note)]
    calls = [(r.start, r.end, names(r.name), threads(r.thread)) for r in flat if isinstance(r, Call)]
    launches = [
        (r.start, r.end, names("cudaLaunchKernel"), threads(r.thread), r.id) for r in flat if isinstance(r, Launch)
    ]
    kernels = [
        (r.start, r.end, names(r.name), 0, r.id, Kernels.KERNEL, comms(r.comm)) for r in flat if isinstance(r, Kernel)
    ]
    built = RankTrace(
        source=SOURCE,
        identity=Identity(rank=rank, groups=tuple(groups)),
        absolute=absolute,
        names=tuple(names.values),
        threads=tuple(Thread(*(t.split(":") if ":" in t else ("1", t))) for t in threads.values),
        comms=tuple(comms.values),
        ops=_block(Ops, ops),
        annotations=_block(Annotations, notes),
        launches=_block(Launches, launches),
        kernels=_block(Kernels, kernels),
        frames=_block(Annotations, calls),
    )
    built.self_check()
    return built


class _Table:
    """Numbers for values, in the order in which they are first asked for; None is -1."""

    def __init__(self):
        self.values: list[Any] = []

    def __call__(self, value: Any) -> int:
        if value is None:
            return -1
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


def _flat(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        if isinstance(row, list):
            yield from _flat(row)
        else:
            yield row


def _block(cls, rows: Sequence[tuple[int, ...]]):
    return cls(*zip(*rows, strict=True)) if rows else cls.empty()


# What a rank tells: actions are ("0F0", start, end), with the row of the step as a fourth where it is not 0.
# An id that nobody told is "?": "?F0" has no stage, "0F?" no micro-batch.


def timeline(
    rank: int,
    *,
    actions: Sequence[tuple] = (),
    messages: Sequence[tuple] = (),
    collectives: Sequence[tuple] = (),
    steps: Sequence[tuple[int, int, int]] = (),
    groups: Sequence[ProcessGroup] = (),
    world: int | None = None,
    absolute=True,
    host: str | None = None,
) -> RankTimeline:
    """A rank's timeline.

    Args:
        rank: its rank.
        actions: ("0F0", start, end), or ("(0F1;1B0)", start, turn, end) for two that overlap under one label.
        messages: ("send 1", start, end), or ("recv 0 1F0", start, end) where a label names the action;
            the peer is "?" where nothing tells it.
        collectives: ("tp", start, end, "0F0"): the group's description and the action that asked for it; in place of
            a description all that the call says of itself.
        steps: (number, start, end); by default one step over everything.
        groups: process groups that the rank is told of.
        world: the world size that its file states.
        absolute: whether its times count from the epoch.
        host: the machine that recorded it; ranks of one share a clock.
    """
    parts = [(part, row) for row in actions for part in _parts(*row)]
    acts = [(*part, _in_block(row, actions)) for part, row in parts]
    ends = [row[2] for block in (actions, messages, collectives) for row in block]
    said = [row[0] for row in collectives]
    described = [d if isinstance(d, CommArgs) else CommArgs(op="all_reduce", description=d) for d in said]
    calls = (CommArgs(op="send"), *described)
    texts = [row[0].strip("()").split(";")[0] for _, row in parts]
    shared = [
        (start, end, texts.index(asked[0]) if asked else -1, 0, 1 + i, -1)
        for i, (_, start, end, *asked) in enumerate(collectives)
    ]
    built = RankTimeline(
        rank=rank,
        source=SOURCE,
        identity=Identity(
            rank=rank, world_size=world, host=host, clock=host if absolute else None, groups=tuple(groups)
        ),
        absolute=absolute,
        on_gpu=True,
        steps=_block(Steps, [(s, e, n) for n, s, e in steps] or [(0, max(ends, default=0), 0)]),
        actions=_block(Actions, acts),
        work=_block(Work, [(row[0], row[1], i) for i, row in enumerate(acts)]),
        messages=_block(Messages, [(*_message(*row), i, _after(row, acts)) for i, row in enumerate(messages)]),
        collectives=_block(Collectives, shared),
        calls=calls,
        reconstruction="labels" if acts else None,
    )
    built.self_check()
    return built


def _parts(text: str, *moments: int) -> list[tuple[int, ...]]:
    """Start, end, step and ids of an action, or of the two of a block."""
    if not text.startswith("("):
        start, end, step = (*moments, 0)[:3]
        return [(start, end, step, *_ids(text))]
    start, turn, end, step = (*moments, 0)[:4]
    first, second = text.strip("()").split(";")
    return [(start, turn, step, *_ids(first)), (turn, end, step, *_ids(second))]


def _in_block(row: tuple, rows: Sequence[tuple]) -> int:
    return rows.index(row) if row[0].startswith("(") else -1


def _ids(text: str) -> tuple[int, int, int, int]:
    """(kind, stage, micro-batch, slice) of `0F0` or `0F0.1`."""
    match = re.fullmatch(r"(\d+|\?)([FBIW])(\d+|\?)(?:\.(\d+))?", text)
    assert match, text
    stage, microbatch, part = (-1 if x in {"?", None} else int(x) for x in (match[1], match[3], match[4]))
    return int(Kind[match[2]]), stage, microbatch, part


def _message(text: str, start: int, end: int, step: int = 0) -> tuple[int, ...]:
    word, peer, *label = text.split()
    direction = {"send": Messages.SEND, "recv": Messages.RECV, "either": Messages.EITHER}[word]
    ids = _ids(label[0]) if label else (-1, -1, -1, -1)
    return (start, end, step, direction, -1 if peer == "?" else int(peer), -1, 0, *ids)


def _after(row: Sequence[Any], acts: Sequence[tuple[int, ...]]) -> int:
    """The last action that began before a message did."""
    return max((i for i, act in enumerate(acts) if act[0] < row[1]), default=-1)


def job(
    *timelines: RankTimeline,
    pipelines: Sequence[Sequence[Sequence[int]]] | None = None,
    placement: dict[int, tuple[int, ...]] | None = None,
) -> Job:
    """A job of the given ranks: by default one pipeline, rank r at position r with stage r."""
    ranks = [t.rank for t in timelines]
    lines = tuple(tuple(tuple(p) for p in line) for line in pipelines or [[[r] for r in range(max(ranks) + 1)]])
    pp = len(lines[0])
    world = sum(len(p) for line in lines for p in line)
    plan = Plan(world_size=world, pp=pp, tp=None, dp=None, cp=None, ep=None, source="test", pipelines=lines)
    return Job(
        timelines={t.rank: t for t in timelines},
        plan=plan,
        clock=ClockFit(method="recorded", offsets=dict.fromkeys(ranks, 0)),
        placement=placement or {at: (at,) for at in range(pp)},
    )


def loose(of: Job, *pairs: tuple[int, int, float], error: int | None = None) -> Job:
    """The job with a clock for each rank; pairs of them, (rank, rank, ns), may be off against each other by so much."""
    count = max(of.timelines) + 1
    errors = np.zeros((count, count))
    for one, other, off in pairs:
        errors[one, other] = errors[other, one] = off
    clock = ClockFit(
        method="p2p",
        offsets=dict.fromkeys(of.timelines, 0),
        error=error,
        clocks={rank: rank for rank in of.timelines},
        errors=errors,
    )
    return dataclasses.replace(of, clock=clock)


def _text(stage: int, kind: int, microbatch: int, part: int = -1) -> str:
    tail = "" if part < 0 else f".{part}"
    return f"{'?' if stage < 0 else stage}{Kind(kind).name}{'?' if microbatch < 0 else microbatch}{tail}"


def actions_of(timeline: RankTimeline) -> list[tuple[str, int, int]]:
    """("0F0", start, end) of every action, in their order."""
    a = timeline.actions
    names = map(_text, a.stage.tolist(), a.kind.tolist(), a.microbatch.tolist(), a.slice.tolist())
    return list(zip(names, a.start.tolist(), a.end.tolist(), strict=True))


def work_of(timeline: RankTimeline) -> list[tuple[str, int, int]]:
    """(action, start, end) of all work; "-" is work of no action."""
    names = [name for name, *_ in actions_of(timeline)] + ["-"]
    w = timeline.work
    return [(names[a], s, e) for a, s, e in zip(w.action.tolist(), w.start.tolist(), w.end.tolist(), strict=True)]


def messages_of(timeline: RankTimeline) -> list[tuple[str, int, int]]:
    """("send 1 0F0", start, end) of every message, in the order in which they were posted."""
    m = timeline.messages
    rows = zip(
        *(getattr(m, c).tolist() for c in ("direction", "peer", "stage", "kind", "microbatch", "slice")), strict=True
    )
    texts = [
        " ".join(
            [("send", "recv", "either")[d], "?" if peer < 0 else str(peer)] + ([_text(s, k, i, part)] if k >= 0 else [])
        )
        for d, peer, s, k, i, part in rows
    ]
    return list(zip(texts, m.start.tolist(), m.end.tolist(), strict=True))


def steps_of(timeline: RankTimeline) -> list[tuple[int, int, int]]:
    """(number, start, end) of every step."""
    s = timeline.steps
    return list(zip(s.number.tolist(), s.start.tolist(), s.end.tolist(), strict=True))
