"""Which global ranks are in a communicator, by the places at which NCCL counts them.

A process tells its place when it makes a communicator. Where the recording began later, the ranks that use one are
taken for its members in rising order, as torch makes its groups, if they are as many as it counts, or if what they
send to each other fits that order. Of those that nobody recorded the others tell the numbers: frameworks lay groups
evenly over the ranks (one pipeline of 16 ranks is 3, 7, 11, 15), so that members are told if only one such row fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["Members", "members"]

Timelines = Mapping[int, RankTimeline]
Members = tuple[int, ...]
"""Global ranks by their place in a communicator."""

_SLACK = 2
"""Messages of a pair of ranks that a recording's ends may cut off."""

_MOST_RANKS = 1 << 24
"""Ranks of a job whose number nobody states."""

_MOST = 4096
"""Places of a communicator, and ranks between two of its members, beyond which nothing is tried."""


def members(timelines: Timelines) -> dict[str, Members]:
    """The members of every communicator of which all are known, recorded or not."""
    world = max((t.identity.world_size or 0 for t in timelines.values()), default=0) or _MOST_RANKS
    sizes: dict[str, int] = {}
    told: dict[str, dict[int, int]] = {}
    used: dict[str, list[int]] = {}
    talk: dict[str, Counter[tuple[int, int, int]]] = {}
    for rank, timeline in sorted(timelines.items()):
        for name in {call.group for call in timeline.calls if call.group and not call.ranks}:
            used.setdefault(name, []).append(rank)
        for name, way, peer in _halves(timeline):
            talk.setdefault(name, Counter())[rank, way, peer] += 1
        for member in timeline.identity.memberships:
            told.setdefault(member.communicator, {})[member.rank] = rank
            sizes[member.communicator] = member.ranks
    found = {}
    for name, users in used.items():
        known = _Known(tuple(users), told.get(name, {}), talk.get(name, Counter()))
        size, others = sizes.get(name), frozenset(timelines).difference(users)
        row = known.told(size) or known.users_alone(size) or known.evenly(size, others, world)
        if row:
            found[name] = row
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a communicator.

    Attributes:
        users: the recorded ranks that use it, rising.
        places: ranks by the places that they told.
        talk: messages by rank, direction, and place of the other side.
    """

    users: Members
    places: Mapping[int, int]
    talk: Mapping[tuple[int, int, int], int]

    def told(self, size: int | None) -> Members:
        """The members if all told their places, else ()."""
        every = range(size or 0)
        return tuple(self.places[place] for place in every) if self.places.keys() == set(every) else ()

    def users_alone(self, size: int | None) -> Members:
        """The users if they are all of the members, else ()."""
        alone = size == len(self.users) or (size is None and self._talk_fits(self.users))
        return self.users if alone and self._placed(self.users) else ()

    def evenly(self, size: int | None, others: frozenset[int], world: int) -> Members:
        """The only even row of ranks that the members may be; () if there is none, or more than one.

        No other rank that was recorded is in it; and two of the users told their places, or talk.
        """
        size = 1 + max((place for _, _, place in self.talk), default=-1) if size is None else size
        if not len(self.users) < size <= min(_MOST, world):
            return ()
        rows = (row for row in _rows(self.users, size, world) if others.isdisjoint(row) and self._placed(row))
        found = [row for row in rows if len(self.places) > 1 or self._talk_fits(row)]
        return found[0] if len(found) == 1 else ()

    def _placed(self, row: Members) -> bool:
        """Whether the members may be these, as far as they told their places."""
        return all(row[place] == rank for place, rank in self.places.items() if place < len(row))

    def _talk_fits(self, row: Members) -> bool:
        """Whether what each of the users sends another is what that one receives, with the members these."""
        talked = False
        for (rank, direction, place), count in self.talk.items():
            other = row[place] if place < len(row) else rank
            if other == rank:
                return False  # nobody sends to itself, or beyond the last
            if other in self.users:
                answer = self.talk.get((other, _BACK[direction], row.index(rank)), 0)
                if not answer or abs(count - answer) > _SLACK:
                    return False
                talked = True
        return talked


_BACK = {Messages.SEND: Messages.RECV, Messages.RECV: Messages.SEND}


def _rows(users: Members, size: int, world: int) -> Iterator[Members]:
    """The even rows of so many ranks of the job that hold the users."""
    gap = gcd(*(b - a for a, b in pairwise(users)))
    for step in range(1, min(gap, _MOST) + 1):
        if gap % step == 0:
            least = max(users[0] % step, users[-1] - step * (size - 1))
            for first in range(least, min(users[0], world - 1 - step * (size - 1)) + 1, step):
                yield tuple(range(first, first + step * size, step))


def _halves(timeline: RankTimeline) -> Iterator[tuple[str, int, int]]:
    """Communicator, direction, and peer within it, of every message that goes through one."""
    m = timeline.messages
    for call, direction in zip(m.call.tolist(), m.direction.tolist(), strict=True):
        args = timeline.calls[call]
        if args.group and args.peer >= 0 and direction != Messages.EITHER:
            yield args.group, direction, args.peer
