"""What the name of something that ran on a GPU tells of it, whichever profiler and library wrote it."""

from __future__ import annotations

from bubblescope.model.columns import Bools
from bubblescope.model.names import matching
from bubblescope.model.trace import Kernels

__all__ = ["PEER_COPIES", "communicating", "moving_off_device"]

_COMMUNICATION = (
    r"(?i)^(void )?(nccl|rccl|msccl|hccl|hcom_|(\w+::)?cross_device_reduce"
    r"|.*deep_ep|.*\bep::(inter|intra)node|.*nvshmem)"
)

# Kineto (libkineto/src/CuptiActivity.cpp) writes `Memcpy HtoD (Pageable -> Device)`, roctracer `CopyHostToDevice`,
# Intel's PTI `zeCommandListAppendMemoryCopy(M2D)` with M for the memory of the host, nvprof `[CUDA memcpy HtoD]`.
_COPY = r"\[?(?:cuda |hip)?_?(?:mem_?cpy|(?:memory_?)?copy|zecommandlistappendmemorycopy)"
_AWAY = (
    r"[HM](?:to|2)[AHDM]|[AD](?:to|2)[HM]"
    r"|(?:host|pageable|pinned)[-_]?to[-_]?\w+|device[-_]?to[-_]?(?:host|pageable|pinned)"
)
_END = r"(?:async)?(?![a-z0-9])"
_OFF_DEVICE = rf"(?i){_COPY}[^a-z0-9]*(?:{_AWAY}){_END}"
PEER_COPIES = rf"(?i){_COPY}[^a-z0-9]*(?:P(?:to|2)P|peer[-_]?to[-_]?peer){_END}"
"""A pattern of the names of copies from one device to another, `Memcpy PtoP (Device -> Device)`."""


def communicating(kernels: Kernels, names: tuple[str, ...]) -> Bools:
    """Which rows move data between GPUs, by a library or by a copy: what waits for a peer is no work."""
    moving = matching(names, _COMMUNICATION) | matching(names, PEER_COPIES)
    rows: Bools = moving[kernels.name] | (kernels.comm >= 0)
    return rows


def moving_off_device(kernels: Kernels, names: tuple[str, ...]) -> Bools:
    """Which rows are copies between the host and the device.

    One whose name tells no direction is taken to stay on the device, as most copies do.
    """
    rows: Bools = matching(names, _OFF_DEVICE)[kernels.name]
    return rows
