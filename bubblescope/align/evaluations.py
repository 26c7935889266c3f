"""Evaluations inside training steps: forwards that no backward follows, set aside before anything else is read.

A step in which every rank runs as many forwards more than backwards, all before its training or all behind it, holds an
evaluation beside its training. What is left of such a step is the training alone: the evaluation's actions are none,
its work is work of no action, and its messages are of no step. How many forwards were set aside is kept with the step.

Of an evaluation whose actions nobody told, as autograd numbers nothing without gradients, the messages are left: before
the first action of a step, or behind its last one, each rank has so many more of each way that all are those of the
same forwards.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from bubblescope.align.between import outside_steps
from bubblescope.align.pairs import neighbours
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints
from bubblescope.model.job import Job
from bubblescope.model.timeline import Actions, Messages, RankTimeline
from bubblescope.model.unbacked import apart, codes, unbacked

__all__ = ["set_aside", "set_aside_untold"]

NONE = -1
COUNTED = frozenset({"kernels", "frames", "p2p"})
"""What tells actions without telling which backward belongs to which forward."""

Timelines = Mapping[int, RankTimeline]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """An evaluation of a rank: rows of its actions, whether it is behind the training, and how many forwards it has."""

    rows: Ints
    behind: bool
    forwards: int


def set_aside(timelines: Timelines) -> Timelines:
    """The timelines without the evaluations inside their training steps."""
    acting = {rank: t for rank, t in timelines.items() if len(t.actions)}
    found = {rank: _evaluations(t) for rank, t in acting.items()}
    shared = set.intersection(*(set(parts) for parts in found.values())) if found else set()
    agreed = {n for n in shared if len({parts[n].forwards for parts in found.values()}) == 1}
    if not agreed:
        return timelines
    return {r: _without(t, {n: found[r][n] for n in agreed}) if r in acting else t for r, t in timelines.items()}


_Way = tuple[int, int]
"""Direction of messages and the rank at their other end; NONE where not all of a step name theirs."""
_Found = dict[int, dict[_Way, list[int]]]
"""Messages of no action behind the actions of each step, by its number; NONE: before those of the first."""


def set_aside_untold(job: Job) -> Job:
    """The job without the messages of evaluations of which no action is told."""
    if job.untold_chunks:
        return job
    peers = {rank: near for rank, near in neighbours(job).items() if len(job.timelines[rank].actions)}
    found = {rank: _unawaited(job.timelines[rank], near) for rank, near in peers.items()}
    ways = {rank: _forward_ways(job.timelines[rank].actions, near) for rank, near in peers.items()}
    timelines = dict(job.timelines)
    for behind in sorted({number for mine in found.values() for number in mine}):
        rows = {rank: mine.get(behind, {}) for rank, mine in found.items()}
        forwards = {each for rank, mine in rows.items() for each in _forwards_of(mine, ways[rank])}
        if len(forwards) == 1 and 0 not in forwards:
            gone = {rank: sorted(row for each in mine.values() for row in each) for rank, mine in rows.items()}
            number = _step_of({rank: (job.timelines[rank], mine) for rank, mine in gone.items()})
            for rank, mine in gone.items():
                timelines[rank] = _without_messages(timelines[rank], mine, number, forwards.copy().pop())
    return dataclasses.replace(job, timelines=timelines)


def _unawaited(timeline: RankTimeline, near: tuple[Ints, Ints]) -> _Found:
    """The messages of a rank that are more than those of its actions, where they lie before or behind all of these."""
    actions, messages = timeline.actions, timeline.messages
    found: _Found = {}
    before = NONE
    for step in np.unique(actions.step).tolist():
        number, acted = int(timeline.steps.number[step]), np.flatnonzero(actions.step == step)
        for direction in (Messages.SEND, Messages.RECV):
            mine = np.flatnonzero((messages.step == step) & (messages.direction == direction))
            needed = near[direction][acted][near[direction][acted] != NONE]
            for peer, rows, count in _by_peer(messages.peer[mine], mine, needed):
                early, late = _surplus(messages.after[rows], direction, len(rows) - count, acted)
                for place, part in ((before, rows[:early]), (number, rows[len(rows) - late :])):
                    if len(part):
                        found.setdefault(place, {}).setdefault((direction, peer), []).extend(part.tolist())
        before = number
    return found


def _by_peer(peers: Ints, rows: Ints, needed: Ints) -> Iterator[tuple[int, Ints, int]]:
    """(peer, rows of messages, how many actions need one) of each peer, or of all where not all messages name one."""
    if np.any(peers == NONE):
        yield NONE, rows, len(needed)
    else:
        for peer in np.unique(peers).tolist():
            yield peer, rows[peers == peer], int(np.sum(needed == peer))


def _surplus(after: Ints, direction: int, count: int, acted: Ints) -> tuple[int, int]:
    """How many of so many messages too many come first, and how many last; none where they are amid the others.

    No send was posted before its action, and no receive behind the last one. `after` are the actions behind which the
    messages were posted, `acted` those of the step.
    """
    ahead, behind = int(np.sum(after < acted[0])), int(np.sum(after == acted[-1]))
    early = ahead if direction == Messages.SEND else count - behind
    late = count - early
    return (early, late) if count > 0 and 0 <= early <= ahead and 0 <= late <= behind else (0, 0)


def _forward_ways(actions: Actions, near: tuple[Ints, Ints]) -> Counter[_Way]:
    """How many messages of each way a forward of all stages of a rank makes and needs."""
    forward = np.flatnonzero(actions.kind == Kind.F)
    stages = actions.stage[forward].tolist()
    told = {
        (stage, direction, peer)
        for direction in (Messages.SEND, Messages.RECV)
        for stage, peer in zip(stages, near[direction][forward].tolist(), strict=True)
        if peer != NONE
    }
    return Counter((direction, peer) for _, direction, peer in told)


def _forwards_of(rows: Mapping[_Way, list[int]], ways: Counter[_Way]) -> set[int]:
    """How many forwards some messages are of, by each way; 0 where they are not those of whole forwards."""
    needed = Counter[_Way]()
    for (direction, peer), count in ways.items():
        needed[direction, NONE if (direction, NONE) in rows else peer] += count
    told = {way: divmod(len(rows.get(way, ())), needed[way]) for way in needed}
    return {0 if rest else whole for whole, rest in told.values()} | ({0} if rows.keys() - needed.keys() else set())


def _step_of(gone: Mapping[int, tuple[RankTimeline, list[int]]]) -> int:
    """The number of the step in which most of some messages of each rank ran, of those that have actions."""
    counts = Counter[int]()
    for timeline, rows in gone.values():
        acting = np.unique(timeline.actions.step)
        held = np.searchsorted(timeline.steps.start[acting], timeline.messages.start[rows], "right") - 1
        counts.update(timeline.steps.number[acting[np.maximum(held, 0)]].tolist())
    return max(counts, key=lambda number: (counts[number], number))


def _without_messages(timeline: RankTimeline, rows: list[int], number: int, forwards: int) -> RankTimeline:
    """A timeline some of whose messages are of no step, and of an evaluation of so many forwards in one."""
    extra = timeline.steps.extra.copy()
    extra[timeline.steps.number == number] += forwards
    return dataclasses.replace(outside_steps(timeline, [rows]), steps=timeline.steps.replace(extra=extra))


def _evaluations(timeline: RankTimeline) -> dict[int, _Part]:
    """The evaluations of a rank by the number of the step that each is in."""
    actions, number = timeline.actions, timeline.steps.number
    forward = actions.kind == Kind.F
    counts = [np.bincount(actions.step[rows], minlength=len(number)) for rows in (forward, ~forward)]
    odd = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    parts = ((k, _part(actions, k, counted=timeline.reconstruction in COUNTED)) for k in odd.tolist())
    return {int(number[k]): part for k, part in parts if part is not None}


def _part(actions: Actions, step: int, *, counted: bool) -> _Part | None:
    """The evaluation in a step, None where there is none."""
    rows = np.flatnonzero(actions.step == step)
    mine = actions.take(rows)
    extra = unbacked(_codes(mine), mine.kind, mine.start)
    if extra is None or not extra.any():
        return None
    if not apart(mine.start, extra) and counted:
        extra = _first(mine, int(extra.sum()))
    if not apart(mine.start, extra):
        return None
    behind = bool(mine.start[extra].min() > mine.start[~extra].min())
    return _Part(rows[extra], behind, _forwards(mine.take(extra)))


def _codes(actions: Actions) -> Ints:
    return codes(actions.stage, actions.chunk, actions.microbatch, actions.slice)


def _first(actions: Actions, count: int) -> Bools:
    """The first forwards of a step: where nothing tells which backward is whose, these may be the evaluation."""
    extra = np.zeros(len(actions), bool)
    extra[np.flatnonzero(actions.kind == Kind.F)[:count]] = True
    return extra


def _forwards(extra: Actions) -> int:
    """How many micro-batches an evaluation has, however many stages and slices a rank runs of each."""
    seen: dict[int, int] = {}
    named: set[tuple[int, int]] = set()
    for code, microbatch in zip(_codes(extra).tolist(), extra.microbatch.tolist(), strict=True):
        seen[code] = seen.get(code, 0) + 1
        named.add((microbatch, seen[code]))
    return len(named)


def _without(timeline: RankTimeline, parts: Mapping[int, _Part]) -> RankTimeline:
    """A timeline without some evaluations; the micro-batches of the training that is left are counted from 0."""
    actions, messages, steps = timeline.actions, timeline.messages, timeline.steps
    extra, kept, posted = steps.extra.copy(), np.ones(len(actions), bool), messages.step.copy()
    for number, part in parts.items():
        step = int(np.flatnonzero(steps.number == number)[0])
        extra[step] = part.forwards
        kept[part.rows] = False
        posted[_posted_in(part, actions, messages, step)] = NONE
    place = np.full(len(actions) + 1, NONE)  # one more row, so that NONE maps to NONE
    place[:-1][kept] = np.arange(kept.sum())
    trained, sent = _from_zero(actions.take(kept), messages.replace(step=posted), np.flatnonzero(extra))
    return dataclasses.replace(
        timeline,
        steps=steps.replace(extra=extra),
        actions=trained,
        work=timeline.work.replace(action=place[timeline.work.action]),
        layers=timeline.layers.replace(action=place[timeline.layers.action]).take(kept[timeline.layers.action]),
        messages=sent.replace(after=place[messages.after]),
        collectives=timeline.collectives.replace(action=place[timeline.collectives.action]),
    )


def _posted_in(part: _Part, actions: Actions, messages: Messages, step: int) -> Ints:
    """The messages of a step that belong to its evaluation.

    A send follows the action that made it. A receive is for an action that follows its posting, or that had not begun
    when it ended.
    """
    mine = np.flatnonzero(actions.step == step)
    training = mine[~np.isin(mine, part.rows)]
    earlier, later = (training, part.rows) if part.behind else (part.rows, training)
    rows = np.flatnonzero(messages.step == step)
    posted = messages.take(rows)
    before = np.searchsorted(actions.start[mine], posted.start, "right") - 1
    after = np.where(posted.after >= 0, posted.after, np.where(before >= 0, mine[before], NONE))
    received = posted.direction == Messages.RECV
    is_late = np.isin(after, later) | (received & ((after == earlier[-1]) | (posted.end > actions.start[earlier[-1]])))
    found: Ints = rows[is_late == part.behind]
    return found


def _from_zero(actions: Actions, messages: Messages, steps: Ints) -> tuple[Actions, Messages]:
    """Actions and messages whose micro-batches count from 0 without a gap in some steps.

    Forwards and backwards are counted apart: where nothing links the two, only the first have numbers to give back.
    """
    ids = actions.microbatch.copy(), messages.microbatch.copy()
    for step, forward in product(steps.tolist(), (True, False)):
        mine, sent = ((of.step == step) & ((of.kind == Kind.F) == forward) for of in (actions, messages))
        named = np.unique(actions.microbatch[mine & (actions.microbatch >= 0)])
        for microbatch, rows in zip(ids, (mine, sent), strict=True):
            told = rows & np.isin(microbatch, named)
            microbatch[told] = np.searchsorted(named, microbatch[told])
    return actions.replace(microbatch=ids[0]), messages.replace(microbatch=ids[1])
