"""From files to an analysis: the map step over files, in process or in a pool, then the reduce step."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from bubblescope.align.resolve import resolve
from bubblescope.analysis.assemble import assemble
from bubblescope.errors import InputError, UsageError
from bubblescope.ingest import registry, sources
from bubblescope.model.analysis import Analysis
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.timeline import RankTimeline
from bubblescope.reconstruct.passes import reconstruct
from bubblescope.schedules.registry import find

__all__ = ["Progress", "analyze", "load", "read_rank"]

Progress = Callable[[int, int], None]
"""Told (bytes done, bytes in all), compressed as they lie on disk."""

WORTH_A_POOL = 24 * 2**20
"""Bytes of compressed input below which starting processes costs more than it saves."""


def analyze(traces: Sequence[str], options: Options = Options(), progress: Progress | None = None) -> Analysis:  # noqa: B008 - frozen
    """Measure the bubble of a job.

    Args:
        traces: files, directories or globs; those of all ranks of one job.
        options: what the user states or asks.
        progress: told how many bytes are read.

    Raises:
        InputError: a trace is missing, unreadable or unusable, or two files claim one rank.
        UsageError: an option asks for something that cannot be.
    """
    if options.schedule is not None:
        find(options.schedule)  # a misspelt name should not cost a long read first
    job = load(traces, options, progress)
    return Analysis(job, assemble(job, options))


def load(traces: Sequence[str], options: Options = Options(), progress: Progress | None = None) -> Job:  # noqa: B008 - frozen
    """Read traces and join them to a job; raises as `analyze` does."""
    found = sources.expand(list(traces))
    timelines = _by_rank(_mapped(found.paths, options, progress))
    if options.ranks is not None:
        timelines = {rank: t for rank, t in timelines.items() if rank in options.ranks}
        if not timelines:
            raise UsageError("none of the ranks of --ranks is in the traces")
    job = resolve(timelines, options)
    return dataclasses.replace(job, findings=(*found.findings, *job.findings))


def read_rank(path: Path, options: Options, progress: Callable[[int], None] | None = None) -> RankTimeline:
    """The map step: one file to one timeline. Its rank is -1 where the file does not tell it."""
    trace = registry.read(path, progress)
    rank = trace.identity.rank
    return reconstruct(trace, options, -1 if rank is None else rank)


def _mapped(paths: Sequence[Path], options: Options, progress: Progress | None) -> list[RankTimeline]:
    sizes = [path.stat().st_size for path in paths]
    total = sum(sizes)
    tell = progress or (lambda _done, _total: None)
    jobs = min(options.jobs or os.cpu_count() or 1, len(paths))
    if jobs == 1 or (options.jobs is None and total < WORTH_A_POOL):
        before = [sum(sizes[:i]) for i in range(len(sizes))]
        return [
            read_rank(path, options, lambda done, base=base: tell(base + done, total))  # type: ignore[misc]
            for path, base in zip(paths, before, strict=True)
        ]
    with _pool(jobs) as pool:
        return _in_pool(pool, paths, options, tell)


@contextmanager
def _pool(jobs: int) -> Iterator[Executor]:
    """A pool of fresh processes; whatever goes wrong, nothing of it goes on working."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise InputError(
            "a process that read a trace was killed, most likely because memory ran out",
            hint=f"read fewer files at a time: it was --jobs {jobs}",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_pool(pool: Executor, paths: Sequence[Path], options: Options, tell: Progress) -> list[RankTimeline]:
    """One file a task, the largest first, so that no worker ends long after the others."""
    sizes = {path: path.stat().st_size for path in paths}
    total, done = sum(sizes.values()), 0
    tasks = {pool.submit(read_rank, path, options): path for path in sorted(paths, key=lambda p: -sizes[p])}
    results: dict[Path, RankTimeline] = {}
    for task in as_completed(tasks):
        results[tasks[task]] = task.result()
        done += sizes[tasks[task]]
        tell(done, total)
    return [results[path] for path in paths]


def _by_rank(timelines: Sequence[RankTimeline]) -> dict[int, RankTimeline]:
    """Timelines by rank; those that do not know theirs take the free numbers, in the order of the files."""
    known: dict[int, RankTimeline] = {}
    for timeline in timelines:
        if timeline.rank >= 0:
            other = known.setdefault(timeline.rank, timeline)
            if other is not timeline:
                raise InputError(
                    f"rank {timeline.rank} is claimed by two files: {other.source.path} and {timeline.source.path}",
                    hint="leave one of them out: one run writes one trace a rank",
                )
    free = (rank for rank in range(len(timelines) + max(known, default=0) + 1) if rank not in known)
    for timeline in timelines:
        if timeline.rank < 0:
            rank = next(free)
            identity = dataclasses.replace(timeline.identity, rank=rank, rank_source="order")
            known[rank] = dataclasses.replace(timeline, rank=rank, identity=identity)
    return known
