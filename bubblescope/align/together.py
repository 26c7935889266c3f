"""Collectives of several ranks that are one: the same operation of one group, in the same place of its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bubblescope.model.groups import serves
from bubblescope.model.timeline import RankTimeline

__all__ = ["whole_collectives"]

_Call = tuple[tuple[int, ...], str, str, int, int]
"""Ranks, name where no ranks are told, operation, number of the step, and place in the order of such calls."""


def whole_collectives(timelines: Mapping[int, RankTimeline]) -> Iterator[list[tuple[int, int]]]:
    """(rank, row of its `Collectives`) of every member, for each collective of which all members were recorded.

    Where a call does not say which ranks its group has, all recorded ones are taken for its members. One that names no
    group either, and serves stages or replicas, which are parts of a job, tells nothing.
    """
    members: dict[_Call, list[tuple[int, int]]] = {}
    for rank, timeline in timelines.items():
        for row, call in _identities(timeline):
            members.setdefault(call, []).append((rank, row))
    for (ranks, *_), rows in members.items():
        whole = set(ranks) <= {rank for rank, _ in rows} if ranks else len(rows) == len(timelines)
        if len(rows) > 1 and whole:
            yield rows


def _identities(timeline: RankTimeline) -> Iterator[tuple[int, _Call]]:
    """(row, what the call is) of every collective of a rank."""
    counts: dict[tuple[tuple[int, ...], str, str, int], int] = {}
    c = timeline.collectives
    for row, (call, step) in enumerate(zip(c.call.tolist(), c.step.tolist(), strict=True)):
        args = timeline.calls[call]
        if not (args.ranks or args.group) and serves(args) is not None:
            continue
        number = int(timeline.steps.number[step]) if step >= 0 else -1
        same = (args.ranks, "" if args.ranks else args.group, args.op, number)
        counts[same] = counts.get(same, 0) + 1
        yield row, (*same, counts[same])
