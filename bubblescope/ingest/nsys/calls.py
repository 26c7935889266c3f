"""NCCL's own ranges as calls: which function, in which communicator, with which peer, how many bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.ingest.nsys.payloads import Payload
from bubblescope.ingest.tables import Table as Numbers
from bubblescope.model.columns import Bools, Ints, Times, distinct
from bubblescope.model.trace import CommArgs, Membership

__all__ = ["Calls", "calls", "full_name", "members"]

# NCCL's ranges carry the names of its functions (NVIDIA/nccl, src/collectives.cc); newer tracing drops "nccl".
_OPERATIONS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AlltoAll": "all_to_all", "Gather": "gather", "Scatter": "scatter", "Send": "send",
    "Recv": "recv",
}  # fmt: skip
_BARE = re.compile(rf"(?:{'|'.join(_OPERATIONS)}|GroupStart|GroupEnd)")
_FUNCTION = re.compile(rf"nccl(?:{'|'.join(_OPERATIONS)}|GroupStart|GroupEnd|Comm(?:Init|Split|Shrink|Grow)\w*)")
_BY_MEMBER = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
"""Operations of which NCCL tells the bytes that belong to one member."""

_TALK = frozenset({"send", "recv"})


@dataclass(frozen=True, slots=True)
class Calls:
    """What ranges call of NCCL.

    Attributes:
        is_call: which ranges are calls of NCCL.
        comm: for each range the place among `comms`, or -1.
        comms: the calls that say with whom or how much.
        untold: sends and receives that do not say their peer.
    """

    is_call: Bools
    comm: Ints
    comms: tuple[CommArgs, ...]
    untold: int


def full_name(name: str) -> str:
    """The name of a range in NCCL's domain as that of the function, whether it is written in full or not."""
    return f"nccl{name}" if _BARE.fullmatch(name) else name


def calls(name: Ints, payload: Ints, names: Sequence[str], payloads: Sequence[Payload]) -> Calls:
    """The calls of NCCL among ranges.

    Args:
        name: for each range the place of its name among `names`.
        payload: the place of its payload among `payloads`, or -1.
        names: all names.
        payloads: all payloads.
    """
    function = np.array([_FUNCTION.fullmatch(text) is not None for text in names], bool)
    ops = [_OPERATIONS.get(text.removeprefix("nccl"), "") if function[i] else "" for i, text in enumerate(names)]
    is_call = function[name]
    sizes = {told.communicator: told.ranks for told in payloads if told.communicator and told.ranks >= 0}
    table: Numbers[CommArgs] = Numbers()
    comm = np.full(len(name), -1)
    rows = np.flatnonzero(is_call & (payload >= 0))
    different, index = np.unique(name[rows] * len(payloads) + payload[rows], return_inverse=True)
    args = [_args(ops[pair // len(payloads)], payloads[pair % len(payloads)], sizes) for pair in different.tolist()]
    comm[rows] = np.array([-1 if told is None else table[told] for told in args], np.int64)[index]
    talks = np.array([op in _TALK for op in ops], bool)
    peers = np.array([*(told.peer >= 0 for told in payloads), False])
    return Calls(is_call, comm, tuple(table), int((talks[name] & ~peers[payload]).sum()))


def _args(op: str, told: Payload, sizes: dict[str, int]) -> CommArgs | None:
    """The call that a function of NCCL and its payload make; None if it moves nothing, or to an unknown peer."""
    if not op or (op in _TALK and told.peer < 0):
        return None
    count = sizes.get(told.communicator, -1)
    share = count if op in _BY_MEMBER else 1
    return CommArgs(
        op=op,
        group=told.communicator,
        group_size=count,
        elements=told.size * share if told.size >= 0 and share > 0 else -1,
        dtype="uint8",
        peer=told.peer,
    )


def members(process: Times, payload: Ints, payloads: Sequence[Payload]) -> dict[int, frozenset[Membership]]:
    """The communicators that each process joined, as far as their making was recorded."""
    told = np.array([0 <= p.rank < p.ranks and p.communicator != "" for p in payloads] + [False])
    rows = np.flatnonzero(told[payload])
    found: dict[int, frozenset[Membership]] = {}
    for owner in distinct(process[rows]).tolist():
        mine = (payloads[number] for number in np.unique(payload[rows[process[rows] == owner]]).tolist())
        found[owner] = frozenset(Membership(p.communicator, p.rank, p.ranks) for p in mine)
    return found
