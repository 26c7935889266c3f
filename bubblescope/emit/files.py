"""The files of a job: one Kineto trace a rank, whole or not there, all in one folder."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson

from bubblescope import atomic
from bubblescope.emit.job import Job
from bubblescope.emit.kineto import content
from bubblescope.emit.record import record
from bubblescope.emit.simulate import simulate
from bubblescope.emit.truth import truth
from bubblescope.errors import UsageError

__all__ = ["TRUTH_FILE", "write"]

TRUTH_FILE = "truth.json"


def write(job: Job, folder: Path, *, overwrite: bool = False, with_truth: bool = False) -> list[Path]:
    """Write the trace of every rank that is not missing; the same job leaves the same bytes.

    Args:
        job: what to emit.
        folder: where to; it is made where it is missing, and nothing outside is touched.
        overwrite: whether files that are there may be replaced.
        with_truth: whether to leave the truth beside the traces, in `truth.json`.

    Returns:
        The files written: traces in rank order, then that of the truth.

    Raises:
        UsageError: The order of the job cannot run, or a file exists, or the folder cannot be written.
    """
    simulate(job)
    makers: dict[Path, Callable[[], bytes]] = {
        folder / _name(job, rank): partial(_trace, job, rank) for rank in range(job.world) if rank not in job.missing
    }
    if with_truth:
        makers[folder / TRUTH_FILE] = lambda: record(truth(job))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not overwrite:
            _refuse(makers)
        for path, make in makers.items():
            atomic.write(path, make())
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    return list(makers)


def _name(job: Job, rank: int) -> str:
    """The file of a rank."""
    suffix = ".json.gz" if job.compress else ".json"
    if job.neutral_names:
        return f"trace_{hashlib.sha256(f'{job.seed}/{rank}'.encode()).hexdigest()[:12]}{suffix}"
    return f"rank{rank}_trace{suffix}"


def _trace(job: Job, rank: int) -> bytes:
    data = orjson.dumps(content(job, rank, _name(job, rank).removesuffix(".gz")))
    return _gzip(data) if job.compress else data


def _gzip(data: bytes) -> bytes:
    """Fast, and the same bytes for the same data: the header holds no time."""
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


def _refuse(paths: dict[Path, Callable[[], bytes]]) -> None:
    """Refuse to replace what is there."""
    taken = [path for path in paths if os.path.lexists(path)]
    if taken:
        more = f" and {len(taken) - 1} more files exist" if len(taken) > 1 else " exists"
        raise UsageError(
            f"{taken[0]}{more} already", hint="name an empty folder, or overwrite with -f (in Python, overwrite=True)"
        )
