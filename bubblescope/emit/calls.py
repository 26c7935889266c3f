"""What a file of Kineto leaves out of communication: calls that were not recorded, and the names of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bubblescope.emit.job import Job

__all__ = ["GENERIC_KERNEL", "as_recorded"]

GENERIC_KERNEL = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
"""What RCCL calls every kernel of its own."""

_PARAMS = "record_param_comms"
_BEGINNINGS = {"params": (_PARAMS,), "ops": ("c10d::",), "ranges": ("nccl:",), "none": ()}
_ALL = tuple(beginning for kind in _BEGINNINGS.values() for beginning in kind)
_OWN_KEYS = frozenset({"External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id"})
_OF_CALLS = ("Src Rank", "Dst Rank", "Process Group", "In ", "Out ", "Collective", "Group size", "dtype")


def as_recorded(job: Job, events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events of a rank as the job's profiler and library leave them."""
    if (job.calls, job.comm_names) == ("all", "nccl"):
        yield from events
        return
    asked = _ALL if job.calls == "all" else _BEGINNINGS[job.calls]
    for event in events:
        name = event["name"]
        if name.startswith(_ALL) and not name.startswith(asked or ("\0",)):
            continue
        if job.comm_names == "generic":
            yield _nameless(job, event)
        else:
            yield event


def _nameless(job: Job, event: dict[str, Any]) -> dict[str, Any]:
    """An event without what RCCL does not tell; with `p2p_args` none, without the arguments of calls as well."""
    name, args = event["name"], event.get("args", {})
    if event["cat"] == "kernel" and name.startswith("nccl"):
        kept = {key: value for key, value in args.items() if not key.startswith(_OF_CALLS)}
        return {**event, "name": GENERIC_KERNEL, "args": kept}
    if name == _PARAMS and job.p2p_args == "none":
        return {**event, "args": {key: value for key, value in args.items() if key in _OWN_KEYS}}
    return event
