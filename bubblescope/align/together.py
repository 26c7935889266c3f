"""Calls of several ranks that are one: the same operation of one group, in the same place of its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bubblescope.model.groups import serves
from bubblescope.model.job import CallKind, Parties
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs

__all__ = ["exchanges", "joined_collectives", "named_collectives", "unnamed_calls", "whole_collectives"]

_Call = tuple[tuple[int, ...], CallKind, int]
"""Ranks, what kind of call it is, and number of the step."""

_DIRECTED = frozenset({"send", "recv"})

_ALIKE = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"})
"""Operations of which all members tell as many bytes."""


def whole_collectives(timelines: Mapping[int, RankTimeline], parties: Parties) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of every member, for each collective of which all members were recorded.

    Where a call does not say which ranks its group has, `parties` tell its members; one of another kind tells nothing.
    Nor does a send or a receive, or a kernel of such in a group of more than two: round a ring nobody waits for all.
    Members that do not show as many of such calls in a step tell nothing of it: which of them is missing is not told.
    """
    yield from named_collectives(timelines)
    yield from joined_collectives(timelines, parties)


def named_collectives(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """The whole collectives whose calls say which ranks they join."""
    return _whole({rank: _named(timeline) for rank, timeline in timelines.items()})


def joined_collectives(timelines: Mapping[int, RankTimeline], parties: Parties) -> Iterator[list[tuple[int, int]]]:
    """The whole collectives of which `parties` tell the members."""
    return _whole({rank: _joined(timeline, parties) for rank, timeline in timelines.items()} if parties else {})


def unnamed_calls(timeline: RankTimeline) -> Iterator[tuple[int, CallKind, int]]:
    """(row of `Collectives`, kind, number of the step) of every call of a rank that does not say whom it joins.

    One that names no group, but serves stages or replicas, is left aside.
    """
    c = timeline.collectives
    for row, args, number in _calls(timeline):
        if not (args.ranks or _between_some(args)) and (args.group or serves(args) is None):
            size = int(c.bytes[row]) if args.op in _ALIKE else -1
            yield row, CallKind(args.group, args.op, size, bool(c.action[row] >= 0)), number


def exchanges(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of both halves, for each send and receive beside the pipeline's messages.

    The k-th send of a step from one rank to another meets the k-th receive there, as long as there are as many.
    """
    return _whole({rank: _halves(timeline) for rank, timeline in timelines.items()})


def _whole(made: Mapping[int, Iterable[tuple[int, _Call]]]) -> Iterator[list[tuple[int, int]]]:
    members: dict[_Call, dict[int, list[int]]] = {}
    for rank, calls in made.items():
        for row, call in calls:
            members.setdefault(call, {}).setdefault(rank, []).append(row)
    for (ranks, *_), rows in members.items():
        if len(rows) > 1 and set(ranks) <= rows.keys() and len(set(map(len, rows.values()))) == 1:
            for same in zip(*rows.values(), strict=True):
                yield list(zip(rows, same, strict=True))


def _named(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, what the call is) of every collective of a rank that names its members, in order."""
    for row, args, number in _calls(timeline):
        if args.ranks and not _between_some(args):
            yield row, (args.ranks, CallKind("", args.op), number)


def _joined(timeline: RankTimeline, parties: Parties) -> Iterator[tuple[int, _Call]]:
    """(row, what the call is) of every collective of a rank whose members `parties` tell, in order."""
    for row, kind, number in unnamed_calls(timeline):
        yield from [(row, (ranks, kind, number)) for ranks in parties.get(kind, ()) if timeline.rank in ranks]


def _between_some(args: CommArgs) -> bool:
    return args.op in _DIRECTED or (args.op == "send_recv" and len(args.ranks) != 2)


def _halves(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, from whom to whom) of every send and receive of a rank that names its peer, in order."""
    for row, args, number in _calls(timeline):
        ends = (timeline.rank, args.dst) if args.op == "send" else (args.src, timeline.rank)
        if args.op in _DIRECTED and min(ends) >= 0 and ends[0] != ends[1]:
            yield row, (ends, CallKind(args.group, "send_recv"), number)


def _calls(timeline: RankTimeline) -> Iterator[tuple[int, CommArgs, int]]:
    """(row, call, number of its step or -1) of every collective of a rank, in order."""
    c = timeline.collectives
    numbers = [*timeline.steps.number.tolist(), -1]  # the last one answers to -1
    for row, (call, step) in enumerate(zip(c.call.tolist(), c.step.tolist(), strict=True)):
        yield row, timeline.calls[call], numbers[max(step, -1)]
