"""The job: timelines on one clock, every action with its stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from bubblescope.align import clocks, layout
from bubblescope.align.unnamed import chunks
from bubblescope.model.job import ClockFit, Job, Plan
from bubblescope.model.options import Options
from bubblescope.model.placement import PLACEMENTS
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import RankTimeline, Timed
from bubblescope.model.trace import Finding

__all__ = ["resolve"]

T = TypeVar("T", bound=Timed)


def resolve(timelines: Mapping[int, RankTimeline], options: Options) -> Job:
    """Join the ranks of a job."""
    timelines = dict(sorted(timelines.items()))
    plan = layout.plan(timelines, options)
    fit = clocks.fit(timelines, clocks.Links.empty())
    place = plan.place_of()
    staged = {r: _staged(_shifted(t, fit), place.get(r)) for r, t in timelines.items()}
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
    labelled = any(np.any(t.actions.stage >= 0) for t in timelines.values())
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


def _shifted(timeline: RankTimeline, clock: ClockFit) -> RankTimeline:
    """The same timeline on the clock of the job."""
    rank, spans = timeline.rank, timeline.optimizer
    if not clock.offsets[rank] and not clock.drift_ppm.get(rank):
        return timeline

    def moved(block: T) -> T:
        return block.replace(start=clock.corrected(rank, block.start), end=clock.corrected(rank, block.end))

    return dataclasses.replace(
        timeline,
        steps=moved(timeline.steps),
        actions=moved(timeline.actions),
        work=moved(timeline.work),
        messages=moved(timeline.messages),
        collectives=moved(timeline.collectives),
        optimizer=Spans.of(clock.corrected(rank, spans.start), clock.corrected(rank, spans.end)),
    )


def _staged(timeline: RankTimeline, place: tuple[int, int] | None) -> RankTimeline:
    """Give every action its stage and let it last until its own collectives end."""
    actions = timeline.actions
    position = place[1] if place is not None else 0
    stage = np.where(actions.stage < 0, position, actions.stage)
    start, end = actions.start.copy(), actions.end.copy()
    shared = timeline.own_collectives()
    np.minimum.at(start, shared.action, shared.start)
    np.maximum.at(end, shared.action, shared.end)
    return _in_order(dataclasses.replace(timeline, actions=actions.replace(stage=stage, start=start, end=end)))


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
