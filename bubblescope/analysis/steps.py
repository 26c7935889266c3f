"""A rank in one step: its actions, their useful time; and which steps are complete and used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.columns import Ints, Times
from bubblescope.model.options import StepRange
from bubblescope.model.spans import Spans, union_by_owner
from bubblescope.model.timeline import Actions, RankTimeline

__all__ = ["Content", "LeftOut", "RankStep", "StepUse", "choose", "first", "microbatches", "rank_steps", "rows_by"]

LeftOut = Literal["not-asked", "incomplete", "evaluation", "other-size", "first"]
"""Why means do not take a step; of several reasons the first."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a step holds: a training of so many micro-batches, an evaluation, both (mixed), or an inference.

    Of a mixed step `microbatches` are those of the training, and `extra` are the forwards more than backwards.
    """

    kind: Literal["training", "mixed", "evaluation", "inference"]
    microbatches: int
    extra: int = 0


@dataclass(frozen=True, eq=False)
class RankStep:
    """What one rank did in one step.

    `rows` are rows of the rank's `Actions`; `useful` is the union of their work and of the
    stage's own collectives; `start` and `end` are those of the step on this rank. `extra` are forwards of an
    evaluation beside them.
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
    extra: int = 0

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
            extra=int(timeline.steps.extra[k]),
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

    `left_out` is why they do not; `lacking` are the ranks that do not have all of it. `content` is what it holds, None
    where ranks do not tell it alike.
    """

    number: int
    complete: bool
    used: bool
    left_out: LeftOut | None = None
    lacking: tuple[int, ...] = ()
    content: Content | None = None


def choose(
    steps: Mapping[int, Mapping[int, RankStep]],
    wanted: StepRange,
    m: int | None,
    held: Mapping[int, Content] = MappingProxyType({}),
) -> list[StepUse]:
    """Judge every step by its counts of actions; without micro-batches (m None) by being there on all ranks.

    Means take the complete steps of m micro-batches, those with an evaluation only where there are no others. The first
    of all is left out where at least two others of any size remain, unless the user chose the steps. Raises UsageError
    where the user chose none that is there.

    Args:
        steps: of each rank, by number.
        wanted: the steps that the user chose.
        m: micro-batches of the steps that means take.
        held: what steps hold, where it is known.
    """
    numbers = sorted({number for mine in steps.values() for number in mine})
    if numbers and not any(n in wanted for n in numbers):
        raise UsageError(f"--steps selects none of the steps in the traces, which are {numbers[0]} to {numbers[-1]}")
    lacking = _lacking(steps, numbers, m, held)
    asked = [n for n in numbers if not lacking[n] and n in wanted]
    trained = [n for n in asked if n not in held or held[n].kind != "evaluation"]
    sized = [n for n in trained if n not in held or m in {None, held[n].microbatches}]
    plain = [n for n in sized if n not in held or not held[n].extra] or sized
    warm = first(asked, wanted, held)
    used = [n for n in plain if n != warm] or plain
    passed: tuple[tuple[LeftOut, Collection[int]], ...] = (
        ("not-asked", [n for n in numbers if n in wanted]),
        ("incomplete", asked),
        ("evaluation", [n for n in trained if n in plain or n not in sized]),
        ("other-size", sized),
        ("first", used),
    )
    return [
        StepUse(
            number=n,
            complete=not lacking[n],
            used=n in used,
            left_out=next((why for why, left in passed if n not in left), None),
            lacking=lacking[n],
            content=held.get(n),
        )
        for n in numbers
    ]


def first(numbers: Iterable[int], wanted: StepRange, held: Mapping[int, Content]) -> int | None:
    """The step that is left out as it may hold warm-up: the first that trains, where two others remain beside it."""
    trained = [n for n in sorted(numbers) if n not in held or held[n].kind != "evaluation"]
    plain = [n for n in trained if n not in held or not held[n].extra] or trained
    return plain[0] if wanted == StepRange() and len(plain) > 2 and plain[0] == trained[0] else None


def _lacking(
    steps: Mapping[int, Mapping[int, RankStep]], numbers: Iterable[int], m: int | None, held: Mapping[int, Content]
) -> dict[int, tuple[int, ...]]:
    """The ranks that lack actions of each step, by the usual count of a rank's steps of that size."""
    trained = any(_has_backwards(step) for mine in steps.values() for step in mine.values())
    size = {n: held[n].microbatches if n in held and m is not None else m for n in numbers}
    alone = {n for n, content in held.items() if content.kind == "evaluation"}
    usual = {
        (rank, each): None
        if each is None
        else _usual_count((step for n, step in mine.items() if n not in alone), each, trained)
        for rank, mine in steps.items()
        for each in {*size.values()}
    }
    return {
        n: tuple(
            rank
            for rank, mine in steps.items()
            if n not in mine or (n not in alone and usual[rank, size[n]] not in {None, len(mine[n].rows)})
        )
        for n in numbers
    }


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
