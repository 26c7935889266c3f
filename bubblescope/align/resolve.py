"""The job: timelines on one clock, every action with its stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from bubblescope.align import clocks, layout
from bubblescope.align.chunks import chunked
from bubblescope.align.unnamed import chunks
from bubblescope.model.job import Job, Plan
from bubblescope.model.options import Options
from bubblescope.model.placement import PLACEMENTS
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["resolve"]


def resolve(timelines: Mapping[int, RankTimeline], options: Options) -> Job:
    """Join the ranks of a job."""
    timelines = dict(sorted(timelines.items()))
    plan = layout.plan(timelines, options)
    fit = clocks.fit(timelines)
    place = plan.place_of()
    shifted = {r: _shifted(t, fit.offsets[r]) for r, t in timelines.items()}
    held = chunked(shifted, plan, options)
    staged = {r: _staged(t, held[place[r][1]] if r in place else held[0]) for r, t in shifted.items()}
    untold = _untold_chunks(timelines, plan, options)
    return Job(
        timelines=staged,
        plan=plan,
        clock=fit,
        placement=_placement(staged, plan, options),
        untold_chunks=untold,
        findings=(*plan.findings, *_untold(untold), *_conflict(staged, plan, options)),
    )


def _conflict(timelines: Mapping[int, RankTimeline], plan: Plan, options: Options) -> tuple[Finding, ...]:
    held = max((len(set(t.actions.stage.tolist())) for t in timelines.values()), default=0)
    if options.virtual is None or held < 2 or held == options.virtual or not plan.pipelines:
        return ()
    message = f"--virtual {options.virtual} contradicts the labels, which say {held} chunks a rank"
    return (Finding("metadata-conflict", "warning", message),)


def _untold_chunks(timelines: Mapping[int, RankTimeline], plan: Plan, options: Options) -> int | None:
    """Chunks a rank, where no label tells stages and the user or the number of messages says that there are several."""
    labelled = any(np.any((t.actions.stage >= 0) | (t.actions.chunk >= 0)) for t in timelines.values())
    whole = all(rank in timelines for pipeline in plan.pipelines for ranks in pipeline for rank in ranks)
    if labelled or not whole or (plan.tp or 1) > 1:
        return None
    count = options.virtual or chunks(timelines)
    return count if count is not None and count > 1 else None


def _untold(count: int | None) -> tuple[Finding, ...]:
    if count is None:
        return ()
    message = (
        f"a rank holds {count} chunks, and nothing tells which forward belongs to which: "
        "schedule and micro-batches stay unknown; name the work with torch.profiler.record_function('PP:<stage>F<i>')"
    )
    return (Finding("untold-chunks", "warning", message),)


def _shifted(timeline: RankTimeline, offset: int) -> RankTimeline:
    """The same timeline on a clock that is `offset` ahead."""
    if not offset:
        return timeline
    return dataclasses.replace(
        timeline,
        steps=timeline.steps.shifted(offset),
        actions=timeline.actions.shifted(offset),
        work=timeline.work.shifted(offset),
        messages=timeline.messages.shifted(offset),
        collectives=timeline.collectives.shifted(offset),
        optimizer=timeline.optimizer.shifted(offset),
    )


def _staged(timeline: RankTimeline, held: tuple[int, ...]) -> RankTimeline:
    """Give every action its stage and let it last until its own collectives end.

    `held` are the stages of the rank by chunk; what names no chunk is of the first.
    """
    actions, messages = timeline.actions, timeline.messages
    stage, ends = (
        np.where(rows.stage < 0, np.array(held)[np.maximum(rows.chunk, 0)], rows.stage) for rows in (actions, messages)
    )
    ends = np.where(messages.microbatch >= 0, ends, messages.stage)
    start, end = actions.start.copy(), actions.end.copy()
    shared = timeline.own_collectives()
    np.minimum.at(start, shared.action, shared.start)
    np.maximum.at(end, shared.action, shared.end)
    return _in_order(
        dataclasses.replace(
            timeline,
            actions=actions.replace(stage=stage, start=start, end=end),
            messages=messages.replace(stage=ends),
        )
    )


def _in_order(timeline: RankTimeline) -> RankTimeline:
    """The same timeline with its actions in order of their start, and what points at them following."""
    order = np.argsort(timeline.actions.start, kind="stable")
    place = np.append(np.argsort(order), -1)  # one more row, so that -1 maps to -1
    return dataclasses.replace(
        timeline,
        actions=timeline.actions.take(order),
        work=timeline.work.replace(action=place[timeline.work.action]),
        collectives=timeline.collectives.replace(action=place[timeline.collectives.action]),
    )


def _placement(timelines: Mapping[int, RankTimeline], plan: Plan, options: Options) -> dict[int, tuple[int, ...]]:
    """Stages of each position, from what ran there; those of positions nobody recorded go on as the recorded do."""
    held: dict[int, tuple[int, ...]] = {}
    for rank, (_, position) in plan.place_of().items():
        if rank in timelines and len(timelines[rank].actions):
            held[position] = tuple(sorted(set(timelines[rank].actions.stage.tolist())))
    v = options.virtual or max((len(stages) for stages in held.values()), default=1)
    ways = [layout(plan.pp, v) for layout in PLACEMENTS]
    usual = next((w for w in ways if all(set(w[at]) == set(held[at]) for at in held if at < plan.pp)), ways[0])
    for position in range(plan.pp if plan.pipelines else 0):
        held.setdefault(position, tuple(sorted(usual[position])))
    return dict(sorted(held.items()))
