"""A rank in one step: its actions, their useful time; and which steps are complete and used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.columns import Ints, Times
from bubblescope.model.options import StepRange
from bubblescope.model.spans import Spans, union_by_owner
from bubblescope.model.timeline import Actions, RankTimeline

__all__ = ["RankStep", "StepUse", "choose", "microbatches", "rank_steps", "rows_by"]


@dataclass(frozen=True, eq=False)
class RankStep:
    """What one rank did in one step.

    `rows` are rows of the rank's `Actions`; `useful` is the union of their work and of the
    stage's own collectives; `start` and `end` are those of the step on this rank.
    """

    rank: int
    step: int
    start: int
    end: int
    rows: Ints
    actions: Actions
    compute: Spans
    in_stage: Spans
    parts: tuple[Ints, Times, Times]  # (row of `actions`, start, end): useful time by action

    @property
    def useful(self) -> Spans:
        """Compute and the stage's own collectives, each instant once."""
        return Spans.join((self.compute, self.in_stage))

    @cached_property
    def order(self) -> Order:
        """The actions in the order of their start."""
        a = self.actions
        columns = zip(*(ids.tolist() for ids in (a.stage, a.kind, a.microbatch, a.slice)), strict=True)
        return tuple(Action(stage, Kind(kind), i, part) for stage, kind, i, part in columns)

    @property
    def together(self) -> frozenset[Action]:
        """The actions that ran as one block with the one that follows them."""
        block = self.actions.block
        first = np.flatnonzero((block[:-1] >= 0) & (block[:-1] == block[1:]))
        order = self.order if len(first) else ()
        return frozenset(order[row] for row in first)

    @property
    def leaders(self) -> Ints:
        """For each action the first one of its block: all of a block start when the inputs of all are there."""
        block, row = self.actions.block, np.arange(len(self.rows))
        follows = np.concatenate((np.zeros(1, bool), (block[1:] >= 0) & (block[1:] == block[:-1])))[: len(row)]
        return np.maximum.accumulate(np.where(follows, 0, row))

    @cached_property
    def durations(self) -> Times:
        """Nanoseconds of each action; an instant that several share is divided equally among them."""
        row, start, end = self.parts
        edges = np.unique(np.concatenate((start, end)))
        if len(edges) < 2:
            return np.zeros(len(self.rows), np.int64)
        begun, ended = (np.searchsorted(np.sort(x), edges[:-1], "right") for x in (start, end))
        depth = begun - ended
        share = np.where(depth > 0, np.diff(edges) / np.maximum(depth, 1), 0.0)
        elapsed = np.concatenate(([0.0], np.cumsum(share)))
        at = np.searchsorted(edges, start), np.searchsorted(edges, end)
        total = np.bincount(row, weights=elapsed[at[1]] - elapsed[at[0]], minlength=len(self.rows))
        return np.rint(total).astype(np.int64)


def rank_steps(timeline: RankTimeline) -> dict[int, RankStep]:
    """The steps of a rank by number."""
    result = {}
    by_step = rows_by(timeline.actions.step, len(timeline.steps))
    owned = timeline.work.take(timeline.work.action >= 0)
    shared = timeline.own_collectives()
    work_by_step = rows_by(timeline.actions.step[owned.action], len(timeline.steps))
    shared_by_step = rows_by(timeline.actions.step[shared.action], len(timeline.steps))
    for k, number in enumerate(timeline.steps.number.tolist()):
        rows, work, comm = by_step[k], owned.take(work_by_step[k]), shared.take(shared_by_step[k])
        place = np.searchsorted(rows, np.concatenate((work.action, comm.action)))
        start, end = np.concatenate((work.start, comm.start)), np.concatenate((work.end, comm.end))
        result[number] = RankStep(
            rank=timeline.rank,
            step=number,
            start=int(timeline.steps.start[k]),
            end=int(timeline.steps.end[k]),
            rows=rows,
            actions=timeline.actions.take(rows),
            compute=Spans.of(work.start, work.end),
            in_stage=Spans.of(comm.start, comm.end),
            parts=union_by_owner(place, start, end),
        )
    return result


def rows_by(key: Ints, count: int) -> list[Ints]:
    """Rows of each key 0..count-1, in their order."""
    order = np.argsort(key, kind="stable")
    edges = np.searchsorted(key[order], np.arange(count + 1))
    return [order[edges[k] : edges[k + 1]] for k in range(count)]


def microbatches(steps: Iterable[RankStep], *, named: bool) -> int | None:
    """Micro-batches a step: how many forwards take most often; a tie takes the larger.

    However many stages a rank has, and however many slices a micro-batch: numbers count, not actions.
    Where labels name the micro-batches, those of all ranks of a step count together, so that what one
    rank lost another tells; where they were counted, each rank counts by itself.
    """
    numbers: dict[tuple[int, int], set[int]] = {}
    for step in steps:
        numbers.setdefault((step.step, 0 if named else step.rank), set()).update(_forwarded(step).tolist())
    counts = Counter(map(len, numbers.values()))
    del counts[0]
    return max(counts, key=lambda m: (counts[m], m), default=None)


def _forwarded(step: RankStep) -> Ints:
    """The micro-batches of a step's forwards."""
    return np.unique(step.actions.microbatch[step.actions.kind == Kind.F])


@dataclass(frozen=True, slots=True)
class StepUse:
    """A step of the job, whether every rank has all of its actions, and whether means take it.

    `left_out` is why they do not: it is incomplete, the user chose others, or it is the first. `lacking` are the ranks
    that do not have all of it.
    """

    number: int
    complete: bool
    used: bool
    left_out: Literal["incomplete", "first", "not-asked"] | None = None
    lacking: tuple[int, ...] = ()


def choose(steps: Mapping[int, Mapping[int, RankStep]], wanted: StepRange, m: int | None) -> list[StepUse]:
    """Judge every step by its counts of actions; without micro-batches (m None) by being there on all ranks.

    Means take the complete steps; the first is left out where at least two others remain, unless
    the user chose the steps. Raises UsageError where the user chose none that is there.
    """
    trained = any(_has_backwards(step) for mine in steps.values() for step in mine.values())
    usual = {rank: None if m is None else _usual_count(mine.values(), m, trained) for rank, mine in steps.items()}
    numbers = sorted({number for mine in steps.values() for number in mine})
    if numbers and not any(n in wanted for n in numbers):
        raise UsageError(f"--steps selects none of the steps in the traces, which are {numbers[0]} to {numbers[-1]}")
    lacking = {
        n: tuple(r for r, mine in steps.items() if n not in mine or usual[r] not in {None, len(mine[n].rows)})
        for n in numbers
    }
    asked = [n for n in numbers if not lacking[n] and n in wanted]
    taken = set(asked)
    used = taken - {asked[0]} if wanted == StepRange() and len(asked) > 2 else taken
    return [StepUse(n, not lacking[n], n in used, _why(n, lacking[n], taken, used), lacking[n]) for n in numbers]


def _why(
    number: int, lacking: Sequence[int], asked: Collection[int], used: Collection[int]
) -> Literal["incomplete", "first", "not-asked"] | None:
    """Why means do not take a step, None where they do."""
    if lacking:
        return "incomplete"
    if number not in asked:
        return "not-asked"
    return None if number in used else "first"


def _usual_count(steps: Iterable[RankStep], m: int, trained: bool) -> int:
    """How many actions a whole step of a rank has: the most common count among steps with all forwards.

    What comes once only may be cut off: then a backward of each forward must be there, in a job that has backwards.
    """
    able = [step for step in steps if len(_forwarded(step)) == m]
    counts = Counter(len(step.rows) for step in able)
    usual = max(counts, key=lambda n: (counts[n], n), default=-1)
    if trained and counts[usual] == 1:
        return max((len(step.rows) for step in able if _is_backed(step)), default=-1)
    return usual


def _has_backwards(step: RankStep) -> bool:
    return bool(np.any(step.actions.kind != Kind.F))


def _is_backed(step: RankStep) -> bool:
    """Whether there is a backward for each forward; of a split one, as far as the stage has its halves at all."""
    found: dict[int, dict[int, set[tuple[int, int]]]] = {}
    a = step.actions
    columns = zip(*(ids.tolist() for ids in (a.stage, a.kind, a.microbatch, a.slice)), strict=True)
    for stage, kind, i, part in columns:
        found.setdefault(stage, {}).setdefault(kind, set()).add((i, part))
    return all(_backs(of_kind) for of_kind in found.values())


def _backs(of_kind: Mapping[int, set[tuple[int, int]]]) -> bool:
    forwards, whole = of_kind.get(Kind.F, set()), of_kind.get(Kind.B, set())
    halves = [of_kind[kind] for kind in (Kind.I, Kind.W) if kind in of_kind]
    return all(forwards <= whole | half for half in halves or [set()])
