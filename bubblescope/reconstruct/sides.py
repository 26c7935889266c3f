"""Which messages are sends and which receives, where a rank's kernels do not say.

In a pipeline of one stage a rank, a rank knows where it stands: an inner stage receives before and sends
after every forward and backward, the first one neither receives for a forward nor sends after a backward,
the last one neither sends after a forward nor receives for a backward. The messages between two actions
must be what the one sends and the next one awaits; receives may be posted early. Where all of a step's
messages fit one of these places and no other, that is what they are: nothing but a pipeline leaves such a
pattern.

Which of several messages behind an action carries its output, the order in which they were posted does not tell: the
receive for the next action may come before it. But a receive is over when an action begins that needs it, and an
action for which the rank stood idle begins when its input is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, product
from typing import NamedTuple

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints, Times, distinct
from bubblescope.model.timeline import Actions, Messages

__all__ = ["with_sides"]


class _Place(NamedTuple):
    """What a stage does: whether its forwards and its backwards receive, and whether they send."""

    forward_in: bool
    forward_out: bool
    backward_in: bool
    backward_out: bool


_PLACES = (
    _Place(forward_in=False, forward_out=True, backward_in=True, backward_out=False),  # the first stage
    _Place(forward_in=True, forward_out=True, backward_in=True, backward_out=True),  # an inner one
    _Place(forward_in=True, forward_out=False, backward_in=False, backward_out=True),  # the last one
)

BARELY = 5_000
"""Nanoseconds by which a receive may seem to end after the action began that needs it: some files hold whole µs."""
MOST_LANES = 6
"""Streams beyond which directions do not go by them: an inner stage has four ways."""
PROMPT = 0.1
"""Share of the time that a rank stood idle within which an action begins behind what it waited for."""

_Sides = list[tuple[int, int]]
"""Rows of messages, each with a direction; a kernel that holds a send and a receive comes twice."""


def with_sides(messages: Messages, actions: Actions, lane: Ints | None = None) -> Messages:
    """The messages with their directions, if none has one and those of most steps fit one place in a pipeline.

    `lane` is the stream of each message. Receives that are posted early may have streams of their own, and so sends:
    where directions that go by the stream leave less waiting unexplained, they count.
    """
    if not len(messages) or not np.all(messages.direction == Messages.EITHER):
        return messages
    needs = {place: _needs(actions, place) for place in _PLACES}
    place, by_order = _by_order(messages, actions, list(needs[_PLACES[0]]))
    places = _PLACES if place is None else (place,)
    by_lane = [] if lane is None else _by_lane(messages, lane, [needs[each] for each in places])
    told = by_order
    if place is None or (by_lane and _open(messages, by_lane, needs[place]) < _open(messages, by_order, needs[place])):
        told = by_lane
    rows, direction = np.array(told, np.int64).reshape(-1, 2).T
    rest = np.setdiff1d(np.arange(len(messages)), rows)
    order = np.argsort(np.concatenate((rows, rest)), kind="stable")
    directed = Messages.concat((messages.take(rows).replace(direction=direction), messages.take(rest)))
    return directed.take(order)


def _by_order(messages: Messages, actions: Actions, steps: Sequence[int]) -> tuple[_Place | None, _Sides]:
    """The one place that those of most steps fit, and what they are there."""
    fits = {place: [_sides(messages, actions, k, place) for k in steps] for place in _PLACES}
    whole = {place: sum(found is not None for found in sides) for place, sides in fits.items()}
    best = max(_PLACES, key=lambda place: whole[place])
    if 2 * whole[best] <= len(steps) or list(whole.values()).count(whole[best]) > 1:
        return None, []
    return best, [side for found in fits[best] for side in found or ()]


class _Need(NamedTuple):
    """What a place asks of the messages of a step: a send behind each of these moments, a receive by each of those."""

    over: Times
    begun: Times


def _needs(actions: Actions, place: _Place) -> dict[int, _Need]:
    """For each step when the actions that send were over, and when those began that receive; sorted."""
    a = actions.take((actions.step >= 0) & (actions.kind != Kind.W))
    forward = a.kind == Kind.F
    sends, receives = (
        np.where(forward, place.forward_out, place.backward_out), np.where(forward, place.forward_in, place.backward_in)
    )  # fmt: skip
    return {
        k: _Need(np.sort(a.end[sends & (a.step == k)]), np.sort(a.start[receives & (a.step == k)]))
        for k in np.unique(a.step).tolist()
    }


def _by_lane(messages: Messages, lane: Ints, places: Sequence[Mapping[int, _Need]]) -> _Sides:
    """The sides where each stream goes one way and those of most steps fit a place; that which leaves least open."""
    lanes = distinct(lane).tolist()
    found: list[tuple[int, int, _Sides]] = []
    for ways in product((Messages.SEND, Messages.RECV), repeat=len(lanes)) if len(lanes) <= MOST_LANES else ():
        direction = np.array(ways)[np.searchsorted(lanes, lane)]
        for needs in places:
            fits = {k: mine for k, need in needs.items() if (mine := _fitting(messages, direction, k, need))}
            if 2 * len(fits) > len(needs):
                sides = [side for mine in fits.values() for side in mine]
                found.append((-len(fits), _open(messages, sides, needs), sides))
    return min(found, default=(0, 0, []))[2]


def _fitting(messages: Messages, direction: Ints, step: int, need: _Need) -> _Sides:
    """The messages of a step with their directions, if they are what is needed; else none."""
    rows = np.flatnonzero(messages.step == step)
    sides = list(zip(rows.tolist(), direction[rows].tolist(), strict=True))
    sent, received = rows[direction[rows] == Messages.SEND], rows[direction[rows] == Messages.RECV]
    if len(sent) != len(need.over) or len(received) != len(need.begun):
        return []
    early = np.sort(messages.start[sent]) - need.over, need.begun - np.sort(messages.end[received])
    return sides if all(np.all(slack >= -BARELY) for slack in early) else []


def _open(messages: Messages, sides: _Sides, needs: Mapping[int, _Need]) -> int:
    """Nanoseconds between an action and its send, or a receive and its action, all messages of whole steps together.

    The k-th send is taken for that of the k-th action, whatever was posted first, and receives likewise.
    """
    rows, direction = np.array(sides, np.int64).reshape(-1, 2).T
    step, total = messages.step[rows], 0
    for k, need in needs.items():
        sent, received = (rows[(step == k) & (direction == way)] for way in (Messages.SEND, Messages.RECV))
        if len(sent) == len(need.over) and len(received) == len(need.begun):
            total += int(np.sum(np.abs(np.sort(messages.start[sent]) - need.over)))
            total += int(np.sum(np.abs(need.begun - np.sort(messages.end[received]))))
    return total


def _sides(messages: Messages, actions: Actions, step: int, place: _Place) -> _Sides | None:
    """The sides of a step's messages at a place in the pipeline; None where they do not fit it."""
    acted = np.flatnonzero((actions.step == step) & (actions.kind != Kind.W))
    posted = np.flatnonzero(messages.step == step)
    forward = (actions.kind[acted] == Kind.F).tolist()
    receives = [place.forward_in if f else place.backward_in for f in forward]
    sends = [place.forward_out if f else place.backward_out for f in forward]
    gap = np.searchsorted(acted, messages.after[posted], "right")  # how many actions were asked for before
    order = np.argsort(gap, kind="stable")
    between = np.split(posted[order], np.searchsorted(gap[order], np.arange(1, len(acted) + 1)))
    waits = list(compress(_waits(actions, step, acted), receives))
    found: _Sides = []
    hand: list[int] = []  # when receives ended that were posted and not yet used, sorted
    for g, mine in enumerate(between):
        sending, needed = g > 0 and sends[g - 1], g < len(acted) and receives[g]
        sent = _sent(messages, mine, int(actions.end[acted[g - 1]]), hand, waits) if sending else None
        if sending and sent is None:
            return None
        others = [row for row in mine.tolist() if row != sent]
        both = sent is not None and needed and not others and not hand
        received = [sent] if both and sent is not None else others
        found += [(sent, Messages.SEND)] if sent is not None else []
        found += [(row, Messages.RECV) for row in received]
        hand = sorted([*hand, *messages.end[received].tolist()])
        if needed and not hand:
            return None
        if needed:
            hand, waits = hand[1:], waits[1:]
    return found if not hand else None


class _Wait(NamedTuple):
    """When an action began, and since when the rank had nothing else to run."""

    since: int
    begun: int

    def ended_by(self, moment: int) -> bool:
        """Whether the rank stood idle until about this moment, and then began."""
        return self.since < moment <= self.begun and self.begun - moment <= PROMPT * (self.begun - self.since)


def _waits(actions: Actions, step: int, acted: Ints) -> list[_Wait]:
    """How the rank waited for each of some actions of a step."""
    mine = np.flatnonzero(actions.step == step)
    over = np.maximum.accumulate(np.append(actions.start[mine[:1]], actions.end[mine]))
    since = over[np.searchsorted(mine, acted)]
    return list(map(_Wait, since.tolist(), actions.start[acted].tolist()))


def _sent(messages: Messages, rows: Ints, ended: int, hand: Sequence[int], waits: Sequence[_Wait]) -> int | None:
    """The message that carries an action's output: of those that began when it was over, the one that fits best.

    Args:
        messages: the rank's.
        rows: those that were posted behind the action and before the next one.
        ended: when the action was over.
        hand: when receives ended that are there already, sorted.
        waits: for the actions behind it that need a receive, in order.
    """
    candidates: Sequence[int] = rows[messages.start[rows] >= ended].tolist()

    def misfit(row: int) -> tuple[int, int, int]:
        arrived = sorted([*hand, *messages.end[rows[rows != row]].tolist()])
        used = list(zip(arrived, waits, strict=False))
        late = sum(moment > wait.begun + BARELY for moment, wait in used)
        return late, -sum(wait.ended_by(moment) for moment, wait in used), int(messages.start[row])

    return min(candidates, key=misfit if len(candidates) > 1 else lambda _: 0, default=None)
