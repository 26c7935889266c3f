"""Ranks and peers where NCCL counts them within its communicators, which it names alike on all ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from bubblescope.align.members import Members, members
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs, Finding

__all__ = ["ranked", "resolved"]

Timelines = Mapping[int, RankTimeline]


def ranked(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    """Timelines with their ranks by the communicator that all of them are in, where nothing better tells them.

    Only the name of a file or nothing at all is worse. Of several communicators the largest counts: it is the
    world, or what was recorded of it. It must hold every rank that is told otherwise.
    """
    weak = [t for t in timelines if t.rank < 0 or t.identity.rank_source == "filename"]
    if not weak:
        return list(timelines)
    places = [{m.communicator: (m.ranks, m.rank) for m in t.identity.memberships} for t in timelines]
    shared = set.intersection(*(set(place) for place in places))
    for _, communicator in sorted(((places[0][c][0], c) for c in shared), reverse=True):
        found = [place[communicator][1] for place in places]
        if len(set(found)) == len(found) and _fits(timelines, found, places[0][communicator][0]):
            return [_as(t, rank) if t in weak else t for t, rank in zip(timelines, found, strict=True)]
    return list(timelines)


def _fits(timelines: Sequence[RankTimeline], found: Sequence[int], size: int) -> bool:
    """Whether places may be global ranks: no rank that is told lies beyond them, and those told for sure agree."""
    return all(
        t.rank < size and (t.rank < 0 or t.identity.rank_source == "filename" or t.rank == rank)
        for t, rank in zip(timelines, found, strict=True)
    )


def _as(timeline: RankTimeline, rank: int) -> RankTimeline:
    conflict: tuple[Finding, ...] = ()
    if timeline.rank not in {-1, rank}:
        message = f"the file name says rank {timeline.rank}, NCCL says rank {rank}; NCCL is believed"
        conflict = (Finding("metadata-conflict", "warning", message, timeline.source.path),)
    identity = dataclasses.replace(timeline.identity, rank=rank, rank_source="metadata")
    return dataclasses.replace(timeline, rank=rank, identity=identity, findings=(*timeline.findings, *conflict))


def resolved(timelines: Timelines) -> Timelines:
    """Timelines whose calls name global ranks, as far as the members of their communicators are known."""
    known = members(timelines)
    return {rank: _named(timeline, known) for rank, timeline in timelines.items()} if known else timelines


def _named(timeline: RankTimeline, known: Mapping[str, Members]) -> RankTimeline:
    """The timeline with global ranks in its calls, and global peers in its messages."""
    calls = tuple(_global(call, known.get(call.group, ())) for call in timeline.calls)
    peer = timeline.messages.peer.copy()
    theirs = np.array([max(call.src, call.dst) for call in calls], np.int64)
    if len(peer):
        peer = np.where(peer < 0, theirs[timeline.messages.call], peer)
    return dataclasses.replace(timeline, calls=calls, messages=timeline.messages.replace(peer=peer))


def _global(call: CommArgs, ranks: Members) -> CommArgs:
    if not ranks or call.ranks:
        return call
    peer = ranks[call.peer] if 0 <= call.peer < len(ranks) else -1
    return dataclasses.replace(
        call,
        ranks=ranks,
        group_size=len(ranks),
        src=peer if call.op == "recv" else call.src,
        dst=peer if call.op == "send" else call.dst,
    )
