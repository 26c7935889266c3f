"""Every recorded trace, whole and damaged in hundreds of ways: an answer or an error, never a traceback or a hang.

The files are those of ../shared/traces, where that folder is there, and our own samples. Whoever looks for one failure
again: `mutated(path.read_bytes(), seed)` writes the same file everywhere.
"""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import SAMPLES
from tests.damage.mutate import mutated
from tests.damage.runs import Hung, analyzed

SMALL = 40 << 10
"""Bytes on the disk of a trace that is mutated: one that is analyzed in a few hundredths of a second."""

SEEDS = 200
PROCESSES = 2
MEMORY = 4 << 30
"""Bytes of address space of a process; nothing in the corpus needs half of it."""

FORMATS = ("json", "table", "markdown", "csv")
SLOW = ("bytedance_st",)
"""Jobs of which even a small file is a whole job with thousands of actions."""


def traces(folder: Path) -> list[Path]:
    """The different files of a folder, whatever they are; notes and truths beside them are no traces."""
    found: dict[bytes, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in ("truth.json", "recorded.json") and path.suffix not in (".md", ".yaml"):
            found.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return list(found.values())


def small(paths: Sequence[Path], size: int = SMALL) -> list[Path]:
    """Those that are mutated: no larger than `size`, in bytes."""
    return [path for path in paths if path.stat().st_size <= size and path.parent.name not in SLOW]


def faults(task: tuple[Path, Sequence[int]]) -> list[str]:
    """What went wrong with the mutations of a file, a line each."""
    path, seeds = task
    data, found = path.read_bytes(), []
    with TemporaryDirectory() as folder:
        for seed in seeds:
            name, damaged = mutated(data, seed)
            target = Path(folder) / path.name
            target.write_bytes(damaged)
            if (fault := fault_of([target], FORMATS[seed % len(FORMATS)])) is not None:
                found.append(f"{path} seed {seed} ({name}): {fault}")
    return found


def fault_of(paths: Sequence[Path], form: str = "json") -> str | None:
    """Why an analysis did not end as it may."""
    try:
        return analyzed(paths, "--format", form).fault
    except Hung as hung:
        return str(hung)


def bounded_memory() -> None:
    """Let a process fail rather than take all memory of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def all_faults(tasks: Sequence[tuple[Path, Sequence[int]]]) -> Iterator[str]:
    """The faults of all tasks, by two processes."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"), initializer=bounded_memory) as pool:
        for found in pool.map(faults, tasks):
            yield from found


def test_samples_survive_damage():
    """A few mutations of each of our own samples, which are always there."""
    tasks = [(path, range(number, number + 6)) for number, path in enumerate(small(traces(SAMPLES), 2 * SMALL))]
    assert tasks
    assert not list(all_faults(tasks))


def test_recorded_traces_are_answered(shared):
    """Each file by itself, and each folder as a job: an answer or an error."""
    files = traces(shared)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"), initializer=bounded_memory) as pool:
        found = pool.map(fault_of, [[path] for path in (*files, *sorted({path.parent for path in files}))])
        assert not [fault for fault in found if fault is not None]


def test_recorded_traces_survive_damage(shared):
    """A few mutations of each small trace, others than those of the slow test."""
    tasks = [(path, [SEEDS + number]) for number, path in enumerate(small(traces(shared)))]
    assert not list(all_faults(tasks))


@pytest.mark.slow
def test_the_corpus_survives_damage(shared):
    """Two hundred mutations of each small trace."""
    assert not list(all_faults([(path, range(SEEDS)) for path in small(traces(shared))]))
