"""A pipeline that runs by itself: no emitter, no replay and no schedule of the package has a part in it.

    played = Pipe(one_f_one_b(p=4, m=8), work).play(steps=11)
    played.bubble
    played.write(folder)

Every rank is a process, which works off its list of forwards and backwards, one stage a rank, and sleeps in between; a
clock wakes who is due next. Who needs an input posts a receive and sleeps until the message is there: it moves from
when it was sent and its receive posted. What happened is written as a minimal trace of the PyTorch Profiler: steps,
labels, two kernels an action, sends and receives. Times are microseconds.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

__all__ = ["Pipe", "Played", "gpipe", "one_f_one_b"]

Time = Callable[[int, int, str, int], float]
"""Of something, by step, rank, F or B, and micro-batch."""

Span = tuple[float, float]
Lanes = list[list[tuple[str, int]]]

BEFORE, AFTER = 300.0, 100.0
MESSAGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)"


def gpipe(p: int, m: int) -> Lanes:
    """All forwards, then all backwards."""
    return [[("F", i) for i in range(m)] + [("B", i) for i in range(m)] for _ in range(p)]


def one_f_one_b(p: int, m: int) -> Lanes:
    """A forward for every later rank, then one forward and one backward in turn, then the backwards that are left."""
    lanes = []
    for rank in range(p):
        ahead = min(p - 1 - rank, m)
        pairs = [pair for i in range(m - ahead) for pair in (("F", ahead + i), ("B", i))]
        lanes.append([*(("F", i) for i in range(ahead)), *pairs, *(("B", i) for i in range(m - ahead, m))])
    return lanes


class Did(NamedTuple):
    """An action that a rank did, and its kernels."""

    kind: str
    microbatch: int
    kernels: tuple[Span, Span]


class Key(NamedTuple):
    """Which message: F or B, who sends it, and its micro-batch."""

    kind: str
    source: int
    microbatch: int


@dataclass
class Mail:
    """A message: when it was sent, when its receive was posted, and when it was there."""

    target: int
    sent: float = -1.0
    posted: float = -1.0
    end: float = -1.0


@dataclass
class Step:
    """A step: what every rank did, and the messages."""

    start: float
    done: list[list[Did]]
    mails: dict[Key, Mail] = field(default_factory=dict)


@dataclass
class Played:
    """What happened; rank `replicas * k + r` is the k-th of pipeline r."""

    steps: list[Step]
    replicas: int

    @property
    def bubble(self) -> float:
        """What no kernel ran in, of the time from a pipeline's first to its last; the first step left out."""
        return fmean(_bubble(step.done[k :: self.replicas]) for step in self.steps[1:] for k in range(self.replicas))

    def write(self, folder: Path) -> None:
        """One trace a rank."""
        world = len(self.steps[0].done)
        group = {"pg_name": "0", "pg_desc": "default_pg", "ranks": list(range(world)), "backend_config": "cuda:nccl"}
        for rank in range(world):
            info = {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": [group]}
            steps, numbers = enumerate(self.steps), count(1)
            events = [event for k, step in steps for event in _events(k, step, rank, self.replicas, numbers)]
            (folder / f"rank{rank}.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))


def _bubble(lanes: list[list[Did]]) -> float:
    spans = [[span for did in lane for span in did.kernels] for lane in lanes]
    window = max(lane[-1][1] for lane in spans) - min(lane[0][0] for lane in spans)
    return 1 - fmean(sum(end - start for start, end in lane) for lane in spans) / window


def _events(number: int, step: Step, rank: int, replicas: int, numbers: Iterator[int]) -> Iterator[dict]:
    """The host puts an action's kernels in line right before they run, and messages a little earlier."""
    end = max(did.kernels[1][1] for lane in step.done for did in lane)
    yield _event("user_annotation", f"ProfilerStep#{number}", 1, (step.start, end + AFTER))
    for kind, i, kernels in step.done[rank]:
        host = kernels[0][0] - 10
        yield _event("user_annotation", f"PP:{rank // replicas}{kind}{i}", 1, (host - 1, host + 6))
        for k, span in enumerate(kernels):
            yield from _kernel(next(numbers), f"{kind.lower()}_gemm", span, host + 2 * k, {"stream": 7})
    for key, mail in step.mails.items():
        stream = 20 if key.kind == "F" else 22
        args = {"Process Group Name": "0", "In msg nelems": 1024, "dtype": "BFloat16"}
        if rank == key.source:
            args |= {"Collective name": "send", "Dst Rank": mail.target, "stream": stream}
            yield from _kernel(next(numbers), MESSAGE, (mail.sent, mail.end), mail.sent - 25, args)
        if rank == mail.target:
            args |= {"Collective name": "recv", "Src Rank": key.source, "stream": stream + 1}
            yield from _kernel(next(numbers), MESSAGE, (mail.posted, mail.end), mail.posted - 20, args)


def _kernel(number: int, name: str, span: Span, host: float, args: dict) -> Iterator[dict]:
    """A kernel and its launch; `args` tell its stream, and what NCCL was called with."""
    yield _event("cuda_runtime", "cudaLaunchKernel", 1, (host, host + 0.5), correlation=number)
    yield _event("kernel", name, args["stream"], span, correlation=number, device=0, **args)


def _event(cat: str, name: str, tid: int, span: Span, **args: object) -> dict:
    start, end = round(span[0], 3), round(max(span[1], span[0] + 0.01), 3)
    timed = {"ts": start, "dur": round(end - start, 3), "args": args}
    return {"ph": "X", "cat": cat, "name": name, "pid": int(cat != "kernel"), "tid": tid, **timed}


def nothing(*_: object) -> float:
    """No time."""
    return 0.0


class Pipe:
    """Pipelines and their times: `work` of an action, `wire` of a message by its sender, `idle` before an action."""

    def __init__(
        self, lanes: Lanes, work: Time, *, wire: Time = nothing, idle: Time = nothing, replicas: int = 1
    ) -> None:
        self.lanes, self.work, self.wire, self.idle, self.replicas = lanes, work, wire, idle, replicas
        self.world = len(lanes) * replicas
        self.now, self.tickets = 0.0, count()
        self.agenda: list[tuple[float, int, int]] = []

    def play(self, steps: int) -> Played:
        """Run so many steps."""
        found: list[Step] = []
        for number in range(steps):
            step = Step(self.now + BEFORE, [[] for _ in range(self.world)])
            processes = [self._rank(number, rank, step) for rank in range(self.world)]
            for rank in range(self.world):
                self._wake(step.start + BEFORE, rank)
            while self.agenda:
                self.now, _, rank = heapq.heappop(self.agenda)
                moment = next(processes[rank], None)
                if moment is not None:
                    self._wake(moment, rank)
            found.append(step)
        return Played(found, self.replicas)

    def _wake(self, moment: float, rank: int) -> None:
        heapq.heappush(self.agenda, (moment, next(self.tickets), rank))

    def _rank(self, number: int, rank: int, step: Step) -> Generator[float | None]:
        """A rank in a step: it yields when to be woken, or None to sleep until a message is there."""
        for kind, i in self.lanes[rank // self.replicas]:
            way = self.replicas if kind == "F" else -self.replicas
            if 0 <= rank - way < self.world:
                mail = step.mails.setdefault(Key(kind, rank - way, i), Mail(rank))
                mail.posted = self.now
                if mail.sent >= 0:
                    mail.end = self.now + self.wire(number, rank - way, kind, i)
                yield mail.end if mail.sent >= 0 else None
            yield self.now + self.idle(number, rank, kind, i)
            start, took = self.now, self.work(number, rank, kind, i)
            yield start + took
            middle = start + 0.6 * took
            step.done[rank].append(Did(kind, i, ((start, middle), (middle, self.now))))
            if 0 <= rank + way < self.world:
                mail = step.mails.setdefault(Key(kind, rank, i), Mail(rank + way))
                mail.sent = self.now
                if mail.posted >= 0:
                    mail.end = self.now + self.wire(number, rank, kind, i)
                    self._wake(mail.end, rank + way)
