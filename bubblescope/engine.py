"""From files to an analysis: the map step over files, in process or in a pool, then the reduce step."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from bubblescope.advice.advise import advise
from bubblescope.align.communicators import ranked
from bubblescope.align.places import placed
from bubblescope.align.resolve import resolve
from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import Study, study
from bubblescope.errors import InputError, UndecidedError, UsageError
from bubblescope.forecast.forecaster import LIMIT, Forecaster
from bubblescope.forecast.standard import standard
from bubblescope.ingest import registry, sources
from bubblescope.model.analysis import Analysis
from bubblescope.model.changes import Changes
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.model.slices import RankSlices
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.model.whatif import WhatIf
from bubblescope.reconstruct.passes import reconstruct
from bubblescope.reconstruct.slices import reconstruct_slices
from bubblescope.schedules.registry import find

__all__ = [
    "Progress",
    "Traces",
    "Work",
    "analyze",
    "each_file",
    "join",
    "load",
    "read_ranks",
    "readable",
    "timeline_of",
    "whatif",
]

Progress = Callable[[int, int], None]
"""Told (bytes done, bytes in all), compressed as they lie on disk."""

WORTH_A_POOL = 24 * 2**20
"""Bytes of compressed input below which starting processes costs more than it saves."""

MOST_A_CORE = 4
"""Processes a core, however many are asked for: they wait for disks, but each takes half a second to start."""

MOST_REPLAYED = 10_000
"""Actions of the steps that are replayed for advice: more steps make no gain surer than it needs to be."""

DAMAGE = frozenset({"repaired", "truncated"})
"""Findings on files that were not as they should be; `Options.strict` refuses them."""

Found = TypeVar("Found")
Kept_co = TypeVar("Kept_co", covariant=True)


class Work(Protocol[Kept_co]):
    """What is done with a file, wherever; `progress` is told the bytes of it that are read."""

    def __call__(self, path: Path, options: Options, progress: Callable[[int], None] | None = None) -> Kept_co:
        """What is kept of the file."""


Traces = str | Path | Sequence[str | Path]
"""Files, directories or globs, one or several: those of all ranks of one job."""


def analyze(traces: Traces, options: Options = Options(), progress: Progress | None = None) -> Analysis:  # noqa: B008 - frozen
    """Measure the bubble of a job.

    Args:
        traces: files, directories or globs; those of all ranks of one job.
        options: what the user states or asks.
        progress: told how many bytes are read.

    Raises:
        InputError: a trace is missing, unreadable or unusable, or two files claim one rank.
        UsageError: an option asks for something that cannot be.
    """
    _known(options.schedule)
    job = load(traces, options, progress)
    found = study(job, options)
    return Analysis(job, _advised(found, assemble(found, options), options))


def _known(*schedules: str | None) -> None:
    """Raise UsageError if one is unknown: a misspelt name should not cost a long read first."""
    for name in schedules:
        if name is not None:
            find(name)


def _advised(found: Study, report: Report, options: Options) -> Report:
    """The report with what would help."""
    try:
        forecaster = Forecaster.of(found, options, most_actions=MOST_REPLAYED)
    except UndecidedError:
        forecaster = None
    return dataclasses.replace(report, findings=advise(found, report, forecaster))


def whatif(
    traces: Traces,
    changes: Sequence[Changes] = (),
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
    *,
    anyway: bool = False,
) -> WhatIf:
    """Replay a job with something changed.

    Args:
        traces: as for `analyze`.
        changes: each is forecast by itself; without any the usual ones are.
        options: what the user states or asks.
        progress: told how many bytes are read.
        anyway: forecast also where the replay of the unmodified run misses it by more than 5 %.

    Raises:
        UndecidedError: the run cannot be replayed, or its replay misses it by more than 5 %.
        InputError, UsageError: as `analyze` does.
    """
    _known(options.schedule, *(each.schedule for each in changes))
    found = study(load(traces, options, progress), options)
    forecaster = Forecaster.of(found, options)
    if forecaster.error > LIMIT and not anyway:
        raise UndecidedError(
            f"the replay of the unmodified run misses it by {100 * forecaster.error:.1f}% of a step, "
            f"more than {100 * LIMIT:.0f}%: a forecast from it would be a guess",
            hint="--anyway makes it all the same; bubblescope analyze tells what the causes leave over",
        )
    report = assemble(found, options)
    return WhatIf(
        tool=report.tool,
        quality=report.quality,
        trusted=report.bubble.trusted,
        measured=forecaster.measured,
        replayed=forecaster.replayed,
        error=forecaster.error,
        steps=forecaster.steps,
        forecasts=tuple(map(forecaster.forecast, changes or standard(forecaster.now))),
    )


def load(traces: Traces, options: Options = Options(), progress: Progress | None = None) -> Job:  # noqa: B008 - frozen
    """Read traces and join them to a job; raises as `analyze` does."""
    named = [traces] if isinstance(traces, str | Path) else traces
    found = sources.expand([str(trace) for trace in named])
    each = each_file(read_ranks, found.paths, options, progress)
    job = join([timeline for path in found.paths for timeline in each[path]], options)
    return dataclasses.replace(job, findings=(*found.findings, *job.findings))


def join(read: Sequence[RankTimeline], options: Options = Options()) -> Job:  # noqa: B008 - frozen
    """The reduce step up to the job: timelines of several files, in the order of these; raises as `analyze` does."""
    timelines = _by_rank(placed(ranked(read)))
    if options.ranks is not None:
        timelines = {rank: t for rank, t in timelines.items() if rank in options.ranks}
        if not timelines:
            raise UsageError("none of the ranks of --ranks is in the traces")
    return resolve(timelines, options)


def read_ranks(path: Path, options: Options, progress: Callable[[int], None] | None = None) -> list[RankTimeline]:
    """The map step: one file to the timelines of its ranks. A rank is -1 where the file does not tell it."""
    with readable(path):
        return [timeline_of(trace, options) for trace in registry.read(path, progress)]


def timeline_of(found: RankTrace | RankSlices, options: Options) -> RankTimeline:
    """What a rank's events tell by themselves; raises InputError where they tell no time of any work."""
    if options.strict:
        _check_whole(found.findings)
    rank = -1 if found.identity.rank is None else found.identity.rank
    if isinstance(found, RankSlices):
        return reconstruct_slices(found, rank)
    if not (found.on_gpu or len(found.ops)):
        raise InputError(
            f"{found.source.path}: expected kernels or operators, found named ranges only, which tell no time of any "
            "work",
            hint="Give traces of a profiler; or a timeline of your own whose slices are called forward and backward, "
            "as docs/timelines.md says.",
        )
    return reconstruct(found, options, rank)


def _check_whole(findings: Sequence[Finding]) -> None:
    """Raise InputError if one tells of damage."""
    for finding in findings:
        if finding.code in DAMAGE:
            raise InputError(
                f"{finding.input}: {finding.message}", hint="Without --strict it is read as far as it goes."
            )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever the system refuses to do with a file is an error of the input: it was there when it was listed."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", hint="Check the file.") from error


def _size(path: Path) -> int:
    with readable(path):
        return path.stat().st_size


def each_file(
    work: Work[Found], paths: Sequence[Path], options: Options, progress: Progress | None = None
) -> dict[Path, Found]:
    """What `work` makes of each file, in this process or where it is worth it in a pool; `work` must be importable."""
    sizes = {path: _size(path) for path in paths}
    tell = progress or (lambda _done, _total: None)
    jobs = _processes(options.jobs, len(paths))
    if jobs == 1 or (options.jobs is None and sum(sizes.values()) < WORTH_A_POOL):
        return _in_process(work, sizes, options, tell)
    with _pool(jobs) as pool:
        return _in_pool(pool, work, sizes, options, tell)


def _processes(asked: int | None, files: int) -> int:
    """How many processes read: one a processor; as many as asked for, but not more than could be of use."""
    cores = os.cpu_count() or 1
    return min(asked or cores, files, MOST_A_CORE * cores)


def _in_process(work: Work[Found], sizes: Mapping[Path, int], options: Options, tell: Progress) -> dict[Path, Found]:
    total, before = sum(sizes.values()), accumulate(sizes.values(), initial=0)
    return {
        path: work(path, options, lambda done, base=base: tell(base + done, total))  # type: ignore[misc]
        for path, base in zip(sizes, before, strict=False)
    }


@contextmanager
def _pool(jobs: int) -> Iterator[Executor]:
    """A pool of fresh processes; whatever goes wrong, nothing of it goes on working."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts)
    try:
        yield pool
    except BaseException as error:
        _stop(pool)
        if not isinstance(error, BrokenProcessPool):
            raise
        raise InputError(
            "a process that read a trace was killed, most likely because memory ran out",
            hint=f"read fewer files at a time: it was --jobs {jobs}",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers in the middle of what they do: nobody waits for it any more."""
    workers = getattr(pool, "_processes", None) or {}  # there is no other way before Python 3.14
    for worker in list(workers.values()):
        worker.terminate()


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; what follows from it is for the parent to say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while workers start: none of them is left without its orders, or interrupted while it starts.

    They inherit a signal that is blocked. The parent may receive it in another thread all the same, and notes it.
    """
    held: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread() and handler is not None
    if ours:
        signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        yield
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if ours:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _in_pool(
    pool: Executor, work: Work[Found], sizes: Mapping[Path, int], options: Options, tell: Progress
) -> dict[Path, Found]:
    """One file a task, the largest first, so that no worker ends long after the others."""
    total, done = sum(sizes.values()), 0
    with _interrupts_held():
        tasks = {pool.submit(work, path, options): path for path in sorted(sizes, key=lambda p: -sizes[p])}
    results: dict[Path, Found] = {}
    for task in as_completed(tasks):
        results[tasks[task]] = task.result()
        done += sizes[tasks[task]]
        tell(done, total)
    return results


def _by_rank(timelines: Sequence[RankTimeline]) -> dict[int, RankTimeline]:
    """Timelines by rank; those that do not know theirs take the free numbers, in the order of the files."""
    known: dict[int, RankTimeline] = {}
    for timeline in timelines:
        if timeline.rank >= 0:
            other = known.setdefault(timeline.rank, timeline)
            if other is not timeline:
                raise _claimed_twice(other, timeline)
    free = (rank for rank in range(len(timelines) + max(known, default=0) + 1) if rank not in known)
    for timeline in timelines:
        if timeline.rank < 0:
            rank = next(free)
            identity = dataclasses.replace(timeline.identity, rank=rank, rank_source="order")
            known[rank] = dataclasses.replace(timeline, rank=rank, identity=identity)
    return known


def _claimed_twice(one: RankTimeline, other: RankTimeline) -> InputError:
    if one.source.path == other.source.path:
        return InputError(f"{one.source.path}: two processes claim rank {one.rank}", hint="record them again")
    return InputError(
        f"rank {one.rank} is claimed by two files: {one.source.path} and {other.source.path}",
        hint="leave one of them out: one run writes one trace a rank",
    )
