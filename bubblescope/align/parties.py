"""Whom collectives join that do not say so: what fits the clocks as all else places them.

All ranks may join, or those that differ in some of their places only: the ranks of a stage over all pipelines, those of
a pipeline, tensor-parallel partners. A way stays open as long as it contradicts nothing: members make as many calls in
a step, and their clocks may be such that no call is over before another member begins it, and that kernels end
together. Of several open ways only what all of them join counts, so that no clock is tied that need not be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from bubblescope.align.consensus import APART, TOLERANCE, Edges, odd
from bubblescope.align.rooms import gap
from bubblescope.align.together import unnamed_calls
from bubblescope.model.columns import Ints, Times
from bubblescope.model.job import CallKind, ClockFit, Parties, Plan
from bubblescope.model.timeline import RankTimeline

__all__ = ["parties"]

Timelines = Mapping[int, RankTimeline]
Groups = tuple[tuple[int, ...], ...]
Calls = Mapping[int, Sequence[int]]
"""Rows of `Collectives` by the number of their step, in order."""

ODD_STEPS = 0.5
"""Share of the steps in which members of a group may make unequal numbers of calls: lost events tear a step."""

ODD_CALLS = 0.05
"""Share of the calls that may end on one member at a moment that fits none of the others."""


def parties(timelines: Timelines, plan: Plan, clock: ClockFit) -> Parties:
    """The members of every kind of call that does not name them, as far as they are sure.

    `clock` is what all else tells of the clocks. Where it leaves two ranks untied, ways that tie none such are passed
    over: they would place no clock, and what the others all join is not in doubt by them.
    """
    kinds: dict[CallKind, dict[int, dict[int, list[int]]]] = {}
    for rank, timeline in timelines.items():
        for row, kind, number in unnamed_calls(timeline):
            kinds.setdefault(kind, {}).setdefault(rank, {}).setdefault(number, []).append(row)
    ways = _ways(timelines, plan) if kinds else []
    found = {}
    for kind, calls in kinds.items():
        open_ = [way for way in ways if _holds(timelines, clock, calls, way)]
        tying = [way for way in open_ if any(clock.between(a, b) is None for group in way for a, b in pairwise(group))]
        groups = _common(tying or open_, sorted(calls))
        if groups:
            found[kind] = groups
    return found


def _ways(timelines: Timelines, plan: Plan) -> list[Groups]:
    """Which groups the recorded ranks may be in, the largest first; a way that joins nobody stands for unknown ones."""
    places = {
        rank: (number, position, lane)
        for number, pipeline in enumerate(plan.pipelines)
        for position, ranks in enumerate(pipeline)
        for lane, rank in enumerate(ranks)
    }
    if plan.tp is None or not places.keys() >= timelines.keys():
        return [(tuple(timelines),), ()]
    ways: dict[Groups, None] = {}
    for kept in (kept for count in range(3) for kept in combinations(range(3), count)):
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank in timelines:
            groups.setdefault(tuple(places[rank][axis] for axis in kept), []).append(rank)
        ways.setdefault(tuple(tuple(group) for group in groups.values() if len(group) > 1))
    return [way for way in ways if way]


def _common(ways: Sequence[Groups], ranks: Sequence[int]) -> Groups:
    """The ranks that are together in all of some ways, in groups of two and more."""
    if not ways:
        return ()
    numbers = [{rank: number for number, group in enumerate(way) for rank in group} for way in ways]
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in ranks:
        if all(rank in number for number in numbers):
            groups.setdefault(tuple(number[rank] for number in numbers), []).append(rank)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _holds(timelines: Timelines, clock: ClockFit, calls: Mapping[int, Calls], way: Groups) -> bool:
    """Whether nothing contradicts that the calls of a kind join the groups of a way."""
    for group in way:
        if not any(rank in calls for rank in group):
            continue
        if not (all(rank in calls for rank in group) and _as_many(timelines, [calls[rank] for rank in group], group)):
            return False
        # Those whose clocks are tied follow each other, so that each is compared with one of which something is known.
        members = sorted(group, key=lambda rank: (clock.tied.get(rank, rank), rank))
        if not all(_meet(timelines, clock, calls, pair) for pair in pairwise(members)):
            return False
    return True


def _as_many(timelines: Timelines, calls: Sequence[Calls], group: Sequence[int]) -> bool:
    """Whether all members of a group make as many calls in most of the steps that all of them recorded."""
    recorded = [{*timelines[rank].steps.number.tolist(), -1} for rank in group]
    steps = set.intersection(*recorded) & {number for mine in calls for number in mine}
    unequal = [number for number in steps if len({len(mine.get(number, ())) for mine in calls}) > 1]
    return len(steps) > 0 and len(unequal) <= ODD_STEPS * len(steps) and len(unequal) < len(steps)


def _meet(timelines: Timelines, clock: ClockFit, calls: Mapping[int, Calls], pair: tuple[int, int]) -> bool:
    """Whether the calls of two ranks, each with its fellow of the same place in its step, may be the same calls."""
    rows = np.array(list(_fellows(*(calls[rank] for rank in pair))), np.int64).reshape(-1, 2).T
    if not rows.size:
        return False
    (begun, over), (asked, gone) = (_times(timelines[rank], clock, mine) for rank, mine in zip(pair, rows, strict=True))
    origin = begun[0]
    begun, over, asked, gone = (times - origin for times in (begun, over, asked, gone))
    at, apart = (over + gone) / 2, (over - gone).astype(np.float64)
    below, above = (begun - gone).astype(np.float64), (over - asked).astype(np.float64)
    if all(timelines[rank].on_gpu for rank in pair):
        same = np.zeros(len(at), np.int64)
        strange = odd(Edges(same, same + 1, at, apart, apart))
        if np.mean(strange) > ODD_CALLS:
            return False
        room = np.maximum(np.minimum(over - begun, gone - asked) / 4, APART)[~strange]
        at, below, above = at[~strange], apart[~strange] - room, apart[~strange] + room
    off = clock.between(*pair)
    if off is not None:
        both = np.array([at.min(), at.max()])
        at = np.append(at, both)
        below, above = np.append(below, [-off, -off]), np.append(above, [off, off])
    return gap((at, below), (at, above)) <= TOLERANCE


def _fellows(one: Calls, other: Calls) -> Iterator[tuple[int, int]]:
    """Rows of calls in the same place of steps in which both ranks make as many."""
    for number in one.keys() & other.keys():
        if len(one[number]) == len(other[number]):
            yield from zip(one[number], other[number], strict=True)


def _times(timeline: RankTimeline, clock: ClockFit, rows: Ints) -> tuple[Times, Times]:
    """Start and end of collectives on the job's clock."""
    c = timeline.collectives
    return clock.corrected(timeline.rank, c.start[rows]), clock.corrected(timeline.rank, c.end[rows])
