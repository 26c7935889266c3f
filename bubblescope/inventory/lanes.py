"""What runs where: the streams of a rank's GPU, its threads, and its communicators."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bubblescope.model.columns import Bools, Ints
from bubblescope.model.groups import purpose
from bubblescope.model.info import GroupInfo, LaneInfo, ThreadInfo
from bubblescope.model.names import plainly
from bubblescope.model.spans import Spans
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.calls import describe
from bubblescope.reconstruct.units import gather

__all__ = ["groups", "lanes", "threads"]


def lanes(trace: RankTrace) -> tuple[LaneInfo, ...]:
    """The streams of a rank's GPU in the order of their numbers; none where nothing ran on one."""
    if not trace.on_gpu:
        return ()
    trace = plainly(trace)
    work, communication, copies = gather(trace)
    talk = describe(trace, communication)
    messages = np.zeros(len(communication), bool)
    messages[talk.kernel[talk.between_stages(trace.identity)].astype(np.int64)] = True
    ran = trace.kernels
    return tuple(
        LaneInfo(
            lane=lane,
            compute=int(np.sum(work.lane == lane)),
            messages=int(np.sum(messages & (communication.lane == lane))),
            collectives=int(np.sum(~messages & (communication.lane == lane))),
            copies=int(np.sum(copies.lane == lane)),
            busy_ns=_busy(trace, ran.lane == lane),
        )
        for lane in np.unique(ran.lane).tolist()
    )


def _busy(trace: RankTrace, here: Bools) -> int:
    return Spans.of(trace.kernels.start[here], trace.kernels.end[here]).total


def threads(trace: RankTrace) -> tuple[ThreadInfo, ...]:
    """The threads of the host that have any event, in the order of the file."""
    count = len(trace.threads)
    blocks = (trace.ops, trace.annotations, trace.launches)
    events = [np.bincount(block.thread, minlength=count).tolist() for block in blocks]
    return tuple(
        ThreadInfo(
            pid=thread.pid,
            tid=thread.tid,
            names=thread.names,
            operators=operators,
            ranges=ranges,
            launches=launches,
        )
        for thread, operators, ranges, launches in zip(trace.threads, *events, strict=True)
        if operators or ranges or launches
    )


def groups(trace: RankTrace) -> tuple[GroupInfo, ...]:
    """Communicators that the file lists or that calls name, those listed first; nameless ones are left out.

    A call is a kernel, or on a run without GPU an operator.
    """
    calls: Counter[str] = Counter()
    told: dict[str, tuple[str, tuple[int, ...]]] = {g.name: (g.description, g.ranks) for g in trace.identity.groups}
    for comm, count in _uses(trace.kernels.comm if trace.on_gpu else trace.ops.comm).items():
        args = trace.comms[comm]
        calls[args.group] += count
        description, ranks = told.get(args.group, ("", ()))
        told[args.group] = (description or args.description, ranks or args.ranks)
    return tuple(
        GroupInfo(name=name, description=words, purpose=purpose(words), ranks=ranks, calls=calls[name])
        for name, (words, ranks) in told.items()
        if name
    )


def _uses(comm: Ints) -> dict[int, int]:
    """How many events each row of `RankTrace.comms` describes."""
    number, count = np.unique(comm[comm >= 0], return_counts=True)
    return dict(zip(number.tolist(), count.tolist(), strict=True))
