"""Ranks and peers where NCCL counts them within its communicators, which it names alike on all ranks.

A label counts them so, too, and names no group: `nccl:send 0->1` on rank 0 is of rank 1, or of the second rank of a
pipeline whose first one is rank 0. Whether rank 1 says as much of rank 0 tells which.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bubblescope.align.members import Members, members
from bubblescope.model.columns import Bools
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
    named = {rank: _named(timeline, known) for rank, timeline in timelines.items()} if known else timelines
    met = {rank: set(timeline.messages.peer.tolist()) for rank, timeline in named.items()}
    wrong = {rank: _unnamed(timeline) for rank, timeline in named.items() if not _is_answered(timeline, met)}
    return {**named, **wrong} if wrong else named


def _by_label(timeline: RankTimeline) -> Bools:
    """Which calls name a peer by a label alone."""
    calls = timeline.calls
    return np.array([c.peer >= 0 and not c.group and c.peer == max(c.src, c.dst) for c in calls], bool)


def _is_answered(timeline: RankTimeline, met: Mapping[int, Collection[int]]) -> bool:
    """Whether all that a rank's labels name, as far as recorded, name this rank as well."""
    m = timeline.messages
    named = np.unique(m.peer[_by_label(timeline)[m.call]]) if len(m) else m.peer
    return all(timeline.rank in met.get(peer, {timeline.rank}) for peer in named.tolist())


def _unnamed(timeline: RankTimeline) -> RankTimeline:
    """The timeline without the peers that labels name."""
    guessed, m = _by_label(timeline), timeline.messages
    calls = tuple(
        dataclasses.replace(call, src=-1, dst=-1) if by_label else call
        for call, by_label in zip(timeline.calls, guessed.tolist(), strict=True)
    )
    return dataclasses.replace(timeline, calls=calls, messages=m.replace(peer=np.where(guessed[m.call], -1, m.peer)))


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
