"""What a communicator is for, read from the description that a framework gives it."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

__all__ = ["Purpose", "purpose"]

Purpose = Literal["pp", "tp", "dp", "cp", "ep"]

# First match wins. Megatron-LM: megatron/core/parallel_state.py; DeviceMesh: torch/distributed/device_mesh.py.
# Groups that span two purposes (MODEL_PARALLEL_GROUP, TENSOR_AND_DATA_...) or none (default_pg) match nothing.
_PURPOSES: tuple[tuple[str, Purpose], ...] = (
    (r"PIPELINE_MODEL_PARALLEL_GROUP(_GLOO)?|mesh_pp|pp", "pp"),
    (r"TENSOR_MODEL_PARALLEL_GROUP(_GLOO)?|mesh_tp|tp", "tp"),
    (r"(INTRA_PARTIAL_|INTER_PARTIAL_)?DATA_PARALLEL_GROUP(_WITH_CP)?(_GLOO)?|mesh_dp\w*|mesh_fsdp|dp|fsdp", "dp"),
    (r"(HIERARCHICAL_)?CONTEXT_PARALLEL_GROUPS?(_GLOO)?|mesh_cp|mesh_sp|cp", "cp"),
    (r"EXPERT_MODEL_PARALLEL_GROUP(_GLOO)?|mesh_ep|ep", "ep"),
)


@cache
def purpose(description: str) -> Purpose | None:
    """The parallelism that a described group serves, or None where the words do not say."""
    return next((p for pattern, p in _PURPOSES if re.fullmatch(pattern, description, re.IGNORECASE)), None)
