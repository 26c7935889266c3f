"""Every message of the pipeline by the ranks that it joins: how long its bytes moved, and how long its receive waited.

A kernel that talks with several ranks tells of none when it was over; then the kernel at the other end tells, if that
talks with one only. Two kernels of a message end together, and the one that began last lasts as long as the bytes
move: of ranks whose clocks differ the shorter one tells that without any clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from bubblescope.align.pairs import NONE
from bubblescope.analysis.moving import told
from bubblescope.analysis.ranks import RankView
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.job import ClockFit
from bubblescope.model.timeline import Messages

__all__ = ["BACKWARD", "FORWARD", "Edges", "edges"]

FORWARD, BACKWARD = 0, 1
Views = Mapping[int, RankView]


@dataclass(frozen=True, eq=False)
class Edges(Columns):
    """Messages of the pipeline in some steps, one row each, whichever half tells of it.

    `direction` is FORWARD, BACKWARD, or -1 where nobody tells; `step` the number of the step. `transfer` and
    `wait` are nanoseconds of the receive, -1 where nothing tells when the bytes moved, `bytes` -1 where unknown.
    `doubt` is by how many nanoseconds the clocks of the two ranks may have changed `transfer`, -1 if by any number.
    """

    source: Ints = column(np.int32)
    target: Ints = column(np.int32)
    direction: Ints = column(np.int8)
    step: Ints = column(np.int64)
    bytes: Ints = column(np.int64)
    transfer: Times = column(np.int64)
    wait: Times = column(np.int64)
    doubt: Times = column(np.int64)


def edges(views: Views, clock: ClockFit, used: Collection[int]) -> Edges:
    """The messages of the used steps (by number) whose source and target are known."""
    known, alone = told(views), {rank: _alone(view) for rank, view in views.items()}
    parts = []
    for rank, view in views.items():
        received = _posted(view, used, Messages.RECV)
        moved = np.full((3, len(received)), NONE, np.int64)
        partner = view.pairing.partner[received]
        for source in np.unique(partner[known[rank][received]]).tolist():
            at = np.flatnonzero(known[rank][received] & (partner == source))
            moved[:, at] = _moved(views, clock, alone, (source, rank), received[at])
        parts += [_rows(view, received, moved), _rows(view, *_unseen(views, view, used))]
    return Edges.concat(parts)


def _posted(view: RankView, used: Collection[int], direction: int) -> Ints:
    """Rows of a rank's messages of one direction in the used steps."""
    m, number = view.timeline.messages, view.timeline.steps.number
    steps = np.flatnonzero(np.isin(number, list(used)))
    return np.flatnonzero((m.direction == direction) & np.isin(m.step, steps))


def _unseen(views: Views, view: RankView, used: Collection[int]) -> tuple[Ints, Times]:
    """Sends to ranks that were not recorded: no receive stands for these."""
    sent = _posted(view, used, Messages.SEND)
    lost = (view.pairing.partner[sent] == NONE) & ~np.isin(view.timeline.messages.peer[sent], list(views))
    rows = sent[lost]
    return rows, np.full((3, len(rows)), NONE, np.int64)


def _rows(view: RankView, rows: Ints, moved: Times) -> Edges:
    """Messages of a rank as rows of edges; `moved` are transfer, wait and doubt of each."""
    m, actions, partner = view.timeline.messages, view.timeline.actions, view.pairing.partner
    peer = np.where(partner[rows] >= 0, partner[rows], m.peer[rows])
    mine, sends = np.full(len(rows), view.timeline.rank), m.direction[rows] == Messages.SEND
    action = view.pairing.action[rows]
    direction = np.full(len(rows), NONE)
    direction[action >= 0] = np.where(actions.kind[action[action >= 0]] == Kind.F, FORWARD, BACKWARD)
    found = Edges(
        source=np.where(sends, mine, peer),
        target=np.where(sends, peer, mine),
        direction=direction,
        step=view.timeline.steps.number[m.step[rows]],
        bytes=m.bytes[rows],
        transfer=moved[0],
        wait=moved[1],
        doubt=moved[2],
    )
    return found.take(peer >= 0)


def _alone(view: RankView) -> Bools:
    """For each message whether its kernel talks with one rank only."""
    m, partner = view.timeline.messages, view.pairing.partner
    peer = np.where(partner >= 0, partner, m.peer)
    _, of, halves = np.unique(m.kernel, return_inverse=True, return_counts=True)
    least, most = np.full(len(halves), np.iinfo(np.int64).max), np.full(len(halves), NONE, np.int64)
    np.minimum.at(least, of, peer)
    np.maximum.at(most, of, peer)
    single: Bools = ((halves == 1) | ((least == most) & (least >= 0)))[of]
    return single


def _moved(views: Views, clock: ClockFit, alone: Mapping[int, Bools], ends: tuple[int, int], rows: Ints) -> Times:
    """Transfer, wait and doubt of receives; `ends` are source and target, `rows` those of the target's messages."""
    source, target = views[ends[0]], views[ends[1]]
    sent, received = source.timeline.messages.take(target.pairing.row[rows]), target.timeline.messages.take(rows)
    one_clock = _shared(source, target)
    posted, error = np.maximum(sent.start, received.start), clock.between(*ends)
    if not target.timeline.on_gpu:
        transfer = received.end - posted
        doubt = np.where((received.start >= sent.start) | one_clock, 0, NONE if error is None else error)
    else:
        single = alone[ends[0]][target.pairing.row[rows]], alone[ends[1]][rows]
        transfer = _between(sent, received, single) if one_clock else _shorter(sent, received, single)
        doubt = np.zeros(len(rows), np.int64)
    unknown = transfer < 0  # buffered: the send was over before the receive began
    wait = (received.end - received.start - transfer).clip(0)
    return np.where(unknown, NONE, np.stack([transfer, wait, doubt]))


def _between(sent: Messages, received: Messages, single: tuple[Bools, Bools]) -> Times:
    """From when both kernels were there until the first that talks with nobody else was over; negative if unknown."""
    never = np.iinfo(np.int64).max
    over = np.minimum(np.where(single[0], sent.end, never), np.where(single[1], received.end, never))
    return np.where(single[0] | single[1], over - np.maximum(sent.start, received.start), NONE)


def _shorter(sent: Messages, received: Messages, single: tuple[Bools, Bools]) -> Times:
    """The length of the shorter kernel; negative where it talks with others too."""
    lengths = sent.end - sent.start, received.end - received.start
    last = np.where(lengths[0] < lengths[1], single[0], single[1])
    return np.where(last, np.minimum(*lengths), NONE)


def _shared(one: RankView, other: RankView) -> bool:
    """Whether two ranks count by one clock."""
    name = one.timeline.identity.clock
    return name is not None and name == other.timeline.identity.clock
