"""Which messages are sends and which receives, where a rank's kernels do not say.

In a pipeline of one stage a rank, a rank knows where it stands: an inner stage receives before and sends
after every forward and backward, the first one neither receives for a forward nor sends after a backward,
the last one neither sends after a forward nor receives for a backward. The messages between two actions
must be what the one sends and the next one awaits; receives may be posted early. Where all of a step's
messages fit one of these places and no other, that is what they are: nothing but a pipeline leaves such a
pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
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

_Sides = list[tuple[int, int]]
"""Rows of messages, each with a direction; a kernel that holds a send and a receive comes twice."""


def with_sides(messages: Messages, actions: Actions) -> Messages:
    """The messages with their directions, if none has one and those of most steps fit one place in a pipeline."""
    if not len(messages) or not np.all(messages.direction == Messages.EITHER):
        return messages
    steps = [k for k in np.unique(actions.step).tolist() if k >= 0]
    fits = {place: [_sides(messages, actions, k, place) for k in steps] for place in _PLACES}
    whole = {place: sum(found is not None for found in sides) for place, sides in fits.items()}
    best = max(_PLACES, key=lambda place: whole[place])
    if 2 * whole[best] <= len(steps) or list(whole.values()).count(whole[best]) > 1:
        return messages
    told = [side for found in fits[best] for side in found or ()]
    rows, direction = np.array(told, np.int64).reshape(-1, 2).T
    rest = np.setdiff1d(np.arange(len(messages)), rows)
    order = np.argsort(np.concatenate((rows, rest)), kind="stable")
    directed = Messages.concat((messages.take(rows).replace(direction=direction), messages.take(rest)))
    return directed.take(order)


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
    found: _Sides = []
    ahead = 0  # receives that were posted and not yet used
    for g, mine in enumerate(between):
        sent = _sent(messages, mine, int(actions.end[acted[g - 1]])) if g and sends[g - 1] else None
        if g and sends[g - 1] and sent is None:
            return None
        others = [row for row in mine.tolist() if row != sent]
        needed = g < len(acted) and receives[g]
        both = sent is not None and needed and not others and not ahead
        received = [sent] if both and sent is not None else others
        found += [(sent, Messages.SEND)] if sent is not None else []
        found += [(row, Messages.RECV) for row in received]
        ahead += len(received) - needed
        if ahead < 0:
            return None
    return found if ahead == 0 else None


def _sent(messages: Messages, rows: Ints, ended: int) -> int | None:
    """The message that carries an action's output: the first one that began when the action was over."""
    candidates: Sequence[int] = rows[messages.start[rows] >= ended].tolist()
    return min(candidates, key=lambda row: int(messages.start[row]), default=None)
