"""What a communicator is for, read from the description that a framework gives it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Literal

import numpy as np

from bubblescope.model.columns import Bools, Ints
from bubblescope.model.trace import CommArgs

__all__ = ["IN_STAGE", "PEER_COPY", "Purpose", "purpose", "serves", "serving"]

Purpose = Literal["pp", "tp", "dp", "cp", "ep"]

IN_STAGE: frozenset[Purpose] = frozenset({"tp", "cp", "ep"})
"""What a stage's own computation cannot do without; pp and dp go between stages and replicas."""

PEER_COPY = "peer_copy"
"""What a copy from one GPU of a process to another counts as: it names no group, and neither end of it."""

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


def serves(call: CommArgs) -> Purpose | None:
    """What a call is for: as its group is described, or else as it shows."""
    said: Purpose | None = purpose(call.description) or (call.purpose or None)  # type: ignore[assignment]
    return said


def serving(calls: Sequence[CommArgs], rows: Ints, purposes: Collection[Purpose | None]) -> Bools:
    """Which of the rows, each naming one of `calls`, serve one of the purposes (None: nobody says which)."""
    flags = np.array([serves(call) in purposes for call in calls], bool)
    served: Bools = flags[rows] if len(flags) else np.zeros(len(rows), bool)
    return served
