"""How an action's useful time is cut into kernels."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

from bubblescope.emit.job import Job
from bubblescope.emit.run import Done
from bubblescope.model.actions import Kind

__all__ = ["Piece", "cut"]

WEIGHTS = (2, 4, 3, 1)  # a matrix product, attention, another product, an activation: what a layer spends


MOST_REPEATED = 0.5  # share of a backward that runs its forward again which it spends on it at most


class Piece(NamedTuple):
    """One kernel of an action: the index of its layer part, or a tensor-parallel all-reduce.

    `again` is a kernel of the forward that a backward runs again.
    """

    begin: int
    end: int
    part: int
    comm: bool
    again: bool = False


def cut(job: Job, done: Done, rank: int) -> list[Piece]:
    """The kernels of an action on one rank; tensor-parallel ranks differ in when they reach the all-reduce."""
    first, *others = _cut(job, done, rank)
    return [first, *(piece._replace(begin=piece.begin + done.pause, end=piece.end + done.pause) for piece in others)]


def _cut(job: Job, done: Done, rank: int) -> list[Piece]:
    """The same as if the host had not paused."""
    if not job.runs_again(done.action.kind):
        return _laid(job, done, rank)
    usual = job.backward_ns * (1 - job.weight_fraction if done.action.kind == Kind.I else 1)
    repeated = int(done.useful * min(MOST_REPEATED, job.forward_ns / max(usual, 1)))
    first = _laid(job, replace(done, useful=repeated), rank, again=True)
    start = first[-1].end + job.kernel_gap_ns
    return first + _laid(job, replace(done, useful=done.useful - repeated, start=start), rank)


def _laid(job: Job, done: Done, rank: int, *, again: bool = False) -> list[Piece]:
    """The kernels of one pass through the layers, from the start on."""
    comms = job.pattern(done.action.stage)
    lengths = _lengths(job, done.useful, comms)
    if job.t > 1:
        _wobble(lengths, comms, random.Random(f"{job.seed}.{job.apart(rank)}.{done.start}"))  # noqa: S311 - repeatable
    pieces, at, part = [], done.start, 0
    for length, comm in zip(lengths, comms, strict=True):
        pieces.append(Piece(at, at + length, part, comm, again))
        at += length + job.kernel_gap_ns
        part += not comm
    return pieces


def _lengths(job: Job, useful: int, comms: tuple[bool, ...]) -> list[int]:
    """Whole nanoseconds in proportion to the weights; the last kernel takes the rounding."""
    reduces = sum(comms)
    shared = int(useful * job.tp_share) if reduces else 0
    weights = [WEIGHTS[i % len(WEIGHTS)] for i in range(len(comms) - reduces)]
    parts = iter([(useful - shared) * w // sum(weights) for w in weights])
    lengths = [shared // reduces if comm else next(parts) for comm in comms]
    lengths[-1] += useful - sum(lengths)
    return lengths


def _wobble(lengths: list[int], comms: tuple[bool, ...], dice: random.Random) -> None:
    """Let the kernel before each all-reduce end a little earlier, and the all-reduce wait that much longer."""
    for i, comm in enumerate(comms):
        if comm and i:
            early = int(lengths[i - 1] * dice.uniform(0.0, 0.05))
            lengths[i - 1] -= early
            lengths[i] += early
