"""Ranks and peers where NCCL counts them within its communicators, which it names alike on all ranks."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bubblescope.align.members import Members, members
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs, Finding

__all__ = ["ranked", "resolved"]

Timelines = Mapping[int, RankTimeline]


def ranked(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    """Timelines with their ranks by the communicator that all of them are in, where nothing better tells them.

    Worse are the name of a file, the environment of a file with several ranks, which are counted on from its node's
    number, and an environment that several files share, which is that of what started them. Of several communicators
    the largest counts: it is the world, or what was recorded of it. It must hold every rank that is told otherwise.
    """
    weak = _weak(timelines)
    if not weak:
        return list(timelines)
    places = [{m.communicator: (m.ranks, m.rank) for m in t.identity.memberships} for t in timelines]
    shared = set.intersection(*(set(place) for place in places))
    for size, communicator in sorted(((places[0][c][0], c) for c in shared), reverse=True):
        found = [place[communicator][1] for place in places]
        pairs = list(enumerate(zip(timelines, found, strict=True)))
        fits = all(t.rank < size and (at in weak or t.rank == rank) for at, (t, rank) in pairs)
        if fits and len(set(found)) == len(found):
            return [_as(t, rank) if at in weak else t for at, (t, rank) in pairs]
    return list(timelines)


def _weak(timelines: Sequence[RankTimeline]) -> set[int]:
    """Which timelines' ranks are told badly or not at all, by their places."""
    told = Counter(t.rank for t in timelines)
    together = Counter(t.source.path for t in timelines)
    return {
        at
        for at, t in enumerate(timelines)
        if t.rank < 0
        or t.identity.rank_source == "filename"
        or (t.identity.rank_source == "environment" and (together[t.source.path] > 1 or told[t.rank] > 1))
    }


_SAYS = {"filename": "the file name says", "environment": "the environment says"}


def _as(timeline: RankTimeline, rank: int) -> RankTimeline:
    conflict: tuple[Finding, ...] = ()
    if timeline.rank not in {-1, rank}:
        says = _SAYS[timeline.identity.rank_source or "filename"]
        message = f"{says} rank {timeline.rank}, NCCL says rank {rank}; NCCL is believed"
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
