"""Stages and micro-batches of actions that nobody labelled, where a rank may hold several chunks.

Following the messages tells them where each position of a pipeline was recorded; replicas and the
tensor-parallel ranks of a stage run the same program, so that one of them speaks for all. Else the
orders of the recorded positions are compared with those of the schedules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bubblescope.align.between import without_those_between
from bubblescope.align.ends import ahead
from bubblescope.align.follow import Told, follow
from bubblescope.align.guess import Guess, guess
from bubblescope.align.unnamed import chunks
from bubblescope.model.job import Pipeline, Plan
from bubblescope.model.options import Options
from bubblescope.model.timeline import RankTimeline

__all__ = ["identified"]

Timelines = Mapping[int, RankTimeline]


def identified(timelines: Timelines, plan: Plan, options: Options) -> tuple[Timelines, int | None]:
    """The timelines with the stages and micro-batches of their actions, where these could be told.

    Beside them the number of chunks a rank, where there are several and nothing tells them apart.
    """
    if any(map(_labelled, timelines.values())) or not plan.pipelines or _stated(timelines) == 1:
        return timelines, None
    trained = without_those_between(timelines, plan)
    told, count = _told(timelines, plan)
    if not told and trained is not timelines:
        told, count = _told(trained, plan)
    if told:
        place = plan.place_of()
        return {r: _named(t, told.get(place[r][1], ()) if r in place else ()) for r, t in timelines.items()}, None
    count = options.virtual or _stated(timelines) or count
    # Where nothing was told, either count of several is a doubt.
    count = count or max(_counted(each, plan) or 0 for each in (timelines, trained)) or None
    return timelines, count if count is not None and count > 1 else None


def _stated(timelines: Timelines) -> int | None:
    """Chunks a rank by what the files say."""
    return max((t.identity.virtual for t in timelines.values() if t.identity.virtual is not None), default=None)


def _labelled(timeline: RankTimeline) -> bool:
    """Whether a label tells stages, those of the pipeline or those of the rank."""
    return bool(np.any((timeline.actions.stage >= 0) | (timeline.actions.chunk >= 0)))


def _told(timelines: Timelines, plan: Plan) -> tuple[dict[int, Sequence[Told]], int | None]:
    """What each position does, from the pipeline that tells most; else how many chunks a rank may hold."""
    lines = [_line(pipeline, timelines) for pipeline in plan.pipelines]
    seen = {at: timeline for line in reversed(lines) for at, timeline in line.items()}
    if not plan.sized and not 1 < len(seen) == plan.pp:
        return {}, None  # nothing tells of how many ranks these are some
    for pipeline, line in zip(plan.pipelines, lines, strict=True):
        if len(line) == len(pipeline):
            place = {rank: at for at, ranks in enumerate(pipeline) for rank in ranks}
            found = follow([line[at] for at in range(len(pipeline))], place)
            if found is not None:
                return dict(enumerate(found)), None
    guessed = guess(seen, plan.pp, _stated(timelines))
    if guessed is None:
        return {}, None
    if not plan.sized and guessed.told and (_few(guessed, plan.pp) or _of_more(seen, plan.pp)):
        return {}, guessed.chunks
    return {at: [told] for at, told in guessed.told.items()}, guessed.chunks


def _few(guessed: Guess, p: int) -> bool:
    """Whether there are fewer micro-batches than positions: then most schedules are one."""
    return any(int(told.microbatch.max(initial=0)) + 1 < p for told in guessed.told.values())


def _of_more(seen: Timelines, p: int) -> bool:
    """Whether the positions of a whole pipeline may be the first of one with more, of fewer chunks each.

    In every schedule a rank that holds several chunks runs as many forwards ahead as there are ranks, or more.
    """
    most = min(ahead(timeline) for timeline in seen.values())
    return any((more := guess(seen, q)) is not None and more.told for q in range(p + 1, most + 1))


def _line(pipeline: Pipeline, timelines: Timelines) -> dict[int, RankTimeline]:
    """The first recorded rank of each position that has one."""
    recorded = [[timelines[rank] for rank in ranks if rank in timelines] for ranks in pipeline]
    return {at: mine[0] for at, mine in enumerate(recorded) if mine}


def _named(timeline: RankTimeline, told: Sequence[Told]) -> RankTimeline:
    """The same timeline with its actions named as in a step of the same kinds, cut short or not."""
    actions = timeline.actions
    stage, microbatch = actions.stage.copy(), actions.microbatch.copy()
    for k, number in enumerate(timeline.steps.number.tolist()):
        rows = np.flatnonzero(actions.step == k)
        source = next(_alike(actions.kind[rows], number, told), None)
        if source is not None:
            stage[rows], microbatch[rows] = source.stage[: len(rows)], source.microbatch[: len(rows)]
    return dataclasses.replace(timeline, actions=actions.replace(stage=stage, microbatch=microbatch))


def _alike(kind: np.ndarray, number: int, told: Sequence[Told]) -> Iterator[Told]:
    """What was told of steps that begin with these kinds of actions; that of the step itself first."""
    own = [step for step in told if step.number == number]
    others = [step for step in told if step.number != number]
    return (step for step in (*own, *others) if np.array_equal(step.kind[: len(kind)], kind))


def _counted(timelines: Timelines, plan: Plan) -> int | None:
    """Chunks a rank by how many messages the ends of the pipelines send and receive."""
    ends = {rank for pipeline in plan.pipelines for ranks in (pipeline[0], pipeline[-1]) for rank in ranks}
    return chunks({rank: timeline for rank, timeline in timelines.items() if rank in ends})
