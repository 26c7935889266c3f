"""Calls of several ranks that are one: the same operation of one group, in the same place of its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bubblescope.model.groups import serves
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs

__all__ = ["exchanges", "whole_collectives"]

_Call = tuple[tuple[int, ...], str, str, int]
"""Ranks, name where no ranks are told, operation, and number of the step."""

_DIRECTED = frozenset({"send", "recv"})


def whole_collectives(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of every member, for each collective of which all members were recorded.

    Where a call does not say which ranks its group has, all recorded ones are taken for its members. One that names no
    group either, and serves stages or replicas, which are parts of a job, tells nothing. Nor does a send or a receive,
    or a kernel of such in a group of more than two: round a ring nobody waits for all.
    Members that do not show as many of such calls in a step tell nothing of it: which of them is missing is not told.
    """
    return _whole(timelines, {rank: _identities(timeline) for rank, timeline in timelines.items()})


def exchanges(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of both halves, for each send and receive beside the pipeline's messages.

    The k-th send of a step from one rank to another meets the k-th receive there, as long as there are as many.
    """
    return _whole(timelines, {rank: _halves(timeline) for rank, timeline in timelines.items()})


def _whole(
    timelines: Mapping[int, RankTimeline], made: Mapping[int, Iterable[tuple[int, _Call]]]
) -> Iterator[list[tuple[int, int]]]:
    members: dict[_Call, dict[int, list[int]]] = {}
    for rank, calls in made.items():
        for row, call in calls:
            members.setdefault(call, {}).setdefault(rank, []).append(row)
    for (ranks, *_), rows in members.items():
        whole = set(ranks) <= rows.keys() if ranks else len(rows) == len(timelines)
        if len(rows) > 1 and whole and len(set(map(len, rows.values()))) == 1:
            for same in zip(*rows.values(), strict=True):
                yield list(zip(rows, same, strict=True))


def _identities(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, what the call is) of every collective of a rank, in order."""
    for row, args, number in _calls(timeline):
        if not _between_some(args) and (args.ranks or args.group or serves(args) is None):
            yield row, (args.ranks, "" if args.ranks else args.group, args.op, number)


def _between_some(args: CommArgs) -> bool:
    return args.op in _DIRECTED or (args.op == "send_recv" and len(args.ranks) != 2)


def _halves(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, from whom to whom) of every send and receive of a rank that names its peer, in order."""
    for row, args, number in _calls(timeline):
        ends = (timeline.rank, args.dst) if args.op == "send" else (args.src, timeline.rank)
        if args.op in _DIRECTED and min(ends) >= 0 and ends[0] != ends[1]:
            yield row, (ends, args.group, "send_recv", number)


def _calls(timeline: RankTimeline) -> Iterator[tuple[int, CommArgs, int]]:
    """(row, call, number of its step or -1) of every collective of a rank, in order."""
    c = timeline.collectives
    numbers = [*timeline.steps.number.tolist(), -1]  # the last one answers to -1
    for row, (call, step) in enumerate(zip(c.call.tolist(), c.step.tolist(), strict=True)):
        yield row, timeline.calls[call], numbers[max(step, -1)]
