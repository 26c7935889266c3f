"""Who is in a communicator that nobody describes: NCCL counts peers within it, and names it alike on all ranks.

A process tells its place when it makes a communicator; where the recording began later, the ranks that use one
are taken for its members in rising order, as torch makes its groups, if they are as many as it counts, or if
what they send to each other fits that order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.model.trace import CommArgs, Finding

__all__ = ["ranked", "resolved"]

Timelines = Mapping[int, RankTimeline]
Members = tuple[int, ...]
"""Global ranks by their place in a communicator."""

_SLACK = 2
"""Messages of a pair of ranks that a recording's ends may cut off."""


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
    members = _members(timelines)
    return {rank: _named(timeline, members) for rank, timeline in timelines.items()} if members else timelines


def _members(timelines: Timelines) -> dict[str, Members]:
    """The members of every communicator of which all are known."""
    used: dict[str, list[int]] = {}
    for rank, timeline in timelines.items():
        for name in {call.group for call in timeline.calls if call.group and not call.ranks}:
            used.setdefault(name, []).append(rank)
    told: dict[str, dict[int, int]] = {}
    sizes: dict[str, int] = {}
    for rank, timeline in timelines.items():
        for member in timeline.identity.memberships:
            told.setdefault(member.communicator, {})[member.rank] = rank
            sizes[member.communicator] = member.ranks
    found = {}
    for name, users in used.items():
        size, places = sizes.get(name), told.get(name, {})
        if size is not None and len(places) == size:
            found[name] = tuple(places[place] for place in range(size))
        elif size is None or len(users) == size:
            members = tuple(sorted(users))
            if all(members[place] == rank for place, rank in places.items() if place < len(members)) and (
                size is not None or _talk_fits(timelines, name, members)
            ):
                found[name] = members
    return found


def _talk_fits(timelines: Timelines, name: str, members: Members) -> bool:
    """Whether what each member sends another is what that one receives, with places in this order."""
    count = np.zeros((2, len(members), len(members)), np.int64)  # direction, who, to or from whom
    for place, rank in enumerate(members):
        for direction, peer in _halves(timelines[rank], name):
            if peer >= len(members):
                return False
            count[direction, place, peer] += 1
    sent, received = count[Messages.SEND], count[Messages.RECV].T
    return bool(count.any() and np.all(np.abs(sent - received) <= _SLACK) and not np.any(np.diag(sent)))


def _halves(timeline: RankTimeline, name: str) -> Iterable[tuple[int, int]]:
    """Direction and peer, within the communicator, of every message that goes through it."""
    m = timeline.messages
    for call, direction in zip(m.call.tolist(), m.direction.tolist(), strict=True):
        args = timeline.calls[call]
        if args.group == name and args.peer >= 0 and direction != Messages.EITHER:
            yield direction, args.peer


def _named(timeline: RankTimeline, members: Mapping[str, Members]) -> RankTimeline:
    """The timeline with global ranks in its calls, and global peers in its messages."""
    calls = tuple(_global(call, members.get(call.group, ())) for call in timeline.calls)
    peer = timeline.messages.peer.copy()
    theirs = np.array([max(call.src, call.dst) for call in calls], np.int64)
    if len(peer):
        known = theirs[timeline.messages.call]
        peer = np.where(peer < 0, known, peer)
    return dataclasses.replace(timeline, calls=calls, messages=timeline.messages.replace(peer=peer))


def _global(call: CommArgs, members: Members) -> CommArgs:
    if not members or call.ranks:
        return call
    peer = members[call.peer] if 0 <= call.peer < len(members) else -1
    return dataclasses.replace(
        call,
        ranks=members,
        group_size=len(members),
        src=peer if call.op == "recv" else call.src,
        dst=peer if call.op == "send" else call.dst,
    )
