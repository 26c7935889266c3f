"""The files of a job, whole or not there, all in one folder: a trace a rank, or of nsys an export a rank or a host."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bubblescope import atomic
from bubblescope.emit.job import Job
from bubblescope.emit.kineto import content
from bubblescope.emit.merge import merged
from bubblescope.emit.nsys import export
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
        The files written: traces in the order of their first rank, then that of the truth.

    Raises:
        UsageError: The order of the job cannot run, or a file exists, or the folder cannot be written.
    """
    simulate(job)
    makers = _makers(job, folder)
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


def _makers(job: Job, folder: Path) -> dict[Path, Callable[[], bytes]]:
    """What makes the content of every trace."""
    exported: dict[Path, list[int]] = {}
    makers: dict[Path, Callable[[], bytes]] = {}
    suffix = ".json.gz" if job.compress else ".json"
    recorded = [rank for rank in range(job.world) if rank not in job.missing]
    if job.one_file != "no":
        for cycle in range(job.cycles):
            name = _name(job, _part("trace", cycle), f"all{cycle or ''}", "job", suffix)
            makers[folder / name] = partial(_traces, job, recorded, name, cycle)
        return makers
    for rank in recorded:
        if job.recorders[rank] == "kineto":
            for cycle in range(job.cycles):
                key = f"{rank}/{cycle}" if cycle else str(rank)
                name = _name(job, _part("trace", cycle), key, f"rank{rank}", suffix)
                makers[folder / name] = partial(_trace, job, rank, name, cycle)
        else:
            whose = f"node{job.host_of(rank)}" if job.one_file_a_host else f"rank{rank}"
            path = folder / _name(job, "report", whose, whose, ".sqlite")
            exported.setdefault(path, []).append(rank)
            makers[path] = partial(export, job, exported[path])
    return makers


def _name(job: Job, what: str, key: str, whose: str, suffix: str) -> str:
    """A file's name: whose it is, or what only the seed and a key can tell."""
    if job.neutral_names:
        return f"{what}_{hashlib.sha256(f'{job.seed}/{key}'.encode()).hexdigest()[:12]}{suffix}"
    return f"{whose}_{what}{suffix}"


def _part(what: str, cycle: int) -> str:
    return f"{what}_cycle{cycle}" if cycle else what


def _trace(job: Job, rank: int, name: str, cycle: int) -> bytes:
    return _written(job, content(job, rank, name.removesuffix(".gz"), cycle))


def _traces(job: Job, ranks: list[int], name: str, cycle: int) -> bytes:
    return _written(job, merged(job, [content(job, rank, name.removesuffix(".gz"), cycle) for rank in ranks]))


def _written(job: Job, document: dict[str, Any]) -> bytes:
    data = orjson.dumps(document)
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
