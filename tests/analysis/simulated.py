"""Timelines of simulated runs without a file between: what `bubblescope.emit` lets happen, with noise on transfers."""

from __future__ import annotations

import random

import numpy as np

from bubblescope import emit
from bubblescope.emit.simulate import simulate
from bubblescope.model.actions import Kind
from bubblescope.model.job import ClockFit, Job, Plan
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Actions, Messages, RankTimeline, Steps, Work
from bubblescope.model.trace import Identity
from tests.building import SOURCE

__all__ = ["simulated"]

BYTES = 8_000_000


def simulated(job: emit.Job, *, noise: float = 0.0, size: int = BYTES, on_gpu: bool = True) -> Job:
    """The job of a run with tensor-parallel degree 1, every message labelled.

    Args:
        job: what to simulate; `skew_ns` and what concerns files count for nothing.
        noise: sigma of the logarithm of what a transfer's length is multiplied with.
        size: bytes of a message, -1 for unknown.
        on_gpu: whether kernels tell the times.
    """
    dice = random.Random(job.seed)  # noqa: S311 - no secret
    rows = {rank: ([], [], [], []) for rank in range(job.world)}
    for number, step in enumerate(simulate(job)):
        for replica, run in enumerate(step.training.runs):
            for pp, lane in enumerate(run.lanes):
                steps, actions, _, optimizer = rows[job.rank(pp, replica, 0)]
                steps.append((step.start, step.end, number))
                optimizer.extend([step.training.optimizer] if step.training.optimizer else [])
                for done in (part for ran in lane for part in ran.parts):
                    actions.append((done.start, done.end, number, *_ids(done.action)))
            for t in run.transfers.values():
                ends = job.rank(t.source, replica, 0), job.rank(t.target, replica, 0)
                over = t.begin + round((t.end - t.begin) * dice.lognormvariate(0, noise))
                for way, (rank, posted, action) in enumerate(
                    ((ends[0], t.sent, t.producer), (ends[1], t.received, t.consumer))
                ):
                    rows[rank][2].append((posted, over, number, way, ends[1 - way], size, _ids(action)))
    built = {rank: _timeline(job, rank, mine, on_gpu=on_gpu) for rank, mine in rows.items()}
    lines = tuple(tuple((job.rank(pp, d, 0),) for pp in range(job.p)) for d in range(job.d))
    plan = Plan(world_size=job.world, pp=job.p, tp=1, dp=job.d, cp=None, ep=None, source="test", pipelines=lines)
    placement: dict[int, set[int]] = {}
    for rank in range(job.world):
        placement.setdefault(job.place(rank).pp, set()).update(built[rank].actions.stage.tolist())
    return Job(
        timelines=built,
        plan=plan,
        clock=ClockFit(method="recorded", offsets=dict.fromkeys(built, 0)),
        placement={at: tuple(sorted(stages)) for at, stages in placement.items()},
    )


def _ids(action) -> tuple[int, int, int, int]:
    return int(action.kind), action.stage, action.microbatch, action.slice


def _timeline(job: emit.Job, rank: int, rows, *, on_gpu: bool) -> RankTimeline:
    host = f"node{rank // job.ranks_a_host}"
    steps, actions, messages, optimizer = rows
    start, end, *ids = np.array(sorted(actions), np.int64).T
    named = np.array([(*row[:6], *row[6]) for row in sorted(messages)], np.int64).T
    return RankTimeline(
        rank=rank,
        source=SOURCE,
        identity=Identity(rank=rank, host=host, clock=host),
        absolute=True,
        on_gpu=on_gpu,
        steps=Steps(*np.array(steps, np.int64).T),
        actions=Actions(start, end, *ids, np.full(len(start), -1)),
        work=Work(start, end, np.arange(len(start))),
        messages=_messages(named),
        optimizer=Spans.of(*(np.array(optimizer, np.int64).T if optimizer else ((), ()))),
        reconstruction="labels",
    )


def _messages(named) -> Messages:
    start, end, step, direction, peer, size, kind, stage, microbatch, part = named
    nothing = np.full(len(start), -1)
    return Messages(
        start=start, end=end, step=step, direction=direction, peer=peer, bytes=size, call=nothing,
        kind=np.where(kind == Kind.F, Kind.F, Kind.B), stage=stage, microbatch=microbatch, slice=part,
        kernel=np.arange(len(start)), after=nothing,
    )  # fmt: skip
