"""Messages that stand between the trainings of two steps: those of an evaluation whose actions nobody told.

Autograd numbers nothing without gradients. Whoever counts a step's messages, or follows them, to tell the chunks of its
training must leave those out that no action of the training made or awaits. Behind the last backward of a step a rank
has nothing left but that backward's gradient to send and the input of the next step's first forward to receive, and the
first rank of a pipeline not even these: there both are of the first stage, in each placement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.model.job import Plan
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["outside_steps", "without_those_between"]

NONE = -1

Timelines = Mapping[int, RankTimeline]


def without_those_between(timelines: Timelines, plan: Plan) -> Timelines:
    """The timelines whose steps hold no message that stands between their trainings; the same ones where none does.

    Sends tell, as receives may be posted ahead: where no rank has one too many, all is left alone.
    """
    at = {rank: position for rank, (_, position) in plan.place_of().items() if rank in timelines}
    extra = {rank: dict(_between(timelines[rank], min(position, 1))) for rank, position in at.items()}
    evaluated = {
        number
        for rank, gaps in extra.items()
        for number, rows in gaps.items()
        if np.any(timelines[rank].messages.direction[rows] == Messages.SEND)
    }
    if not evaluated:
        return timelines
    return {
        rank: outside_steps(timeline, [rows for number, rows in extra.get(rank, {}).items() if number in evaluated])
        for rank, timeline in timelines.items()
    }


def _between(timeline: RankTimeline, own: int) -> Iterator[tuple[int, Ints]]:
    """Rows of messages that are too many behind the last action of each step, by its number; NONE: before the first.

    `own` are the sends that are the last backward's, and the receives that are the next forward's.
    """
    actions, messages = timeline.actions, timeline.messages
    moving = np.flatnonzero((actions.kind != Kind.W) & (actions.step >= 0))
    steps, first = np.unique(actions.step[moving], return_index=True)
    begins = np.append(moving[first], len(actions))
    ends = np.append(NONE, moving[np.append(first[1:], len(moving)) - 1]) if len(steps) else begins[:0]
    for k, end in enumerate(ends.tolist()):
        if end >= 0 and actions.kind[end] == Kind.F:
            continue  # forwards alone, or a step that was cut short: any position may have an output to send
        rows = np.flatnonzero((messages.step >= 0) & (messages.after >= end) & (messages.after < begins[k]))
        sends = rows[messages.direction[rows] == Messages.SEND]
        receives = rows[messages.direction[rows] == Messages.RECV]
        sent, awaited = (own if k > 0 else 0), (own if k < len(steps) else 0)
        number = int(timeline.steps.number[steps[k - 1]]) if k > 0 else NONE
        yield number, np.concatenate((sends[sent:], receives[: max(0, len(receives) - awaited)]))


def outside_steps(timeline: RankTimeline, gone: Iterable[Ints | list[int]]) -> RankTimeline:
    """A timeline some of whose messages, by their rows, are of no step."""
    step = timeline.messages.step.copy()
    for rows in gone:
        step[rows] = NONE
    return dataclasses.replace(timeline, messages=timeline.messages.replace(step=step))
