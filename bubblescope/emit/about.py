"""What an export tells about itself, the session, the machine and the processes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from bubblescope.emit.job import Job
from bubblescope.emit.tables import MACHINE, SCHEMA_VERSION, Row, Strings, global_id
from bubblescope.emit.tape import Tape

__all__ = ["about"]

HOSTNAME = 619  # of the properties of a system
GPU = {
    "vmId": MACHINE,
    "name": "NVIDIA H100 80GB HBM3",
    "isDiscrete": 1,
    "totalMemory": 85_899_345_920,
    "smCount": 132,
    "computeMajor": 9,
    "computeMinor": 0,
}
PLANTED = 'DEMO_TOKEN="not-for-reports-7c1f"'
"""Environments hold such things, and no report may repeat them."""


def about(job: Job, tapes: list[Tape], origin: int, strings: Strings) -> dict[str, Iterable[Row]]:
    """The tables of a session that began at `origin`, in nanoseconds since the epoch by the host's clock."""
    tables: dict[str, Iterable[Row]] = {
        "META_DATA_EXPORT": _pairs("EXPORT_", _export(job)),
        "META_DATA_CAPTURE": _pairs("", _capture(job, tapes)),
        "TARGET_INFO_GPU": [
            GPU | {"id": device, "cuDevice": device, "busLocation": f"0000:{16 + device:02x}:00.0"}
            for device in sorted({tape.device for tape in tapes})
        ],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": t.device, "cudaId": t.device, "pid": t.pid} for t in tapes],
        "PROCESSES": [
            {"globalPid": global_id(pid), "pid": pid, "name": "python3"} for pid in dict.fromkeys(t.pid for t in tapes)
        ],
        "ThreadNames": [
            {"nameId": strings.ident(name), "priority": 20, "globalTid": global_id(tape.pid, tid)}
            for tape in tapes
            for name, tid in (("python3", tape.main), ("pt_autograd_0", tape.engine))
        ],
    }
    if job.metadata != "none":
        moment = datetime.fromtimestamp(origin // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        host = {"globalVid": MACHINE, "devStateName": "Local (CLI)", "name": "Hostname", "nameEnum": HOSTNAME}
        tables |= {
            "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": origin, "utcTime": moment, "localTime": moment}],
            "TARGET_INFO_SYSTEM_ENV": [host | {"value": f"node{job.host_of(tapes[0].rank)}"}],
        }
    return tables


def _pairs(prefix: str, told: Iterable[tuple[str, str]]) -> list[Row]:
    return [{"name": prefix + name, "value": value} for name, value in told]


def _export(job: Job) -> Iterable[tuple[str, str]]:
    """Which version wrote the file, and what it was asked for."""
    yield "PRODUCT_NAME", "NVIDIA Nsight Systems"
    yield "PRODUCT_VERSION", "2026.2.1.210"
    yield "SCHEMA_VERSION", SCHEMA_VERSION
    for part, number in zip(("MAJOR", "MINOR", "MICRO"), SCHEMA_VERSION.split("."), strict=True):
        yield f"SCHEMA_VERSION_{part}", number
    yield "PARAM_INCLUDE_JSON", "true" if job.payloads == "json" else "false"
    yield "PARAM_INCLUDE_BLOBS", "true" if job.payloads == "blobs" else "false"
    yield "PARAM_TIME_NORMALIZE", "false"
    yield "PARAM_TIME_SHIFT", "0"


def _capture(job: Job, tapes: list[Tape]) -> Iterable[tuple[str, str]]:
    """What was launched: a rank, or the launcher of a host's ranks, whose environment tells none of theirs."""
    yield "CAPTURE_EVENT_TYPE", "NvtxEvents"
    yield "CAPTURE_EVENT_TYPE", "Cuda"
    yield "CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph"
    yield "PROCESS_0:COMMAND", "torchrun" if job.one_file_a_host else "python3"
    if job.metadata != "none":
        if not job.one_file_a_host:
            yield "PROCESS_0:ENVIRONMENT_VARIABLE", f'RANK="{tapes[0].rank}"'
            yield "PROCESS_0:ENVIRONMENT_VARIABLE", f'WORLD_SIZE="{job.world}"'
        yield "PROCESS_0:ENVIRONMENT_VARIABLE", PLANTED
