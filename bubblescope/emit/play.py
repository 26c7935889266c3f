"""A rank's whole run, laid on a tape; what a recorder makes of it is another matter."""

from __future__ import annotations

from bubblescope.emit.cpu import CpuRank
from bubblescope.emit.cuda import CudaRank
from bubblescope.emit.job import Job
from bubblescope.emit.simulate import simulate
from bubblescope.emit.tape import Tape

__all__ = ["play"]


def play(job: Job, rank: int) -> Tape:
    """All that happened on a global rank; raises UsageError where the order cannot run."""
    tape, steps = Tape(job, rank), simulate(job)
    writer = CudaRank(job, rank, tape) if job.backend == "cuda" else CpuRank(job, rank, tape)
    for step in steps:
        writer.step(step)
    return tape
