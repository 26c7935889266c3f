"""The map step: each file to what is kept of it, in this process or in several.

It knows one file at a time, and imports nothing of what joins them: a process that reads is ready soon.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from bubblescope.errors import InputError
from bubblescope.ingest import registry
from bubblescope.ingest.pieces import Split, cut
from bubblescope.model.options import Options
from bubblescope.model.slices import RankSlices
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.reconstruct.passes import reconstruct
from bubblescope.reconstruct.slices import reconstruct_slices

__all__ = ["Progress", "Work", "each_file", "read_ranks", "readable", "timeline_of"]

Progress = Callable[[int, int], None]
"""Told (bytes done, bytes in all), compressed as they lie on disk."""

WORTH_A_POOL = 24 * 2**20
"""Bytes of compressed input below which starting processes costs more than it saves."""

MOST_A_CORE = 4
"""Processes a core, however many are asked for: they wait for disks, but each takes a while to start."""

DAMAGE = frozenset({"repaired", "truncated"})
"""Findings on files that were not as they should be; `Options.strict` refuses them."""

Found = TypeVar("Found")
Kept_co = TypeVar("Kept_co", covariant=True)


class Work(Protocol[Kept_co]):
    """What is done with a file, wherever; `progress` is told the bytes of it that are read, `split` who helps."""

    def __call__(
        self,
        path: Path,
        options: Options,
        progress: Callable[[int], None] | None = None,
        split: Split | None = None,
    ) -> Kept_co:
        """What is kept of the file."""


def read_ranks(
    path: Path, options: Options, progress: Callable[[int], None] | None = None, split: Split | None = None
) -> list[RankTimeline]:
    """The map step: one file to the timelines of its ranks. A rank is -1 where the file does not tell it."""
    with readable(path):
        return [timeline_of(trace, options) for trace in registry.read(path, progress, split)]


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
    work: Work[Found],
    paths: Sequence[Path],
    options: Options,
    progress: Progress | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> dict[Path, Found]:
    """What `work` makes of each file, in this process or where it is worth it in a pool; `work` must be importable.

    `meanwhile` is called once a pool is at work.
    """
    sizes = {path: _size(path) for path in paths}
    tell = progress or (lambda _done, _total: None)
    jobs = _processes(options.jobs, len(paths))
    if jobs == 1 or (options.jobs is None and sum(sizes.values()) < WORTH_A_POOL):
        return _in_process(work, sizes, options, tell)
    if len(paths) == 1:
        return _in_pieces(work, paths[0], options, jobs, tell)
    with _pool(jobs) as pool:
        tasks = _submitted(pool, work, sizes, options)
        meanwhile()
        return _gathered(tasks, sizes, tell)


def _processes(asked: int | None, files: int) -> int:
    """How many processes read: one a processor; as many as asked for, but not more than could be of use.

    Several read one file in pieces, of several files each as a whole.
    """
    cores = os.cpu_count() or 1
    most = MOST_A_CORE * cores
    return min(asked or cores, most, files if files > 1 else most)


def _in_pieces(work: Work[Found], path: Path, options: Options, jobs: int, tell: Progress) -> dict[Path, Found]:
    """One file, by this process and as many others as are of use."""
    size = _size(path)
    with readable(path):
        pieces = cut(path, jobs)
    if len(pieces) < 2:
        return _in_process(work, {path: size}, options, tell)
    with _pool(len(pieces) - 1) as pool:
        with _interrupts_held():
            for _ in pieces[1:]:
                pool.submit(int)  # so that all processes are there before anything is read
        return {path: work(path, options, lambda done: tell(done, size), Split(pieces, pool))}


def _in_process(work: Work[Found], sizes: Mapping[Path, int], options: Options, tell: Progress) -> dict[Path, Found]:
    total, before = sum(sizes.values()), accumulate(sizes.values(), initial=0)
    return {
        path: work(path, options, lambda done, base=base: tell(base + done, total))  # type: ignore[misc]
        for path, base in zip(sizes, before, strict=False)
    }


@contextmanager
def _pool(jobs: int) -> Iterator[Executor]:
    """A pool of processes; whatever goes wrong, nothing of it goes on working."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context(_start_method()), initializer=_leave_interrupts)
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


def _start_method() -> str:
    """How a process starts: a fork has all imports at once, but would also copy locks that other threads hold."""
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))  # also those that Python knows nothing of
    except OSError:
        return "spawn"
    return "fork" if threads == 1 else "spawn"


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


def _submitted(
    pool: Executor, work: Work[Found], sizes: Mapping[Path, int], options: Options
) -> dict[Future[Found], Path]:
    """One file a task, the largest first, so that no worker ends long after the others."""
    with _interrupts_held():
        return {pool.submit(work, path, options): path for path in sorted(sizes, key=lambda path: -sizes[path])}


def _gathered(tasks: Mapping[Future[Found], Path], sizes: Mapping[Path, int], tell: Progress) -> dict[Path, Found]:
    """What comes of the tasks, as they end."""
    total, done = sum(sizes.values()), 0
    results: dict[Path, Found] = {}
    for task in as_completed(tasks):
        results[tasks[task]] = task.result()
        done += sizes[tasks[task]]
        tell(done, total)
    return results
