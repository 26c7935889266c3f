"""Collectives of several ranks that are one: the same operation of one group, in the same place of its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bubblescope.model.groups import serves
from bubblescope.model.timeline import RankTimeline

__all__ = ["whole_collectives"]

_Call = tuple[tuple[int, ...], str, str, int]
"""Ranks, name where no ranks are told, operation, and number of the step."""


def whole_collectives(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of every member, for each collective of which all members were recorded.

    Where a call does not say which ranks its group has, all recorded ones are taken for its members. One that names no
    group either, and serves stages or replicas, which are parts of a job, tells nothing.
    Members that do not show as many of such calls in a step tell nothing of it: which of them is missing is not told.
    """
    members: dict[_Call, dict[int, list[int]]] = {}
    for rank, timeline in timelines.items():
        for row, call in _identities(timeline):
            members.setdefault(call, {}).setdefault(rank, []).append(row)
    for (ranks, *_), rows in members.items():
        whole = set(ranks) <= rows.keys() if ranks else len(rows) == len(timelines)
        if len(rows) > 1 and whole and len(set(map(len, rows.values()))) == 1:
            for same in zip(*rows.values(), strict=True):
                yield list(zip(rows, same, strict=True))


def _identities(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, what the call is) of every collective of a rank, in order."""
    c = timeline.collectives
    for row, (call, step) in enumerate(zip(c.call.tolist(), c.step.tolist(), strict=True)):
        args = timeline.calls[call]
        if args.ranks or args.group or serves(args) is None:
            number = int(timeline.steps.number[step]) if step >= 0 else -1
            yield row, (args.ranks, "" if args.ranks else args.group, args.op, number)
