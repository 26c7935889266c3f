"""Sends and receives that a rank took for each other, told by the other ranks.

Where nothing says which of two messages behind an action is its output and which one a later input, a rank alone may
guess wrongly (`reconstruct/sides.py`). The other halves show it: a receive then ends before what it brings was sent.
Exchanged, both messages are in order, and it was the guess that was wrong and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bubblescope.align.consensus import TOLERANCE
from bubblescope.model.columns import Bools, Ints
from bubblescope.model.job import Job, Match
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["exchanged", "guessed"]

SEND, RECV = Messages.SEND, Messages.RECV
_Half = tuple[int, int]
"""Rank, and row of its `Messages`."""


def exchanged(job: Job) -> dict[int, Messages]:
    """The messages of ranks of which some should have each other's direction, for a job on one clock.

    These are two that a rank guessed and posted behind the same action, if one of them arrives before it was sent, and
    neither does when they are exchanged.
    """
    halves = _Halves(job)
    turned: set[_Half] = set()
    for late in halves.late():
        for mine in (late, halves.other(late)):
            pair = next((both for both in halves.exchangeable(mine) if halves.fit(*both)), None)
            if pair is not None and turned.isdisjoint(pair):
                turned.update(pair)
                break
    return {
        rank: _turned(job.timelines[rank].messages, [row for at, row in turned if at == rank])
        for rank in sorted({rank for rank, _ in turned})
    }


def guessed(timeline: RankTimeline) -> Bools:
    """Which messages have a direction that nothing of them tells: no call, and no label."""
    m = timeline.messages
    open_calls = [number for number, call in enumerate(timeline.calls) if call.op == "send_recv"]
    found: Bools = np.isin(m.call, open_calls) & (m.kind < 0) & (m.direction != Messages.EITHER)
    return found


def _turned(messages: Messages, rows: list[int]) -> Messages:
    direction = messages.direction.copy()
    direction[rows] = SEND + RECV - direction[rows]
    return messages.replace(direction=direction)


class _Halves:
    """All halves of a job's messages, and where each has its other one."""

    def __init__(self, job: Job) -> None:
        self._timelines = job.timelines
        self._matches: Mapping[int, Match] = job.matches
        self._guessed = {rank: guessed(timeline) for rank, timeline in job.timelines.items()}

    def other(self, half: _Half) -> _Half:
        """The other half of a message; (-1, -1) where it was not found."""
        match = self._matches[half[0]]
        return int(match.partner[half[1]]), int(match.row[half[1]])

    def late(self) -> Iterator[_Half]:
        """Receives that end before their send began."""
        for rank, timeline in self._timelines.items():
            match = self._matches[rank]
            for row in np.flatnonzero((timeline.messages.direction == RECV) & (match.partner >= 0)).tolist():
                if not self._in_order(self.other((rank, row)), (rank, row)):
                    yield rank, row

    def exchangeable(self, half: _Half) -> Iterator[tuple[_Half, _Half]]:
        """(send, receive) of every pair that a half is of, in which either may be the output of the action before."""
        rank, row = half
        timeline = self._timelines[rank]
        m, over = timeline.messages, self._over(rank, row)
        if not self._guessed[rank][row] or m.start[row] < over:
            return
        beside: Ints = np.flatnonzero(
            self._guessed[rank]
            & (m.step == m.step[row])
            & (m.after == m.after[row])
            & (m.peer == m.peer[row])
            & (m.kernel != m.kernel[row])
            & (m.direction != m.direction[row])
            & (m.start >= over)
        )
        for theirs in beside.tolist():
            yield (half, (rank, theirs)) if m.direction[row] == SEND else ((rank, theirs), half)

    def fit(self, send: _Half, receive: _Half) -> bool:
        """Whether both messages are in order when these two halves take each other's place."""
        return self._in_order(receive, self.other(send)) and self._in_order(self.other(receive), send)

    def _over(self, rank: int, row: int) -> int:
        """When the action ended behind which a message was posted."""
        timeline = self._timelines[rank]
        after = int(timeline.messages.after[row])
        return int(timeline.actions.end[after]) if after >= 0 else np.iinfo(np.int64).max

    def _in_order(self, send: _Half, receive: _Half) -> bool:
        """Whether a receive ends no earlier than its send began; true where one of them was not found."""
        if send[0] < 0 or receive[0] < 0:
            return True
        begun = self._timelines[send[0]].messages.start[send[1]]
        return bool(begun <= self._timelines[receive[0]].messages.end[receive[1]] + TOLERANCE)
