"""What a job does in each of its steps: how many micro-batches it trains with, and where it evaluates."""

from __future__ import annotations

from typing import NamedTuple

from bubblescope.emit.job import Job

__all__ = ["Wanted", "agenda"]


class Wanted(NamedTuple):
    """Micro-batches that are taken through the pipelines together, and whether that is an evaluation."""

    m: int
    evaluates: bool = False


def agenda(job: Job) -> tuple[tuple[Wanted, ...], ...]:
    """What is wanted in every step that the profiler counts, in order."""
    steps = list[tuple[Wanted, ...]]()
    evaluation = Wanted(job.eval_m, evaluates=True)
    for number in range(job.steps):
        training = Wanted(job.ramp[number] if job.ramp else job.m)
        if number not in job.eval_steps:
            steps.append((training,))
        elif job.eval_at == "between":
            steps += [(training,), (evaluation,)]
        else:
            steps.append((evaluation, training) if job.eval_at == "before" else (training, evaluation))
    return tuple(steps)
