"""Messages and the actions at their ends: which action awaits a receive, which one made a send.

Halves are told apart by labels where these stand. Else the k-th send to a peer belongs to the k-th action whose output
goes there, and the k-th receive to the action that needs the k-th output of that peer: what one rank sends another
arrives in the order in which it was sent, which need not be that in which it is used. Where receives so paired would
end later behind the starts of their actions, all in all, than receives in the order of use, they were told apart by
more than their order (tags of gloo, streams of their own), and it is the order of use that counts.
Two halves are one message when they carry the output of one action to the action that needs it. An action may come
again in its step, as where an evaluation stands in it: then the halves of each time belong together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Action, Kind
from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.job import Job, Match
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["NONE", "UNKNOWN", "Pairing", "makers", "matches", "neighbours", "pair", "produced"]

NONE = -1
UNKNOWN = np.iinfo(np.int64).min
"""`Pairing.other` where the other half was not recorded or not found."""

LATE = 0.05
"""Share of receives that may end after the actions that they feed, as clocks and kernels are not perfect."""

Position = tuple[int, int, Action, int]
"""Pipeline, number of the step, action, and how often it came before in the step."""
Makers = Mapping[int, tuple[Ints, Ints]]
"""Of each rank, for each of its actions, rank and row of the action elsewhere that makes its input, or NONE."""
Key = tuple[int, Position]
"""Lane, and the action that needs the message."""
_Way = tuple[Key, int]
"""What a message is for, and the direction of one half."""


@dataclass(frozen=True, eq=False)
class Pairing(Columns):
    """For each message of a rank the action at this end (row of `Actions`), and start and end of the other half.

    `partner` and `row` are the rank of the other half and its row there, -1 where it is not known.
    """

    action: Ints = column(np.int32)
    other: Times = column(np.int64)
    other_end: Times = column(np.int64)
    partner: Ints = column(np.int32, absent=NONE)
    row: Ints = column(np.int32, absent=NONE)


def pair(job: Job) -> dict[int, Pairing]:
    """The messages of all ranks of a job, with the times of their other halves on the job's clock."""
    return {rank: _timed(job, match) for rank, match in (job.matches or matches(job)).items()}


def _timed(job: Job, match: Match) -> Pairing:
    other = np.full((2, len(match)), UNKNOWN)
    for rank in np.unique(match.partner[match.partner >= 0]).tolist():
        here = match.partner == rank
        halves = job.timelines[rank].messages.take(match.row[here])
        other[:, here] = halves.start, halves.end
    return Pairing(match.action, other[0], other[1], match.partner, match.row)


def matches(job: Job) -> dict[int, Match]:
    """Pair the messages of all ranks of a job; no clock has a part in it."""
    holders = _Holders(job)
    made = makers(job) if any(map(_counted, job.timelines.values())) else {}
    ends = {rank: _ends(job, rank, holders, made) for rank in job.timelines}
    posted: dict[_Way, list[tuple[int, int]]] = {}
    for rank, action in ends.items():
        messages = job.timelines[rank].messages
        for row, key in _keys(job, rank, action, holders):
            posted.setdefault((key, int(messages.direction[row])), []).append((rank, row))
    return {rank: Match(action, *_others(job, rank, action, holders, posted)) for rank, action in ends.items()}


def _others(
    job: Job, rank: int, action: Ints, holders: _Holders, posted: Mapping[_Way, Sequence[tuple[int, int]]]
) -> tuple[Ints, Ints]:
    """Rank and row of the other half of each message; of several that are for one action the k-th, or the last."""
    messages = job.timelines[rank].messages
    other = np.full((2, len(messages)), NONE)
    seen = Counter[_Way]()
    for row, key in _keys(job, rank, action, holders):
        opposite = key, Messages.SEND + Messages.RECV - int(messages.direction[row])
        halves = posted.get(opposite, ())
        if halves:
            other[:, row] = halves[min(seen[opposite], len(halves) - 1)]
        seen[opposite] += 1
    return other[0], other[1]


def produced(job: Job) -> dict[int, Times]:
    """For each action of each rank, when the action on another rank that makes its input ended.

    UNKNOWN where the input is local or nobody recorded its making, and in pipelines whose ranks cannot be compared.
    """
    holders = _Holders(job)
    place = holders.place
    tied = [job.clock.ties(r for ranks in p for r in ranks if r in job.timelines) for p in job.plan.pipelines]
    ended: dict[Position, int] = {}
    for rank, timeline in job.timelines.items():
        for row, key in _positions(timeline, place.get(rank)):
            ended[key] = max(ended.get(key, UNKNOWN), int(timeline.actions.end[row]))
    result = {rank: np.full(len(t.actions), UNKNOWN) for rank, t in job.timelines.items()}
    for rank, timeline in job.timelines.items():
        if rank in place and tied[place[rank][0]]:
            elsewhere = _peers(job, rank, holders, Messages.RECV) >= 0
            for row, position in _positions(timeline, place[rank]):
                if elsewhere[row]:
                    result[rank][row] = ended.get(_moved(position, _producer), UNKNOWN)
    return result


def makers(job: Job) -> Makers:
    """For each action of each rank, rank and row of the action elsewhere that makes its input, or NONE.

    Of a backward in two halves, the first that ran makes the output.
    """
    holders, second_half = _Holders(job), Kind.W
    place = holders.place
    rows: dict[int, dict[Position, int]] = {rank: {} for rank in job.timelines}
    for rank, timeline in job.timelines.items():
        for row, key in _positions(timeline, place.get(rank)):
            if timeline.actions.kind[row] != second_half:
                rows[rank].setdefault(key, row)
    found: dict[int, tuple[Ints, Ints]] = {}
    for rank, timeline in job.timelines.items():
        maker = np.full(len(timeline.actions), NONE), np.full(len(timeline.actions), NONE)
        if rank in place:
            peers = _peers(job, rank, holders, Messages.RECV)
            for row, position in _positions(timeline, place[rank]):
                there = rows.get(int(peers[row]), {}).get(_moved(position, _producer), NONE)
                if there != NONE:
                    maker[0][row], maker[1][row] = peers[row], there
        found[rank] = maker
    return found


def neighbours(job: Job) -> dict[int, tuple[Ints, Ints]]:
    """For each action of each rank of a pipeline, the ranks that its output goes to and its input comes from, or NONE.

    They come in the order of `Messages.SEND` and `Messages.RECV`.
    """
    holders = _Holders(job)
    return {
        rank: (_peers(job, rank, holders, Messages.SEND), _peers(job, rank, holders, Messages.RECV))
        for rank in job.timelines
        if rank in holders.place
    }


def _positions(timeline: RankTimeline, place: tuple[int, int] | None) -> Iterator[tuple[int, Position]]:
    """(row, position) of every action of a rank in a pipeline."""
    if place is not None:
        steps = timeline.steps.number[timeline.actions.step].tolist()
        rows = zip(steps, _actions(timeline), _times_before(timeline), strict=True)
        for row, (step, action, before) in enumerate(rows):
            yield row, (place[0], step, action, before)


def _times_before(timeline: RankTimeline) -> list[int]:
    """How often each action came before in its step: mostly never."""
    a, seen = timeline.actions, Counter[tuple[int, ...]]()
    result = []
    for key in zip(*(ids.tolist() for ids in (a.step, a.stage, a.kind, a.microbatch, a.slice)), strict=True):
        result.append(seen[key])
        seen[key] += 1
    return result


def _keys(job: Job, rank: int, action: Ints, holders: _Holders) -> Iterator[tuple[int, Key]]:
    """(row, key) of every message of a rank whose action is known."""
    timeline = job.timelines[rank]
    place = holders.place.get(rank)
    if place is None:
        return
    lane = job.plan.pipelines[place[0]][place[1]].index(rank)
    positions, direction = dict(_positions(timeline, place)), timeline.messages.direction
    for row in np.flatnonzero(action >= 0).tolist():
        position = positions[int(action[row])]
        if direction[row] == Messages.SEND:
            position = _moved(position, _consumer)
        yield row, (lane, position)


def _actions(timeline: RankTimeline) -> list[Action]:
    """The action of each row; every kind of backward is one, as far as messages go."""
    actions, forward, backward = timeline.actions, Kind.F, Kind.B
    kinds = [forward if ours else backward for ours in (actions.kind == forward).tolist()]
    return list(map(Action, actions.stage.tolist(), kinds, actions.microbatch.tolist(), actions.slice.tolist()))


def _consumer(producer: Action) -> Action:
    return producer._replace(stage=producer.stage + (1 if producer.kind == Kind.F else -1))


def _producer(consumer: Action) -> Action:
    return consumer._replace(stage=consumer.stage + (-1 if consumer.kind == Kind.F else 1))


def _moved(position: Position, to: Callable[[Action], Action]) -> Position:
    pipeline, step, action, before = position
    return pipeline, step, to(action), before


def _counted(timeline: RankTimeline) -> bool:
    """Whether messages name their peers and nothing else, so that only their order tells their actions."""
    m = timeline.messages
    return bool(np.any(m.peer >= 0) and not np.any(m.microbatch >= 0))


def _ends(job: Job, rank: int, holders: _Holders, made: Makers) -> Ints:
    """For each message of a rank the row of the action at this end, or NONE."""
    timeline = job.timelines[rank]
    result = _labelled(timeline)
    if rank not in holders.place or np.any(result >= 0):
        return result
    for rows, actions in _matched(job, rank, holders, Messages.SEND):
        result[rows] = actions
    received = list(_matched(job, rank, holders, Messages.RECV))
    sent = [(rows, _as_made(actions, *made[rank])) for rows, actions in received] if _counted(timeline) else received
    for rows, actions in min((sent, received), key=lambda order: _early(timeline, order)):
        result[rows] = actions
    return _believed(timeline, result)


def _early(timeline: RankTimeline, order: Sequence[tuple[Ints, Ints]]) -> int:
    """By how many nanoseconds, all in all, actions would begin before the receives that they await end."""
    messages, actions = timeline.messages, timeline.actions
    return sum(int(np.sum((messages.end[rows] - actions.start[needing]).clip(0))) for rows, needing in order)


def _labelled(timeline: RankTimeline) -> Ints:
    """Ends that labels tell; on a split backward the first part that ran is meant.

    Of an action that came several times, messages of its name are shared out in order.
    """
    rows: dict[tuple[int, Action], dict[int, int]] = {}  # row of each time
    keys = zip(timeline.actions.step.tolist(), _actions(timeline), strict=True)
    for row, (key, before) in enumerate(zip(keys, _times_before(timeline), strict=True)):
        rows.setdefault(key, {}).setdefault(before, row)
    m = timeline.messages
    named: dict[tuple[int, Action, int], list[int]] = {}
    labels = zip(*(ids.tolist() for ids in (m.step, m.stage, m.kind, m.microbatch, m.slice, m.direction)), strict=True)
    for message, (step, stage, kind, i, part, direction) in enumerate(labels):
        if i >= 0:
            named.setdefault((step, Action(stage, Kind(min(kind, Kind.B)), i, part), direction), []).append(message)
    result = np.full(len(m), NONE, np.int64)
    for (step, action, _), mine in named.items():
        times = rows.get((step, action), {})
        for k, message in enumerate(mine if times else ()):
            result[message] = times[k * len(times) // len(mine)]
    return result


def _matched(job: Job, rank: int, holders: _Holders, direction: int) -> Iterator[tuple[Ints, Ints]]:
    """Runs of messages and the actions they belong to, by step and peer; runs of unequal length match nothing."""
    timeline = job.timelines[rank]
    peer_of = _peers(job, rank, holders, direction)
    messages, actions = timeline.messages, timeline.actions
    for step in range(len(timeline.steps)):
        mine = np.flatnonzero((messages.step == step) & (messages.direction == direction))
        needing = np.flatnonzero((actions.step == step) & (peer_of >= 0))
        named = len(mine) > 0 and bool(np.all(messages.peer[mine] >= 0))
        groups = [(mine[messages.peer[mine] == p], needing[peer_of[needing] == p]) for p in np.unique(peer_of[needing])]
        for message_rows, action_rows in groups if named else [(mine, needing)]:
            if len(message_rows) == len(action_rows):
                yield message_rows, action_rows


def _as_made(actions: Ints, ranks: Ints, rows: Ints) -> Ints:
    """Actions in the order in which one rank makes their inputs.

    As they are where not all of that was recorded, or several ranks make it. `ranks` and `rows` are those of `Makers`.
    """
    made, by = rows[actions], ranks[actions]
    return actions if np.any((made == NONE) | (by != by[:1])) else actions[np.argsort(made, kind="stable")]


def _peers(job: Job, rank: int, holders: _Holders, direction: int) -> Ints:
    """For each action the rank on the other end of its input (RECV) or output (SEND), or NONE where that is local."""
    place, actions = holders.place[rank], job.timelines[rank].actions
    pipeline = job.plan.pipelines[place[0]]
    lane = pipeline[place[1]].index(rank)
    result = np.full(len(actions), NONE)
    for row, (stage, kind, i) in enumerate(
        zip(actions.stage.tolist(), actions.kind.tolist(), actions.microbatch.tolist(), strict=True)
    ):
        upstream = (kind == Kind.F) == (direction == Messages.RECV)
        position = None if kind == Kind.W else holders.of(stage - 1 if upstream else stage + 1, i)
        if position is not None and position != place[1]:
            ranks = pipeline[position] if position < len(pipeline) else ()  # one of several, of unequal length
            result[row] = ranks[min(lane, len(ranks) - 1)] if ranks else NONE
    return result


class _Holders:
    """Which position runs a stage; where pipelines run both ways two hold it, and the micro-batch decides.

    `place` are pipeline and position of every rank that has one. Made once for all ranks, whose number it grows with.
    """

    def __init__(self, job: Job) -> None:
        self.place = job.plan.place_of()
        self.positions: dict[int, list[int]] = {}
        for position, stages in sorted(job.placement.items()):
            for stage in stages:
                self.positions.setdefault(stage, []).append(position)
        both = any(len(positions) > 1 for positions in self.positions.values())
        self.down = _downward(job) if both else set()

    def of(self, stage: int, microbatch: int) -> int | None:
        """The position, or None where no rank holds the stage."""
        positions = self.positions.get(stage, [])
        if len(positions) == 2:
            return stage if microbatch in self.down else positions[positions[0] == stage]
        return positions[0] if positions else None


def _downward(job: Job) -> set[int]:
    """The micro-batches that pass stage s on position s."""
    found: set[int] = set()
    for rank, (_, position) in job.plan.place_of().items():
        if rank in job.timelines:
            actions = job.timelines[rank].actions
            found |= set(actions.microbatch[actions.stage == position].tolist())
    return found


def _believed(timeline: RankTimeline, ends: Ints) -> Ints:
    """The ends without those that cannot be.

    An action that would have ended before the receive that it awaited shows that the guess is wrong: of the step, where
    most of the others fit, as it may be torn by a cut or by lost events; else of all.
    """
    messages = timeline.messages
    received = np.flatnonzero((ends >= 0) & (messages.direction == Messages.RECV))
    late = messages.end[received] > timeline.actions.end[ends[received]]
    if late.sum() <= LATE * len(late):
        return ends
    steps, of_step, counts = np.unique(messages.step[received], return_inverse=True, return_counts=True)
    wrong = np.bincount(of_step, late) > LATE * counts
    lost = np.isin(messages.step, steps[wrong]) | (np.mean(wrong) >= 0.5)
    return np.where(lost, NONE, ends)
