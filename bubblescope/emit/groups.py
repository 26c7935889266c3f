"""The process groups of a job, as torch writes them into `distributedInfo` and into the arguments of messages."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

from bubblescope.emit.job import Job, Place

__all__ = ["Group", "collective_args", "communicator", "distributed_info", "groups_of", "message_args"]

DESCRIPTIONS = {
    "megatron": {
        "tp": "TENSOR_MODEL_PARALLEL_GROUP",
        "dp": "DATA_PARALLEL_GROUP_WITH_CP",
        "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    },
    "mesh": {"tp": "mesh_tp", "dp": "mesh_dp", "pp": "mesh_pp"},
    "undefined": {"tp": "undefined", "dp": "undefined", "pp": "undefined"},
}
OF_CONTEXT = {
    "megatron": {"cp": "CONTEXT_PARALLEL_GROUP", "replica": "DATA_PARALLEL_GROUP"},
    "mesh": {"cp": "mesh_cp", "replica": "mesh_dp", "dp": "mesh_dp_cp"},
    "undefined": {"cp": "undefined", "replica": "undefined"},
}
"""What is added, or called otherwise, where ranks share a context."""
AXES = {"tp": ("tp",), "dp": ("dp", "cp"), "pp": ("pp",), "cp": ("cp",), "replica": ("dp",)}
"""What differs among the ranks of a group: gradients are reduced over those of the context, too."""


class Group(NamedTuple):
    """One process group."""

    axis: str
    name: str
    desc: str
    ranks: tuple[int, ...]


@lru_cache(maxsize=32)
def _groups(job: Job) -> tuple[Group, ...]:
    """The world, then every group of each axis, named in the order of creation."""
    world = tuple(range(job.world))
    found = {("world", world): "default_pg"}
    described = DESCRIPTIONS[job.pg_desc] | (OF_CONTEXT[job.pg_desc] if job.c > 1 else {})
    for axis, differs in AXES.items():
        if axis not in described:
            continue
        lines: dict[Place, list[int]] = {}
        for rank in world:
            lines.setdefault(job.place(rank)._replace(**dict.fromkeys(differs, 0)), []).append(rank)
        found.update({(axis, tuple(line)): described[axis] for line in lines.values()})
    return tuple(Group(axis, str(i), desc, ranks) for i, ((axis, ranks), desc) in enumerate(found.items()))


def groups_of(job: Job, rank: int) -> dict[str, Group]:
    """A rank's own groups by axis."""
    return {group.axis: group for group in _groups(job) if rank in group.ranks}


def communicator(job: Job, group: Group) -> int:
    """What NCCL calls the communicator of a group: a number of 64 bits without a sign, the same on all its ranks."""
    return int.from_bytes(hashlib.sha256(f"{job.seed}/{group.name}".encode()).digest()[:8], "little")


def distributed_info(job: Job, rank: int) -> dict[str, Any]:
    """What torch knows of the job; the process groups only since it writes relative times."""
    nccl = job.backend == "cuda"
    info: dict[str, Any] = {"backend": "nccl" if nccl else "gloo", "rank": rank, "world_size": job.world}
    if job.era != "relative" or job.groups_told != "named":
        return info
    config = [
        {
            "pg_name": group.name,
            "pg_desc": group.desc,
            "backend_config": "cuda:nccl" if nccl else "cpu:gloo,cuda:gloo",
            "pg_size": len(group.ranks),
            "ranks": list(group.ranks),
        }
        for group in groups_of(job, rank).values()
    ]
    info |= {"pg_count": len(config), "pg_config": config}
    return info | ({"nccl_version": "2.21.5"} if nccl else {})


def collective_args(job: Job, group: Group, collective: str, elements: int) -> dict[str, Any]:
    """The arguments of a call of a whole group, where the job tells any."""
    return {} if job.groups_told == "none" else message_args(job, group, collective, elements)


def message_args(job: Job, group: Group, collective: str, elements: int) -> dict[str, Any]:
    """The arguments that NCCL's operators and kernels carry."""
    args = {
        "Collective name": collective,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": len(group.ranks),
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
    }
    if job.groups_told == "named":
        args["Process Group Name"] = group.name
        args["Process Group Description"] = group.desc
        args["Process Group Ranks"] = str(list(group.ranks))
    return args
