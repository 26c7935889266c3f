"""How an action's useful time is cut into kernels."""

from __future__ import annotations

import random
from typing import NamedTuple

from bubblescope.emit.job import Job
from bubblescope.emit.run import Done

__all__ = ["Piece", "cut"]

WEIGHTS = (2, 4, 3, 1)  # a matrix product, attention, another product, an activation: what a layer spends


class Piece(NamedTuple):
    """One kernel of an action: the index of its layer part, or a tensor-parallel all-reduce."""

    begin: int
    end: int
    part: int
    comm: bool


def cut(job: Job, done: Done, rank: int) -> list[Piece]:
    """The kernels of an action on one rank; tensor-parallel ranks differ in when they reach the all-reduce."""
    comms = job.pattern
    lengths = _lengths(job, done.useful, comms)
    if job.t > 1:
        _wobble(lengths, comms, random.Random(f"{job.seed}.{rank}.{done.start}"))  # noqa: S311 - repeatable
    pieces, at, part = [], done.start, 0
    for length, comm in zip(lengths, comms, strict=True):
        pieces.append(Piece(at, at + length, part, comm))
        at += length + job.kernel_gap_ns
        part += not comm
    return pieces


def _lengths(job: Job, useful: int, comms: tuple[bool, ...]) -> list[int]:
    """Whole nanoseconds in proportion to the weights; the last kernel takes the rounding."""
    reduces = sum(comms)
    shared = int(useful * job.tp_share) if reduces else 0
    weights = [WEIGHTS[i % len(WEIGHTS)] for i in range(job.kernels)]
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
