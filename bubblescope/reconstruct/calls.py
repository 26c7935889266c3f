"""What each communication unit is: which operation, in which group, with which peer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times, distinct
from bubblescope.model.groups import PEER_COPY, Purpose, purpose, serving
from bubblescope.model.trace import UNNAMED, CommArgs, Identity, RankTrace
from bubblescope.reconstruct.operations import (
    HOST_CALL,
    SENDS_AND_RECEIVES,
    named_by_call,
    named_by_kernel,
    normal_op,
)
from bubblescope.reconstruct.posts import DIRECTIONS, last_asked, posts
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units, matching

__all__ = ["COLLECTIVE", "Talk", "describe", "size_of"]

COLLECTIVE = "collective"
"""A kernel that nothing names and that is no send or receive, as no other kernel of its name is one."""

_SIZES = {
    "float": 4, "float32": 4, "int": 4, "int32": 4, "double": 8, "float64": 8, "long": 8, "int64": 8,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2, "char": 1, "int8": 1, "byte": 1, "uint8": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip

_SHAPES = 1024
"""Bytes; an announcement of a tensor's shape is a few integers."""
_FAR_LARGER = 16
"""By how much the messages that follow are larger, so that a tiny model's activations are not taken for shapes."""

_LARGEST = 2**42
"""Bytes; no device holds as many, so that more is damage, and sums of what is left stay in 64 bits."""


def size_of(call: CommArgs) -> int:
    """Bytes that a call moves on this rank, or -1 where the trace does not say or cannot mean it."""
    width = _SIZES.get(call.dtype.lower(), 0)
    size = call.elements * width if width else -1
    return size if 0 <= size <= _LARGEST else -1


@dataclass(frozen=True, slots=True, eq=False)
class Talk:
    """Communication, and what each row of it is: `calls[row]`, with operations under their normal names.

    A kernel that holds several sends and receives has a row for each; they share `kernel`.
    """

    units: Units
    calls: tuple[CommArgs, ...]
    row: Ints
    kernel: Ints

    def take(self, keep: Bools) -> Talk:
        """Some of the rows."""
        return Talk(self.units.take(keep), self.calls, self.row[keep], self.kernel[keep])

    def told(self, mine: Bools, purpose: Purpose) -> Talk:
        """The same rows, some of them of groups that are for this purpose."""
        number = {call: i for i, call in enumerate(self.calls)}
        row = self.row.copy()
        row[mine] = [
            number.setdefault(replace(self.calls[c], purpose=purpose), len(number)) for c in self.row[mine].tolist()
        ]
        return replace(self, calls=tuple(number), row=row)

    def serving(self, purposes: Collection[Purpose | None]) -> Bools:
        """Which units serve one of the purposes (None: nobody says which)."""
        return serving(self.calls, self.row, purposes)

    def between_stages(self, identity: Identity) -> Bools:
        """Which rows are the pipeline's messages.

        Sends and receives are, unless their group serves something else (a ring of context-parallel ranks),
        their peer is in none of the pipelines that are described, or they only announce the shape of what follows.
        """
        is_message = np.array([call.op in SENDS_AND_RECEIVES for call in self.calls], bool)
        stages: Bools = self.serving({None, "pp"}) & is_message[self.row]
        size = self.bytes
        known = {r for g in identity.groups if purpose(g.description) == "pp" for r in g.ranks}
        if known:
            outside = [max(call.src, call.dst) not in {*known, -1} for call in self.calls]
            stages &= ~np.array(outside, bool)[self.row]
        announces = (size >= 0) & (size <= _SHAPES) & (size * _FAR_LARGER <= size[stages].max(initial=0))
        stages[announces] = False
        return stages

    @property
    def unnamed(self) -> Bools:
        """Which rows are kernels that nothing names: collectives, or a pipeline's messages."""
        is_unnamed = np.array([call.op == UNNAMED for call in self.calls], bool)
        return is_unnamed[self.row]

    @property
    def directed(self) -> bool:
        """Whether any row is known to send, or to receive."""
        return any(self.calls[row].op in {"send", "recv"} for row in distinct(self.row).tolist())

    @property
    def posted(self) -> Times:
        """Host moments at which the units were posted, sorted."""
        return np.sort(self.units.host[self.units.host != NO_HOST])

    @property
    def bytes(self) -> Ints:
        """Bytes of each unit, -1 where nothing tells them."""
        sizes = np.array([size_of(call) for call in self.calls], np.int64)
        return sizes[self.row] if len(sizes) else np.empty(0, np.int64)


def describe(trace: RankTrace, units: Units) -> Talk:
    """What the communication of a rank is.

    Sends and receives are told by the calls that posted them, as one kernel may hold several and then
    tells of none. Else a unit's own arguments come first, then the host call around its launch, then
    the last call before it, then the kernel's name.
    """
    table: dict[CommArgs, int] = {}
    posted = posts(trace, units) if trace.on_gpu else {}  # gloo's ranges are the calls themselves
    rows, kernel = [], []
    for unit, args in enumerate(_like_the_others(units, _told(trace, units))):
        for half in _halves(args, posted.get(unit, ())):
            rows.append(table.setdefault(half, len(table)))
            kernel.append(unit)
    return Talk(units.take(np.array(kernel, np.int64)), tuple(table), np.array(rows, np.int64), np.array(kernel))


def _told(trace: RankTrace, units: Units) -> list[CommArgs]:
    """What each unit says of itself, or the call around its launch, or the last call before it, or its name."""
    known = [replace(args, op=normal_op(args.op)) for args in trace.comms]
    around, told = _host_calls(trace, units)
    asked = last_asked(trace, units) if trace.on_gpu and np.any(units.comm < 0) else {}
    by_call, by_kernel = ([*map(names, trace.names), ""] for names in (named_by_call, named_by_kernel))  # "" is of -1
    said = np.where(units.comm >= 0, units.comm, told)
    result = []
    for unit, (comm, host, name) in enumerate(
        zip(said.tolist(), around.tolist(), units.name.tolist(), strict=True),
    ):
        args = known[comm] if comm >= 0 else CommArgs()
        # A gloo call is a range of its own and says what it is; a kernel's name says less than the call around it.
        if not args.op:
            args = _named(args, by_call[name] or by_call[host], by_kernel[name], asked.get(unit))
        if args.op == PEER_COPY and trace.identity.device is not None:
            args = replace(args, purpose="pp")  # GPUs of one process have nothing else to hand each other
        result.append(args)
    return result


def _named(args: CommArgs, call: str, kernel: str, asked: CommArgs | None) -> CommArgs:
    """The arguments of a unit that do not name its operation, with what names it.

    Args:
        args: all that its own arguments tell.
        call: the operation by the host call that it is, or that holds its launch; else empty.
        kernel: the operation by the kernel's name, or empty. What NCCL makes of sends and receives, as an all-to-all,
            has the name of these.
        asked: the last call of the host before its launch, None where there is none.
    """
    op = call or (kernel if kernel != "send_recv" else "")
    if asked is not None and args == CommArgs() and op in {"", asked.op}:
        return replace(args, op="send_recv") if asked.op in DIRECTIONS else asked
    return replace(args, op=op or kernel or UNNAMED)


def _like_the_others(units: Units, told: Sequence[CommArgs]) -> list[CommArgs]:
    """The same; a kernel whose launch was not recorded does what all others of its name do.

    If that is one thing; of one that nothing names it is enough that none of them sends or receives.
    """
    ops: dict[int, set[str]] = {}
    rows = list(zip(units.name.tolist(), (units.host != NO_HOST).tolist(), told, strict=True))
    for name, launched, args in rows:
        if launched:
            ops.setdefault(name, set()).add(args.op)
    return [
        args if launched else replace(args, op=_usual(args.op, ops.get(name, set()))) for name, launched, args in rows
    ]


def _usual(op: str, others: Collection[str]) -> str:
    """The operation of a kernel whose launch was not recorded, from that of the others of its name."""
    if op not in {*SENDS_AND_RECEIVES, UNNAMED} or not others:
        return op
    if len(others) == 1:
        return next(iter(others))
    return COLLECTIVE if op == UNNAMED and not {*SENDS_AND_RECEIVES, UNNAMED} & {*others} else op


def _halves(args: CommArgs, posted: Sequence[CommArgs]) -> Sequence[CommArgs]:
    """What a kernel holds: what was posted for it, unless it says of itself that it is something else."""
    if args.op not in SENDS_AND_RECEIVES or not posted:
        return (args,)
    alone = args.op != "send_recv" and (args.src >= 0 or args.dst >= 0)
    same = any((args.op, args.src, args.dst) == (half.op, half.src, half.dst) for half in posted)
    return (args,) if alone and not (same and len(posted) > 1) else posted


def _host_calls(trace: RankTrace, units: Units) -> tuple[Ints, Ints]:
    """For each unit the name and the arguments of the innermost host call around its launch, or -1."""
    is_call = matching(trace.names, HOST_CALL)
    ops, notes = trace.ops.take(is_call[trace.ops.name]), trace.annotations.take(is_call[trace.annotations.name])
    start, end, thread, name = (
        np.concatenate([getattr(r, f) for r in (ops, notes)]) for f in ("start", "end", "thread", "name")
    )
    comm = np.concatenate((ops.comm, np.full(len(notes), -1)))
    result = np.full((2, len(units)), -1, np.int64)
    for t in np.unique(units.thread[units.thread >= 0]):
        mine = np.flatnonzero((units.thread == t) & (units.host != NO_HOST))
        theirs = np.flatnonzero(thread == t)
        row = owners(start[theirs], end[theirs], units.host[mine])  # units are in host order
        rows = theirs[row[row >= 0]]
        result[:, mine[row >= 0]] = name[rows], comm[rows]
    return result[0], result[1]
