"""Calls as the host made them: what a kernel that holds several of them, or names none, does not tell of itself.

`batch_isend_irecv` posts a send and a receive and launches one kernel for both, which carries the
arguments of neither (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, endCoalescing). The calls stand
before the launch on the same thread: all that were posted since the launch before belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.groups import purpose
from bubblescope.model.trace import Annotations, CommArgs, Identity, Ops, RankTrace
from bubblescope.reconstruct.operations import named_by_call, normal_op
from bubblescope.reconstruct.units import NO_HOST, Units

__all__ = ["DIRECTIONS", "last_asked", "posts"]

DIRECTIONS = frozenset({"send", "recv"})

_LABEL = r"nccl:(?P<op>send|recv) (?P<me>\d{1,6})(?:->|<-)(?P<peer>\d{1,6})"
_CALL = r"c10d::(?P<op>send|recv)"
_OF_NCCL = r"nccl(?P<op>Send|Recv)$"

_LAUNCHES_NOTHING = frozenset({"wait", "init"})
"""What torch records beside its calls (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS)."""


@dataclass(frozen=True, eq=False)
class _Posts(Columns):
    """Calls that post one send or receive; of several `source`s that tell of one, the lowest says most."""

    start: Times = column(np.int64)
    thread: Ints = column(np.int32)
    source: Ints = column(np.int8)
    call: Ints = column(np.int32)


def posts(trace: RankTrace, units: Units) -> Mapping[int, Sequence[CommArgs]]:
    """For each communication unit (row of `units`) the sends and receives that its launch carries out, if any."""
    found, calls = _posts(trace)
    result: dict[int, Sequence[CommArgs]] = {}
    for unit, mine in _before_launches(found, units):
        first = np.flatnonzero(np.diff(unit, prepend=-1))
        for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(mine)], strict=True):
            best = mine.source[begin:end] == mine.source[begin]
            result[int(unit[begin])] = [calls[c] for c in mine.call[begin:end][best].tolist()]
    return result


def last_asked(trace: RankTrace, units: Units) -> Mapping[int, CommArgs]:
    """For each communication unit the last call, of whatever operation, that its thread made since the launch before.

    The one that holds the launch is among these. Of calls that tell their arguments and others the first ones count.
    """
    found, calls = _asked(trace)
    found = found.replace(source=-found.source)  # the best comes last
    result: dict[int, CommArgs] = {}
    for unit, mine in _before_launches(found, units):
        last = np.flatnonzero(np.diff(unit, append=-1))
        result.update((row, calls[c]) for row, c in zip(unit[last].tolist(), mine.call[last].tolist(), strict=True))
    return result


def _before_launches(found: _Posts, units: Units) -> Iterator[tuple[Ints, _Posts]]:
    """For each thread its posts by the unit that it launched next, by source, by time; and that unit, for each."""
    for thread in np.unique(found.thread):
        launched = np.flatnonzero((units.thread == thread) & (units.host != NO_HOST))  # units are in host order
        mine = found.take(found.thread == thread)
        by_launch = np.searchsorted(units.host[launched], mine.start, "left")
        order = np.lexsort((mine.start, mine.source, by_launch))
        order = order[by_launch[order] < len(launched)]
        if len(order):
            yield launched[by_launch[order]], mine.take(order)


def _posts(trace: RankTrace) -> tuple[_Posts, Sequence[CommArgs]]:
    """All calls that post: by their arguments, by torch's labels, by names of torch's operators or NCCL's own."""
    ops, notes = trace.ops, trace.annotations
    by_comm = {i: args for i, args in enumerate(trace.comms) if args.op.lower() in DIRECTIONS}
    return _table(
        (ops, ops.comm, {i: replace(args, op=args.op.lower()) for i, args in by_comm.items()}),
        (notes, notes.name, dict(_named(trace, _LABEL))),
        (ops, ops.name, dict(_named(trace, _CALL))),
        (ops, ops.name, dict(_named(trace, _OF_NCCL))),
    )


def _asked(trace: RankTrace) -> tuple[_Posts, Sequence[CommArgs]]:
    """All calls that ask for any operation: by their arguments, by the names of operators and ranges."""
    by_comm = {i: replace(args, op=normal_op(args.op)) for i, args in enumerate(trace.comms) if args.op}
    by_name = {i: CommArgs(op=op) for i, name in enumerate(trace.names) if (op := named_by_call(name))}
    known, named = (
        {i: args for i, args in told.items() if args.op not in _LAUNCHES_NOTHING} for told in (by_comm, by_name)
    )
    ops, notes = trace.ops, trace.annotations
    return _table((ops, ops.comm, known), (ops, ops.name, named), (notes, notes.name, named))


def _table(*sources: tuple[Ops | Annotations, Ints, Mapping[int, CommArgs]]) -> tuple[_Posts, Sequence[CommArgs]]:
    """The calls of some sources, the one that says most first: a block, a key of each row, what the keys mean."""
    table: list[CommArgs] = []
    parts = []
    for source, (block, key, told) in enumerate(sources):
        rows = np.flatnonzero(np.isin(key, list(told)))
        number = {k: len(table) + i for i, k in enumerate(told)}
        table += told.values()
        call = np.array([number[k] for k in key[rows].tolist()], np.int64)
        parts.append(_Posts(block.start[rows], block.thread[rows], np.full(len(rows), source), call))
    return _Posts.concat(parts), table


def _named(trace: RankTrace, pattern: str) -> Iterator[tuple[int, CommArgs]]:
    """(number of the name, what it says) of every name that the pattern matches."""
    for number, name in enumerate(trace.names):
        match = re.match(pattern, name)
        if match is not None:
            groups = match.groupdict()
            peer = _global(trace.identity, int(groups["me"]), int(groups["peer"])) if "me" in groups else -1
            guessed = peer if not trace.identity.groups else -1
            op = groups["op"].lower()
            src, dst = (-1, peer) if op == "send" else (peer, -1)
            yield number, CommArgs(op=op, src=src, dst=dst, peer=guessed)


def _global(identity: Identity, me: int, peer: int) -> int:
    """The global rank of a peer whose rank in some group is known; -1 where the groups that it may be disagree.

    A label names ranks of the group, and not the group: any in which this rank has the place it names
    may be meant, a pipeline's before all others.
    """
    known = [group for group in identity.groups if group.ranks[me : me + 1] == (identity.rank,)]
    lines = [group for group in known if purpose(group.description) == "pp"] or known
    peers = {group.ranks[peer] for group in lines if peer < len(group.ranks)}
    if not identity.groups and me == identity.rank:
        peers = {peer}
    return peers.pop() if len(peers) == 1 else -1
