"""What the categories of a Kineto trace mean, in today's names and in those of old releases.

A new profiler backend is a row here. Categories are compared without regard to case.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Kind", "Kinds"]


class Kind(IntEnum):
    """What an event is taken for."""

    DROP = 0
    OP = 1
    ANNOTATION = 2
    LAUNCH = 3
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    OTHER = 7  # no category that Kineto knows
    FRAME = 8


_CATEGORIES = {
    Kind.OP: "cpu_op operator",
    Kind.ANNOTATION: "user_annotation user",
    Kind.LAUNCH: (
        "cuda_runtime cuda_driver runtime xpu_runtime xpu_driver mtia_runtime glow_runtime privateuse1_runtime "
        "privateuse1_driver hpu_op"  # hpu_op: calls of the host, in spite of its name
    ),
    Kind.KERNEL: "kernel mtia_ccp_events",
    Kind.MEMCPY: "gpu_memcpy memcpy",
    Kind.MEMSET: "gpu_memset memset",
    Kind.FRAME: "python_function",
    Kind.DROP: (
        "gpu_user_annotation external_correlation cpu_instant_event overhead mtia_insight "
        "mtia_counters cuda_sync cuda_event cuda_profiler_range xpu_sync xpu_scope_profiler collective_comm "
        "hardware_counters trace ac2g fwdbwd async graph_event_node graph_host_node"
    ),
}
_KINDS = {name: kind for kind, names in _CATEGORIES.items() for name in names.split()}


class Kinds(dict[str, int]):
    """Category to kind; learns each spelling once, so that a look-up is one at the speed of a dict."""

    def __missing__(self, category: str) -> int:
        kind = self[category] = int(_KINDS.get(category.strip().lower(), Kind.OTHER))
        return kind
