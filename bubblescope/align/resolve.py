"""The job: timelines on one clock, every action with its stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial

import numpy as np

from bubblescope.align import layout
from bubblescope.align.agreed import agreed
from bubblescope.align.axis import laid_out
from bubblescope.align.chunks import chunked
from bubblescope.align.clocks import Links, fit
from bubblescope.align.communicators import resolved
from bubblescope.align.counted_on import counted_anew
from bubblescope.align.evaluations import set_aside, set_aside_untold
from bubblescope.align.exchanged import exchanged
from bubblescope.align.from_one import from_zero
from bubblescope.align.lines import lined
from bubblescope.align.links import links, tied
from bubblescope.align.pairs import makers, matches
from bubblescope.align.parties import parties
from bubblescope.align.replicas import replicated
from bubblescope.align.together import joined_collectives
from bubblescope.align.unlabelled import identified
from bubblescope.model.job import ClockFit, Job, Plan
from bubblescope.model.options import Options
from bubblescope.model.placement import PLACEMENTS
from bubblescope.model.recorders import recorder
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["resolve"]

Timelines = Mapping[int, RankTimeline]


def resolve(timelines: Timelines, options: Options) -> Job:
    """Join the ranks of a job."""
    timelines, moved = from_zero(agreed(lined(resolved(laid_out(dict(sorted(timelines.items())))))))
    timelines = set_aside(counted_anew(timelines))
    plan = layout.plan(timelines, options)
    timelines = replicated(timelines, plan)
    told, untold = identified(timelines, plan, options)
    if not plan.sized and not _named(timelines) and _named(told):  # what each rank does is that of so many ranks
        findings = tuple(f for f in plan.findings if f.code != "layout-assumed" or plan.source == layout.ASSUMED)
        plan = dataclasses.replace(plan, sized=True, findings=findings)
    place = plan.place_of()
    chunks = chunked(timelines, plan, options)
    staged = {
        rank: _staged(timeline, chunks.held[place[rank][1] if rank in place else 0]) for rank, timeline in told.items()
    }
    job = Job(
        timelines=staged,
        plan=plan,
        clock=ClockFit(method="none", offsets=dict.fromkeys(staged, 0)),
        placement=_placement(staged, plan, options),
        untold_chunks=untold if chunks.told else chunks.v,
        findings=(
            *moved,
            *plan.findings,
            *(_untold(untold, staged) if chunks.told else _unplaced(chunks.v, staged)),
            *_conflict(staged, plan, options, told=untold is None and chunks.told),
        ),
    )
    return _on_one_clock(set_aside_untold(job))


def _named(timelines: Timelines) -> bool:
    """Whether any action names its stage."""
    return any(np.any(t.actions.stage >= 0) for t in timelines.values())


def _on_one_clock(job: Job) -> Job:
    """The job with its messages paired, and by them and its collectives all times on the clock of its lowest rank.

    Where messages contradict that clock and others do not if sends and receives are exchanged that a rank only
    guessed, they are, as long as that leaves fewer contradictions.
    """
    found = _paired(job)
    while found.clock.violations and (others := exchanged(found)):
        timelines = {
            rank: dataclasses.replace(timeline, messages=timeline.messages.replace(direction=others[rank].direction))
            if rank in others
            else timeline
            for rank, timeline in job.timelines.items()
        }
        job = dataclasses.replace(job, timelines=timelines)
        better = _paired(job)
        if better.clock.violations >= found.clock.violations:
            break
        found = better
    return found


def _paired(job: Job) -> Job:
    """The job with its messages paired, and all times on the clock that these, its actions and its collectives tell.

    Whom collectives join that do not say so, clocks tell that are placed without them; then they place clocks, too.
    """
    found = matches(job)
    clocks = {timeline.identity.clock or rank for rank, timeline in job.timelines.items()}
    told = links(job.timelines, found, makers(job) if len(clocks) > 1 else {})  # one is right whatever actions say
    clock = fit(job.timelines, told)
    joined = parties(job.timelines, job.plan, clock)
    if joined:
        more = tied(job.timelines, joined_collectives(job.timelines, joined))
        clock = fit(job.timelines, Links.concat((told, more)))
    moved = {rank: _moved(timeline, clock) for rank, timeline in job.timelines.items()}
    return dataclasses.replace(job, timelines=moved, clock=clock, matches=found, parties=joined)


def _moved(timeline: RankTimeline, clock: ClockFit) -> RankTimeline:
    """The same timeline on the job's clock."""
    rank = timeline.rank
    if not (clock.offsets[rank] or clock.drift_ppm.get(rank)):
        return timeline
    return timeline.moved(partial(clock.corrected, rank))


def _conflict(timelines: Timelines, plan: Plan, options: Options, *, told: bool) -> tuple[Finding, ...]:
    held = max((len(set(t.actions.stage.tolist())) for t in timelines.values()), default=0)
    if options.virtual is None or not (told and held) or held == options.virtual or not plan.pipelines:
        return ()
    message = f"--virtual {options.virtual} contradicts the traces, which say {held} chunks a rank; it is not used"
    return (Finding("metadata-conflict", "warning", message),)


def _untold(count: int | None, timelines: Timelines) -> tuple[Finding, ...]:
    if count is None:
        return ()
    remedy = recorder(next(iter(timelines.values())).source).name_stages
    message = (
        f"a rank holds several chunks, it seems {count}, and nothing tells which forward belongs to which: "
        f"schedule and micro-batches stay unknown; {remedy}"
    )
    return (Finding("untold-chunks", "warning", message),)


def _unplaced(count: int, timelines: Timelines) -> tuple[Finding, ...]:
    remedy = recorder(next(iter(timelines.values())).source).name_stages
    message = (
        f"a rank holds {count} chunks, and nothing tells whether these go round the ranks or fold back: "
        f"schedule and micro-batches stay unknown; give the files of more ranks, or {remedy}"
    )
    return (Finding("untold-chunks", "warning", message),)


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
        layers=timeline.layers.replace(action=place[timeline.layers.action]),
        collectives=timeline.collectives.replace(action=place[timeline.collectives.action]),
        messages=timeline.messages.replace(after=place[timeline.messages.after]),
    )


def _placement(timelines: Timelines, plan: Plan, options: Options) -> dict[int, tuple[int, ...]]:
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
