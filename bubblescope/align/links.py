"""What bounds the clocks of two ranks: both ends of a message, and the members of a collective.

Nobody ends a receive before its send began, and a collective ends on nobody before the last has joined.
That a send ends no earlier than its receive began is not relied on: NCCL and gloo both let go of a
message that fits into their buffers. NCCL's kernels do end together on both ends of a message, if each
holds nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from bubblescope.align.clocks import Links
from bubblescope.align.together import whole_collectives
from bubblescope.model.columns import Bools
from bubblescope.model.job import Match
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["links"]

Timelines = Mapping[int, RankTimeline]


def links(timelines: Timelines, matches: Mapping[int, Match]) -> Links:
    """Every message and collective of which the trace shows both sides; times on each rank's own clock."""
    return Links.concat((*_messages(timelines, matches), _collectives(timelines)))


def _messages(timelines: Timelines, matches: Mapping[int, Match]) -> Iterator[Links]:
    """A link for every receive whose send was found."""
    for rank, match in matches.items():
        here = timelines[rank]
        for partner in np.unique(match.partner[match.partner >= 0]).tolist():
            there = timelines[partner]
            rows = np.flatnonzero((match.partner == partner) & (here.messages.direction == Messages.RECV))
            sent, received = there.messages.take(match.row[rows]), here.messages.take(rows)
            alone = _alone(there.messages)[match.row[rows]] & _alone(here.messages)[rows]
            yield Links(
                first=np.full(len(rows), partner),
                second=np.full(len(rows), rank),
                start_first=sent.start,
                end_first=sent.end,
                start_second=received.start,
                end_second=received.end,
                both=np.zeros(len(rows), bool),
                together=alone & here.on_gpu & there.on_gpu,
            )


def _alone(messages: Messages) -> Bools:
    """Which halves have a kernel to themselves."""
    count = np.bincount(messages.kernel, minlength=1)
    alone: Bools = count[messages.kernel] == 1
    return alone


def _collectives(timelines: Timelines) -> Links:
    """A link between every two members that follow each other, and from the last to the first."""
    pairs = [
        (*a, *b)
        for members in whole_collectives(timelines)
        for a, b in (*pairwise(members), (members[-1], members[0]))[: None if len(members) > 2 else 1]
    ]
    first, first_row, second, second_row = np.array(pairs, np.int64).reshape(-1, 4).T
    times = np.zeros((4, len(pairs)), np.int64)
    for rank, timeline in timelines.items():
        c = timeline.collectives
        for at, ranks, rows in ((0, first, first_row), (2, second, second_row)):
            mine = ranks == rank
            times[at : at + 2, mine] = c.start[rows[mine]], c.end[rows[mine]]
    both = np.ones(len(pairs), bool)
    on_gpu = np.isin(first, [rank for rank, timeline in timelines.items() if timeline.on_gpu])
    return Links(first, second, *times, both, on_gpu)
