"""Evaluations inside training steps: forwards that no backward follows, set aside before anything else is read.

A step in which every rank runs as many forwards more than backwards, all before its training or all behind it, holds an
evaluation beside its training. What is left of such a step is the training alone: the evaluation's actions are none,
its work is work of no action, and its messages are of no step. How many forwards were set aside is kept with the step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints
from bubblescope.model.timeline import Actions, Messages, RankTimeline
from bubblescope.model.unbacked import apart, codes, unbacked

__all__ = ["set_aside"]

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
