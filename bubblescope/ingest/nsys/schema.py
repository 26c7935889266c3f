"""The tables and columns that are read of an export.

NVIDIA documents them with examples (Nsight Systems user guide, "SQLite Schema Reference"); times are nanoseconds
since the session began. A thread is named by `globalTid`: hardware (8 bits), virtual machine (8), process (24),
thread (24); `globalPid` is the same without the thread.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bubblescope.ingest.nsys.database import Table
from bubblescope.model.columns import Times

__all__ = [
    "CAPTURE",
    "CUDA_DEVICES",
    "DIAGNOSTICS",
    "DOMAIN",
    "ENVIRONMENT",
    "EXPORT",
    "GPUS",
    "GRAPHS",
    "KERNELS",
    "MEMCPY",
    "MEMSET",
    "MPI_RANKS",
    "NVTX",
    "PAYLOAD_ENTRIES",
    "RANGES",
    "RUNTIME",
    "SESSION",
    "STRINGS",
    "TABLES",
    "pid_of",
    "process_of",
    "tid_of",
]

_WORK = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")

KERNELS: Final = Table("CUPTI_ACTIVITY_KIND_KERNEL", (*_WORK, "demangledName"))
MEMCPY: Final = Table("CUPTI_ACTIVITY_KIND_MEMCPY", (*_WORK, "copyKind"))
MEMSET: Final = Table("CUPTI_ACTIVITY_KIND_MEMSET", _WORK)
GRAPHS: Final = Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _WORK)
RUNTIME: Final = Table("CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId"))
NVTX: Final = Table(
    "NVTX_EVENTS",
    ("start", "end", "eventType", "globalTid", "domainId", "textId", "jsonTextId"),
    ("text", "jsonText", "binaryData"),
)
PAYLOAD_ENTRIES: Final = Table("NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "schemaId", "type", "offset"), ("name",))
STRINGS: Final = Table("StringIds", ("id",), ("value",))
SESSION: Final = Table("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
ENVIRONMENT: Final = Table("TARGET_INFO_SYSTEM_ENV", (), ("name", "value"))
CAPTURE: Final = Table("META_DATA_CAPTURE", (), ("name", "value"))
EXPORT: Final = (Table("META_DATA_EXPORT", (), ("name", "value")), Table("EXPORT_META_DATA", (), ("name", "value")))
GPUS: Final = Table("TARGET_INFO_GPU", ("id",), ("name",))
CUDA_DEVICES: Final = Table("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
MPI_RANKS: Final = Table("MPI_RANKS", ("globalTid", "rank"))
DIAGNOSTICS: Final = Table("DIAGNOSTIC_EVENT", ("severity",), ("text",))

TABLES: Final = (
    KERNELS, MEMCPY, MEMSET, GRAPHS, RUNTIME, NVTX, PAYLOAD_ENTRIES, STRINGS, SESSION, ENVIRONMENT, CAPTURE, *EXPORT,
    GPUS, CUDA_DEVICES, MPI_RANKS, DIAGNOSTICS,
)  # fmt: skip
"""All that is read of an export."""

RANGES: Final = (59, 60, 70, 71)
"""Types of events that last: pushed and popped, started and ended, and both from a file of events."""

DOMAIN: Final = 75
"""The type of the event that names a domain."""

_THREAD = (1 << 24) - 1


def process_of(thread: Times) -> Times:
    """The `globalPid` of each `globalTid`."""
    return thread & ~np.int64(_THREAD)


def pid_of(process: int) -> int:
    """The operating system's number of a process, from any of its two ids."""
    return process >> 24 & _THREAD


def tid_of(thread: int) -> int:
    """The operating system's number of a thread."""
    return thread & _THREAD
