"""What each communication unit is: which operation, in which group, with which peer."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.groups import PEER_COPY, Purpose, purpose, serving
from bubblescope.model.trace import CommArgs, Identity, RankTrace
from bubblescope.reconstruct.posts import posts
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units, matching

__all__ = ["SENDS_AND_RECEIVES", "Talk", "describe", "normal_op", "size_of"]

SENDS_AND_RECEIVES = frozenset({"send", "recv", "send_recv"})

# Spellings of one operation over torch, NCCL and gloo; what is not listed keeps its own name.
_OPS: tuple[tuple[str, str], ...] = (
    (r"recv_?(any_?source_?)?", "recv"),
    (r"i?send", "send"),
    (r"send_?recv", "send_recv"),
    (r"_?all_?reduce(_coalesced)?_?", "all_reduce"),
    (r"_?all_?gather(_base|v|_into_tensor)?(_coalesced)?_?", "all_gather"),
    (r"_?reduce_?scatter(_base|v|_tensor)?(_coalesced)?_?", "reduce_scatter"),
    (r"_?all_?to_?all(_base|v|_single)?_?", "all_to_all"),
    (r"_?broadcast(_oop)?_?", "broadcast"),
    (r"_?reduce(_oop)?_?", "reduce"),
)
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

# Ranges of torch, and those that NCCL itself names by its functions (NVIDIA/nccl, src/collectives.cc).
_HOST_CALL = (
    r"nccl:(\w+)|c10d::(\w+)|_c10d_functional::(\w+)|gloo:(\w+)"
    r"|nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AlltoAll|Gather|Scatter|Send|Recv)$"
)
_PEER_COPY = "Memcpy PtoP"  # as the PyTorch Profiler calls a copy from one GPU to another
_KERNEL = r"(?i)(?:void )?(?:nccl|rccl)(?:Symk?)?(?:Dev)?(?:Kernel)?_?([a-z]+?)(?:Ring|Tree|CollNet|Kernel|_|\(|<|$)"


def normal_op(name: str) -> str:
    """One name for all spellings of an operation: `allreduce_` and `_all_reduce` are `all_reduce`."""
    lower = name.lower()
    return next((op for pattern, op in _OPS if re.fullmatch(pattern, lower)), lower)


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
    the kernel's name.
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
    """What each unit says of itself, or the call around its launch, or its name."""
    known = [replace(args, op=normal_op(args.op)) for args in trace.comms]
    around, told = _host_calls(trace, units)
    by_name = [*(_op_of_name(name) for name in trace.names), ""]  # the last one answers to -1
    is_range = matching(trace.names, _HOST_CALL)
    said = np.where(units.comm >= 0, units.comm, told)
    result = []
    for comm, host, name in zip(said.tolist(), around.tolist(), units.name.tolist(), strict=True):
        args = known[comm] if comm >= 0 else CommArgs()
        if not args.op:
            # A gloo call is a range of its own and says what it is; a kernel's name says less than the call around it.
            names = (by_name[name], by_name[host]) if is_range[name] else (by_name[host], by_name[name])
            args = replace(args, op=next(filter(None, names), "unknown"))
            if args.op == PEER_COPY and trace.identity.device is not None:
                args = replace(args, purpose="pp")  # GPUs of one process have nothing else to hand each other
        result.append(args)
    return result


def _like_the_others(units: Units, told: Sequence[CommArgs]) -> list[CommArgs]:
    """The same; a kernel whose launch was not recorded does what all others of its name do, if that is one thing."""
    ops: dict[int, set[str]] = {}
    rows = list(zip(units.name.tolist(), (units.host != NO_HOST).tolist(), told, strict=True))
    for name, launched, args in rows:
        if launched:
            ops.setdefault(name, set()).add(args.op)
    return [
        args
        if launched or args.op not in SENDS_AND_RECEIVES or len(ops.get(name, ())) != 1
        else replace(args, op=next(iter(ops[name])))
        for name, launched, args in rows
    ]


def _halves(args: CommArgs, posted: Sequence[CommArgs]) -> Sequence[CommArgs]:
    """What a kernel holds: what was posted for it, unless it says of itself that it is something else."""
    if args.op not in SENDS_AND_RECEIVES or not posted:
        return (args,)
    alone = args.op != "send_recv" and (args.src >= 0 or args.dst >= 0)
    same = any((args.op, args.src, args.dst) == (half.op, half.src, half.dst) for half in posted)
    return (args,) if alone and not (same and len(posted) > 1) else posted


def _op_of_name(name: str) -> str:
    if name.startswith(_PEER_COPY):
        return PEER_COPY
    match = re.match(_HOST_CALL, name) or re.match(_KERNEL, name)
    word = next((g for g in match.groups() if g), "") if match else ""
    return "" if word.lower() in {"", "generic", "coalesced", "kernel"} else normal_op(word)


def _host_calls(trace: RankTrace, units: Units) -> tuple[Ints, Ints]:
    """For each unit the name and the arguments of the innermost host call around its launch, or -1."""
    is_call = matching(trace.names, _HOST_CALL)
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
