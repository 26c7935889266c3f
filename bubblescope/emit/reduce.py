"""The reductions of gradients over the replicas: one behind the pipeline, or buckets under the last backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bubblescope.emit.job import Job
from bubblescope.emit.run import Done, Reduction, Run
from bubblescope.model.actions import Kind

__all__ = ["AFTER_NS", "reductions"]

AFTER_NS = 20_000  # between the phases after the pipeline

Reductions = dict[tuple[int, int], tuple[Reduction, ...]]
"""By pipeline rank and replica, in order."""


def reductions(job: Job, runs: Sequence[Run]) -> Reductions:
    """All that the replicas reduce in a step; all of them end a reduction together."""
    found: Reductions = {}
    for pp in range(job.p):
        each = list(_buckets(job, runs, pp) if job.dp_buckets else [_behind(job, runs, pp)])
        found |= {(pp, replica): lane for replica, lane in enumerate(zip(*each, strict=True))}
    return found


def _behind(job: Job, runs: Sequence[Run], pp: int) -> list[Reduction]:
    """The one reduction of a pipeline rank: behind its own order, or behind the whole pipeline."""
    own = [run.lanes[pp][-1].end if job.dp_early else run.end for run in runs]
    end = max(own) + AFTER_NS + job.dp_ns
    return [Reduction(begin + AFTER_NS, end) for begin in own]


def _buckets(job: Job, runs: Sequence[Run], pp: int) -> Iterator[list[Reduction]]:
    """The buckets of every stage of a pipeline rank, which follow each other on one stream."""
    backwards = [_last_backwards(run, pp) for run in runs]
    count = job.dp_buckets
    free, took = 0, job.dp_ns // (count * len(backwards[0]))
    for stage in zip(*backwards, strict=True):
        for bucket in range(count):
            ready = [back.start + (back.end - back.start) * (2 * bucket + 1) // (2 * count) for back in stage]
            begins = [max(free, moment) for moment in ready]
            free = max(begins) + took
            yield [Reduction(begin, free, back.action) for begin, back in zip(begins, stage, strict=True)]


def _last_backwards(run: Run, pp: int) -> list[Done]:
    """The backwards behind which all gradients of a stage are there, in the order of their starts."""
    makes = (part for ran in run.lanes[pp] for part in ran.parts if part.action.kind in {Kind.B, Kind.W})
    last = {part.action.stage: part for part in makes}
    return sorted(last.values(), key=lambda part: part.start)
