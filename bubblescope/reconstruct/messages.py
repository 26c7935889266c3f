"""This rank's halves of pipeline messages, and its collectives, in the order in which it posted them."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Ints, Times
from bubblescope.model.timeline import Collectives, Messages
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.units import NO_HOST

__all__ = ["beside", "collectives", "following", "messages"]

_DIRECTIONS = {"send": Messages.SEND, "recv": Messages.RECV, "send_recv": Messages.EITHER}


def messages(talk: Talk, step: Ints, labels: Labels) -> Messages:
    """Halves of messages; `labels` name the action that produces or awaits each, where they stand.

    They also tell the direction of a fused call, whose kernel tells none. `step` is the row of the
    step by the marks, for each.
    """
    units, calls, row = talk.units, talk.calls, talk.row
    direction = np.array([_DIRECTIONS[calls[r].op] for r in row], np.int8)
    peer = np.array([calls[r].dst if calls[r].op == "send" else calls[r].src for r in row], np.int32)
    label = _one_each(labels, owners(labels.start, labels.end, units.host), direction)
    named = labels.take(label[label >= 0])
    ids = {name: np.full(len(units), NONE) for name in ("kind", "stage", "microbatch", "slice", "chunk")}
    for name, column in ids.items():
        column[label >= 0] = getattr(named, name)
    fused = (direction == Messages.EITHER) & (label >= 0)
    direction[fused] = labels.direction[label[fused]]
    return Messages(
        start=units.start,
        end=units.end,
        step=step,
        direction=direction,
        peer=peer,
        bytes=talk.bytes,
        call=row,
        kernel=talk.kernel,
        after=np.full(len(units), NONE),
        **ids,
    )


def _one_each(labels: Labels, label: Ints, direction: Ints) -> Ints:
    """The label of each message: of several in one range the next of its direction.

    A fused call carries all of them at once, so that none is its own.
    """
    rows: dict[tuple[int, int], list[int]] = {}
    for row, (block, way) in enumerate(zip(labels.block.tolist(), labels.direction.tolist(), strict=True)):
        if block >= 0:
            rows.setdefault((block, way), []).append(row)
    result = label.copy()
    for message in np.flatnonzero(label >= 0).tolist():
        block = int(labels.block[label[message]])
        if block >= 0:
            left = rows.get((block, int(direction[message])))
            result[message] = left.pop(0) if left else NONE
    return result


def beside(posted: Messages, host: Times, ranges: Ranges, step: Ints) -> Ints:
    """The step of each message: that of the action in which the host posted it.

    Between two actions a receive goes with the next one and a send with the last one, whatever a mark
    says; where there is none, for a message of unknown direction, and in a step of which no action is
    known (an evaluation without labels), the mark decides.
    """
    inside = owners(ranges.start, ranges.end, host)
    following = np.searchsorted(ranges.start, host, "left")
    neighbour = np.where(posted.direction == Messages.RECV, following, following - 1)
    neighbour[posted.direction == Messages.EITHER] = NONE
    row = np.where(inside >= 0, inside, neighbour)
    acted = np.isin(posted.step, step) | (posted.step == NONE)
    known = (row >= 0) & (row < len(ranges)) & (host != NO_HOST) & acted
    result: Ints = posted.step.copy()
    result[known] = step[row[known]]
    return result


def following(host: Times, begun: Times, place: Ints) -> Ints:
    """The action of its step after which each message was posted; `place` is the row of `Actions` of each range.

    `begun` are the host moments at which the first work of each range was asked for: a range may hold the receive that
    its action awaits. Ranges in which nothing ran are no actions, and are passed over.
    """
    alive = np.flatnonzero(place[: len(begun)] >= 0)
    before = np.searchsorted(np.maximum.accumulate(begun[alive]), host, "right") - 1
    before[host == NO_HOST] = NONE
    return np.where(before >= 0, place[alive[before]], NONE) if len(alive) else np.full(len(host), NONE)


def collectives(talk: Talk, step: Ints, action: Ints) -> Collectives:
    """Everything else that communicates; `action` is the action that asked for each."""
    return Collectives(talk.units.start, talk.units.end, action, step, talk.row, talk.bytes)
