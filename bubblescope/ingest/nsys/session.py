"""What an export tells of the recording: when it began, where, with which GPUs, and who was who.

Environments and command lines hold secrets. Of variables only those are asked for, in the query itself, that
tell a rank, the number of ranks or a node; the value of no other ever leaves the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bubblescope.ingest.nsys.database import ABSENT, Database
from bubblescope.ingest.nsys.schema import (
    CAPTURE,
    CUDA_DEVICES,
    DIAGNOSTICS,
    ENVIRONMENT,
    EXPORT,
    GPUS,
    MPI_RANKS,
    SESSION,
    process_of,
)
from bubblescope.ingest.nsys.strings import decoded
from bubblescope.ingest.tables import MOST_RANKS, whole

__all__ = ["NODES", "RANKS", "Session", "session"]

RANKS: tuple[tuple[str, str], ...] = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables that launchers set: the rank of a process, and how many there are; the first pair that is there counts."""

NODES: tuple[str, ...] = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")
"""Variables that number the nodes of a job."""

_ALLOWED = (*(name for pair in RANKS for name in pair), *NODES)
_HOSTNAME = "Hostname"
_LARGEST_BASE = 1 << 62

_WARNING = 2  # of ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_LOST = re.compile(
    r"not all\b.*\bevents?\b|\bevents?\b.*\b(lost|missing|dropped|discarded)\b"
    r"|\b(lost|missing|dropped|discarded)\b.*\b(events?|records?|buffers?)\b|\bbuffers?\b.*\boverflow",
    re.IGNORECASE | re.DOTALL,
)
_SAID = 400  # bytes of a diagnostic in which it says what it is about
_KINDS = ("CUDA", "CUPTI", "NVTX", "OS runtime", "MPI", "NCCL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A recording.

    Attributes:
        begin: nanoseconds since the epoch at which times begin to count, None where the file does not say.
        host: the name of the machine.
        environment: allowed variables, and their numbers.
        gpus: names of GPUs by their number.
        gpu_of: number of the GPU by process number and the process' own number of the device.
        mpi: ranks by process, as MPI told.
        options: those options of the export that concern payloads, by name.
        lost: what nsys warns of having lost some events of, and how many warnings there are.
        unmerged: whether something was written that the file itself does not hold yet.
    """

    begin: int | None = None
    host: str | None = None
    environment: Mapping[str, int] = field(default_factory=dict)
    gpus: Mapping[int, str] = field(default_factory=dict)
    gpu_of: Mapping[tuple[int, int], int] = field(default_factory=dict)
    mpi: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[tuple[str, ...], int] = ((), 0)
    unmerged: bool = False


def session(database: Database) -> Session:
    """All that is told of a recording."""
    return Session(
        begin=_begin(database),
        host=_host(database),
        environment=_environment(database),
        gpus=_gpus(database),
        gpu_of=_gpu_of(database),
        mpi=_mpi(database),
        options=_options(database),
        lost=_lost(database),
        unmerged=database.unmerged,
    )


def _begin(database: Database) -> int | None:
    moments = [t for rows in database.rows(SESSION) for t in rows.numbers["utcEpochNs"].tolist()]
    return next((moment for moment in moments if 0 < moment < _LARGEST_BASE), None)


def _host(database: Database) -> str | None:
    if not database.has(ENVIRONMENT.name, "name"):
        return None
    names = [v for rows in database.rows(ENVIRONMENT, '"name" = ?', (_HOSTNAME,)) for v in rows.texts["value"] if v]
    return decoded(names[0]) if names else None


def _environment(database: Database) -> dict[str, int]:
    """The allowed variables; one that the file gives several values tells nothing."""
    told: dict[str, set[str]] = {}
    for name, value in (*_in_system(database), *_in_capture(database)):
        told.setdefault(name, set()).add(value.strip().strip('"'))
    numbers = {name: whole(next(iter(values)), MOST_RANKS) for name, values in told.items() if len(values) == 1}
    return {name: number for name, number in numbers.items() if number is not None}


def _in_system(database: Database) -> list[tuple[str, str]]:
    """Variables that stand in a row of their own."""
    if not database.has(ENVIRONMENT.name, "name"):
        return []
    where = f'"name" IN ({",".join("?" * len(_ALLOWED))})'
    return [
        (decoded(name), decoded(value))
        for rows in database.rows(ENVIRONMENT, where, _ALLOWED)
        for name, value in zip(rows.texts["name"], rows.texts["value"], strict=True)
        if name and value
    ]


def _in_capture(database: Database) -> list[tuple[str, str]]:
    """Variables as the recorder was given them: a row `PROCESS_0:ENVIRONMENT_VARIABLE` with `RANK="3"`."""
    if not (database.has(CAPTURE.name, "name") and database.has(CAPTURE.name, "value")):
        return []
    name = """substr("value", 1, instr("value", '=') - 1)"""
    where = f'"name" LIKE ? AND {name} IN ({",".join("?" * len(_ALLOWED))})'
    found = database.rows(CAPTURE, where, ("%ENVIRONMENT_VARIABLE%", *_ALLOWED))
    pairs = [decoded(value).partition("=") for rows in found for value in rows.texts["value"] if value]
    return [(name, value) for name, _, value in pairs]


def _gpus(database: Database) -> dict[int, str]:
    return {
        number: decoded(name)
        for rows in database.rows(GPUS)
        for number, name in zip(rows.numbers["id"].tolist(), rows.texts["name"], strict=True)
        if name
    }


def _gpu_of(database: Database) -> dict[tuple[int, int], int]:
    """A process counts the devices that it may see from 0."""
    found = {}
    for rows in database.rows(CUDA_DEVICES):
        for gpu, device, pid in zip(*(rows.numbers[name].tolist() for name in CUDA_DEVICES.numbers), strict=True):
            if ABSENT not in (gpu, device, pid):
                found[pid, device] = gpu
    return found


def _mpi(database: Database) -> dict[int, int]:
    """Ranks by process; a process that the file gives several is none of them."""
    told: dict[int, set[int]] = {}
    for rows in database.rows(MPI_RANKS):
        processes = process_of(rows.numbers["globalTid"]).tolist()
        for process, rank in zip(processes, rows.numbers["rank"].tolist(), strict=True):
            told.setdefault(process, set()).add(rank)
    return {p: min(ranks) for p, ranks in told.items() if len(ranks) == 1 and 0 <= min(ranks) < MOST_RANKS}


def _options(database: Database) -> dict[str, str]:
    names = ("EXPORT_PARAM_INCLUDE_JSON", "EXPORT_PARAM_INCLUDE_BLOBS")
    return {
        decoded(name): decoded(value)
        for table in EXPORT
        if database.has(table.name, "name")
        for rows in database.rows(table, '"name" IN (?, ?)', names)
        for name, value in zip(rows.texts["name"], rows.texts["value"], strict=True)
        if name and value
    }


def _lost(database: Database) -> tuple[tuple[str, ...], int]:
    """Kinds of events in the warnings that speak of lost ones. Their words stay in the file: they name paths."""
    texts = [
        decoded(text[:_SAID])
        for rows in database.rows(DIAGNOSTICS)
        for severity, text in zip(rows.numbers["severity"].tolist(), rows.texts["text"], strict=True)
        if text and (severity >= _WARNING or severity == ABSENT)
    ]
    losses = [text for text in texts if _LOST.search(text)]
    return tuple(kind for kind in _KINDS if any(kind in text for text in losses)), len(losses)
