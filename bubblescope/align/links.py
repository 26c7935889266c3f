"""What bounds the clocks of two ranks: both ends of a message, and the members of a collective.

Nobody ends a receive before its send began, and a collective ends on nobody before the last has joined.
That a send ends no earlier than its receive began is not relied on: NCCL and gloo both let go of a
message that fits into their buffers. NCCL's kernels do end together on both ends of a message, if each
holds nothing else.

Actions speak, too: none begins before the action that makes its input ended. Which one that is may be guessed, and a
recorder may begin an action before its input is there: what actions say of two ranks counts where it does not
contradict their messages and, with these, bounds the two clocks both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np

from bubblescope.align.clocks import Links
from bubblescope.align.rooms import believed
from bubblescope.align.together import named_collectives
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.job import Match
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["links", "tied"]

Timelines = Mapping[int, RankTimeline]


def links(
    timelines: Timelines, matches: Mapping[int, Match], makers: Mapping[int, tuple[Ints, Ints]] | None = None
) -> Links:
    """Every message, and every collective that names its members, with both sides; times on each rank's own clock.

    `makers` are rank and row of the action that makes the input of each action.
    """
    told = Links.concat((*_messages(timelines, matches), tied(timelines, named_collectives(timelines))))
    actions = Links.concat(_actions(timelines, makers or {}))
    return Links.concat((told, actions.take(believed(told, actions))))


def _actions(timelines: Timelines, makers: Mapping[int, tuple[Ints, Ints]]) -> Iterator[Links]:
    """A link from the end of every action to the start of the one on another clock that needs its output."""
    for rank, (maker, row) in makers.items():
        mine = timelines[rank].identity.clock
        for other in np.unique(maker[maker >= 0]).tolist():
            if mine is None or timelines[other].identity.clock != mine:
                needing = np.flatnonzero(maker == other)
                made, begun = timelines[other].actions.end[row[needing]], timelines[rank].actions.start[needing]
                yield Links(
                    first=np.full(len(needing), other),
                    second=np.full(len(needing), rank),
                    start_first=made,
                    end_first=made,
                    start_second=begun,
                    end_second=begun,
                    both=np.zeros(len(needing), bool),
                    together=np.zeros(len(needing), bool),
                )


def _messages(timelines: Timelines, matches: Mapping[int, Match]) -> Iterator[Links]:
    """A link for every receive whose send was found."""
    rows = {
        rank: np.flatnonzero((match.partner >= 0) & (timelines[rank].messages.direction == Messages.RECV))
        for rank, match in matches.items()
    }
    whole = _whole(timelines, matches, rows)
    for rank, match in matches.items():
        here, partners = timelines[rank], match.partner[rows[rank]]
        for partner in np.unique(partners).tolist():
            there, mine = timelines[partner], rows[rank][partners == partner]
            sent, received = there.messages.take(match.row[mine]), here.messages.take(mine)
            yield Links(
                first=np.full(len(mine), partner),
                second=np.full(len(mine), rank),
                start_first=sent.start,
                end_first=sent.end,
                start_second=received.start,
                end_second=received.end,
                both=np.zeros(len(mine), bool),
                together=whole[rank][partners == partner] & (here.on_gpu and there.on_gpu),
            )


def _whole(timelines: Timelines, matches: Mapping[int, Match], rows: Mapping[int, Ints]) -> dict[int, Bools]:
    """Of every receive, whether its kernel and that of its send hold the same messages, and no other."""
    held = {rank: np.bincount(timeline.messages.kernel, minlength=1) for rank, timeline in timelines.items()}
    base = dict(zip(held, np.cumsum([0, *map(len, held.values())]).tolist(), strict=False))
    ends = [np.empty((0, 2), np.int64), *(_kernels(timelines, base, rank, matches[rank], rows[rank]) for rank in rows)]
    pairs, place, shared = np.unique(np.concatenate(ends), axis=0, return_inverse=True, return_counts=True)
    count = np.concatenate([*held.values(), [0]])
    whole = np.all(count[pairs] == shared[:, None], axis=1)[place.ravel()]
    limits = np.cumsum([len(mine) for mine in rows.values()])[:-1]
    return dict(zip(rows, np.split(whole, limits), strict=True)) if rows else {}


def _kernels(timelines: Timelines, base: Mapping[int, int], rank: int, match: Match, rows: Ints) -> Ints:
    """Numbers of the kernels of both ends of some receives, the lower first: those of a rank begin at its base."""
    own, far = base[rank] + timelines[rank].messages.kernel[rows], np.zeros(len(rows), np.int64)
    for partner in np.unique(match.partner[rows]).tolist():
        theirs = match.partner[rows] == partner
        far[theirs] = base[partner] + timelines[partner].messages.kernel[match.row[rows[theirs]]]
    return np.sort(np.stack([own, far], axis=1), axis=1)


def tied(timelines: Timelines, collectives: Iterable[list[tuple[int, int]]]) -> Links:
    """A link between every two members of a collective that follow each other, and from the last to the first.

    Members are told by rank and row of `Collectives`.
    """
    pairs = [
        (*a, *b)
        for members in collectives
        for a, b in (*pairwise(members), (members[-1], members[0]))[: None if len(members) > 2 else 1]
    ]
    first, first_row, second, second_row = np.array(pairs, np.int64).reshape(-1, 4).T
    ends = [_times(timelines, ranks, rows) for ranks, rows in ((first, first_row), (second, second_row))]
    return Links(
        first=first,
        second=second,
        start_first=ends[0][0],
        end_first=ends[0][1],
        start_second=ends[1][0],
        end_second=ends[1][1],
        both=np.ones(len(pairs), bool),
        together=np.isin(first, [rank for rank, timeline in timelines.items() if timeline.on_gpu]),
    )


def _times(timelines: Timelines, ranks: Ints, rows: Ints) -> tuple[Times, Times]:
    """Start and end of collectives, each given by its rank and its row there."""
    start, end = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for rank in np.unique(ranks).tolist():
        c, mine = timelines[rank].collectives, ranks == rank
        start[mine], end[mine] = c.start[rows[mine]], c.end[rows[mine]]
    return start, end
