"""Why a rank stood still before an action: when the input that it awaited was sent, and when it arrived.

A gap begins where the previous action ended. Until both sides of the awaited transfer are there it
is waiting; while the bytes move it is transfer; from then until the action begins the host is late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bubblescope.align.pairs import UNKNOWN, Pairing
from bubblescope.analysis.steps import RankStep, rows_by
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["Gaps", "find_gaps", "sends_block"]

NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Gaps(Columns):
    """The idle stretch before each action of a step, [start, end), split at `ready` and `arrived`.

    `ready` is when both sides of the awaited transfer were there, `arrived` when it was over; both
    are cut to the stretch. Where `split` is false the peer is unknown, and `ready` equals `arrived`.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    ready: Times = column(np.int64)
    arrived: Times = column(np.int64)
    split: Bools = column(np.bool_)


def find_gaps(
    timeline: RankTimeline, steps: dict[int, RankStep], pairing: Pairing, made: Times, *, blocking: bool
) -> dict[int, Gaps]:
    """The gaps of a rank by step; the first action of a step has an empty one.

    `made` is when the input of each action was ready on another rank; it counts where no message tells
    more. With `blocking` the rank sees its sends through before it goes on, and they count like inputs.
    """
    messages, actions = timeline.messages, timeline.actions
    received = np.flatnonzero((pairing.action >= 0) & (messages.direction == Messages.RECV))
    # A receive without an action, or a message of unknown direction, was awaited by the action that follows it.
    loose = (pairing.action < 0) & (messages.direction != Messages.SEND)
    sent = np.flatnonzero(loose | (blocking & (messages.direction == Messages.SEND)))
    received_in = rows_by(actions.step[pairing.action[received]], len(timeline.steps))
    sent_in = rows_by(messages.step[sent], len(timeline.steps))
    return {
        number: _gaps(timeline, step, pairing, made, (received[received_in[k]], sent[sent_in[k]]))
        for k, (number, step) in enumerate(steps.items())
    }


def _gaps(timeline: RankTimeline, step: RankStep, pairing: Pairing, made: Times, posted: tuple[Ints, Ints]) -> Gaps:
    actions, messages = step.actions, timeline.messages
    start = np.concatenate((actions.start[:1], np.maximum.accumulate(actions.end)[:-1]))
    end = np.maximum(actions.start, start)
    ready, arrived = np.full(len(actions), NEVER), np.full(len(actions), NEVER)
    split = np.ones(len(actions), bool)
    for row, at in _awaited(step, pairing, messages, *posted):
        paired = pairing.other[row] != UNKNOWN
        over = int(messages.end[row])
        ready[at] = max(ready[at], max(messages.start[row], pairing.other[row]) if paired else over)
        arrived[at] = max(arrived[at], over)
        split[at] &= paired or over <= start[at]  # a message that nobody waited for needs no split
    # Without any message the rank waited for its input at least until that was made.
    silent = (arrived == NEVER) & (made[step.rows] != UNKNOWN) & (end > start)
    ready[silent] = arrived[silent] = made[step.rows][silent]
    split[silent] &= arrived[silent] <= start[silent]
    arrived = arrived.clip(start, end)
    return Gaps(start, end, ready.clip(start, arrived), arrived, split)


def _awaited(
    step: RankStep, pairing: Pairing, messages: Messages, received: Ints, sent: Ints
) -> Iterator[tuple[int, int]]:
    """(message, action of the step) for every message that the rank had to see through before the action."""
    at = np.searchsorted(step.rows, pairing.action[received])
    yield from zip(received.tolist(), step.leaders[at].tolist(), strict=True)
    sends = messages.direction[sent] == Messages.SEND
    moment = np.where(sends, messages.start[sent] + 1, messages.end[sent])
    following = np.searchsorted(step.actions.start, moment, "left")
    yield from (
        (row, at)
        for row, at in zip(sent.tolist(), following.tolist(), strict=True)
        if 0 < at < len(step.actions) and messages.end[row] > step.actions.end[at - 1]
    )


def sends_block(ranks: Iterable[tuple[RankTimeline, Pairing]]) -> bool:
    """Whether the ranks of a job, which run one program, see their sends through before they go on.

    Then no action begins while a send is under way (a few are forgiven, as profilers end a range a
    little late), and what follows keeps time with the sends' ends: where nothing else was awaited for
    longer, the stretch from a send's end to the next action varies far less than the whole gap does.
    A host that is always late by more than a send takes proves nothing.
    """
    free, over, begins = (np.concatenate(part) for part in zip(*(_passed(t, p) for t, p in ranks), strict=True))
    if not len(over) or np.mean(begins < over) > 0.02:
        return False
    held = over > free
    return _spread((begins - over)[held]) < _spread((begins - free)[held]) / 2


def _passed(timeline: RankTimeline, pairing: Pairing) -> tuple[Times, Times, Times]:
    """For each send that an action follows: when all else was there, when the send ended, when the action began."""
    actions, messages = timeline.actions, timeline.messages
    sent = messages.take(messages.direction == Messages.SEND)
    received = np.flatnonzero((pairing.action >= 0) & (messages.direction == Messages.RECV))
    input_at = np.full(len(actions), NEVER)
    np.maximum.at(input_at, pairing.action[received], messages.end[received])
    following = np.searchsorted(actions.start, sent.start, "left")
    inside = (following > 0) & (following < len(actions))
    at = following[inside]
    free = np.maximum(np.maximum.accumulate(actions.end)[at - 1], input_at[at])
    return free, sent.end[inside], actions.start[at]


def _spread(lengths: Times) -> float:
    """Mean distance from the median; 0 without any."""
    return float(np.mean(np.abs(lengths - np.median(lengths)))) if len(lengths) else 0.0
