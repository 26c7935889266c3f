"""From a study to its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev

from bubblescope._version import __version__
from bubblescope.align.layout import ASSUMED
from bubblescope.analysis import communication, missing, quality, stages
from bubblescope.analysis.absence import signs
from bubblescope.analysis.apart import sound, whole
from bubblescope.analysis.balance import imbalance
from bubblescope.analysis.causes import LIMIT, Reasons, reasons
from bubblescope.analysis.doubts import doubts
from bubblescope.analysis.partition import Window
from bubblescope.analysis.pipeline import PipelineStep, pipeline_steps
from bubblescope.analysis.samples import samples
from bubblescope.analysis.slow_links import slow_links
from bubblescope.analysis.spent import rank_rows, worst_bubbles
from bubblescope.analysis.step_times import step_times, unlike
from bubblescope.analysis.steps import StepUse
from bubblescope.analysis.study import Size, Study
from bubblescope.analysis.throughput import conflicts, throughput
from bubblescope.analysis.trust import judged
from bubblescope.analysis.utilisation import utilisation
from bubblescope.model import report
from bubblescope.model.job import Job
from bubblescope.model.options import Options

__all__ = ["assemble"]


def assemble(found: Study, options: Options) -> report.Report:
    """The report of a job, without advice."""
    job = found.job
    origin = min((int(t.steps.start.min()) for t in job.timelines.values() if len(t.steps)), default=0)
    unseen = _unseen_stages(found)
    doubtful = (*doubts(found), *unlike(found))
    stage_rows = stages.stages(job, found.steps)
    per_step = _per_step(found.whole)
    measured = fmean(per_step) if per_step else None
    why = reasons(found, measured, found.variation, options.attribution)
    times = step_times(found)
    shares = utilisation(found, times)
    rates = throughput(found, options, times, shares)
    made = report.Report(
        tool=report.Tool(name="bubblescope", version=__version__),
        inputs=_inputs(job),
        quality=quality.judge(found, unseen, doubtful, conflicts(found, options, rates)),
        clock=report.Clock(
            method=job.clock.method,  # type: ignore[arg-type]
            offsets_ns={str(rank): offset for rank, offset in job.clock.offsets.items()},
            drift_ppm={str(rank): job.clock.drift_ppm.get(rank, 0.0) for rank in job.clock.offsets},
            error_ns=job.clock.error,
            violations=job.clock.violations,
        ),
        layout=_layout(found),
        schedule=_schedule(found),
        steps=_steps(found, origin, why),
        bubble=_bubble(found, per_step, why, options, trusted=not doubtful),
        throughput=rates,
        pipelines=_pipelines(found),
        stages=stage_rows,
        ranks=rank_rows(found, shares),
        communication=communication.communication(found.views, found.used, job.parties),
        links=slow_links(found),
        imbalance=imbalance(found, stage_rows, found.variation),
        worst_bubbles=worst_bubbles(found, origin),
        findings=(),
    )
    return replace(made, quality=judged(made), metrics=samples(found, made, times))


def _inputs(job: Job) -> tuple[report.Input, ...]:
    return tuple(
        report.Input(
            path=source.path,
            format=source.format,
            bytes=source.bytes,
            events=source.events,
            rank=rank,
            rank_source=t.identity.rank_source or "order",
            device=t.identity.devices[0].name if t.identity.devices and t.on_gpu else None,
        )
        for rank, t in job.timelines.items()
        for source in (t.source, *t.later)
    )


def _layout(found: Study) -> report.Layout:
    job = found.job
    plan = job.plan
    held = sorted(stages.holders(job).items())
    told = plan.sized and _shown(found)
    return report.Layout(
        world_size=plan.world_size if plan.sized else None,
        pp=plan.pp if told and not signs(job) else None,
        tp=plan.tp if told else None,
        dp=plan.dp if told else None,
        cp=plan.cp,
        ep=plan.ep,
        virtual=job.virtual if plan.pipelines else 1,
        source=plan.source,
        missing_ranks=quality.missing_ranks(job),
        stages=tuple(report.StageRanks(stage=stage, chunk=chunk, ranks=ranks) for stage, (chunk, ranks) in held)
        if plan.pipelines
        else (),
    )


def _shown(found: Study) -> bool:
    """Whether the degrees are more than an assumption: a schedule fits, or the ranks cannot be several pipelines."""
    size = found.job.plan.world_size
    fits = found.schedule is not None and found.schedule.verdict.best is not None
    return found.job.plan.source != ASSUMED or fits or all(size % depth for depth in range(2, size))


def _unseen_stages(found: Study) -> tuple[int, ...]:
    """Stages that a partly recorded pipeline lacks, where none was seen whole."""
    if any(step.seen for step in found.steps) or not found.piped:
        return ()
    recorded = {(view.pipeline, view.position) for view in found.views.values() if view.pipeline is not None}
    lacking = [
        held
        for pipeline in {number for number, _ in recorded}
        for at, held in found.job.placement.items()
        if (pipeline, at) not in recorded
    ]
    return tuple(sorted({stage for held in lacking for stage in held}))


def _schedule(found: Study) -> report.Schedule:
    how = next((v.timeline.reconstruction for v in found.views.values() if v.timeline.reconstruction), None)
    schedule = found.schedule
    if schedule is None:
        return report.Schedule(
            name="unknown" if found.piped else "none",
            also=(),
            microbatches=found.microbatches,
            confidence=0.0 if found.piped or signs(found.job) else 1.0,
            runner_up=None,
            reconstruction=how if found.piped else None,
            evidence=_evidence(found),
            departures=(),
        )
    verdict = schedule.verdict
    runner_up = verdict.runner_up
    recorded = {view.position: rank for rank, view in sorted(found.views.items(), reverse=True)}
    return report.Schedule(
        name=verdict.best.family.name if verdict.best else "unknown",
        also=verdict.also,
        microbatches=found.microbatches,
        confidence=verdict.best.confidence if verdict.best else 0.0,
        runner_up=report.Guess(name=runner_up.family.name, confidence=runner_up.confidence) if runner_up else None,
        reconstruction=how,
        evidence=_evidence(found),
        departures=tuple(
            report.Departure(rank=recorded[at], position=d.position, expected=d.expected, found=d.found)
            for at, d in schedule.departures
        ),
    )


def _evidence(found: Study) -> tuple[str, ...]:
    schedule = found.schedule
    if not found.piped:
        return signs(found.job) or (
            "nothing tells of more than one stage: no label, no pipeline group, no message between stages",
        )
    if found.job.untold_chunks is not None:
        return (f"{found.job.untold_chunks} chunks a rank, which nothing tells apart",)
    if not found.job.plan.sized:
        return ("nothing tells how many ranks the pipeline has, on which its schedule depends",)
    if schedule is None:
        told = any(len(view.timeline.actions) for view in found.views.values())
        whose = "of some ranks " if told else ""
        return (f"messages between stages, but no forward or backward {whose}could be told",)
    shape = schedule.shape
    facts = [
        f"{schedule.verdict.reason}, compared for p={shape.p} m={shape.m} v={shape.v}",
        f"{schedule.agreeing} of {schedule.seen} recorded orders (a rank and step each) are alike",
        f"layout from {found.job.plan.source}",
    ]
    if not found.steps:
        facts.append("no step is complete: the name is that of what is there")
    if found.theory.problem is not None:
        facts.append(found.theory.problem)
    return tuple(facts)


def _steps(found: Study, origin: int, why: Reasons) -> tuple[report.Step, ...]:
    rows = []
    for use in found.uses:
        here = [view.steps[use.number] for view in found.views.values() if use.number in view.steps]
        pipelines = _lines(found, use)
        rows.append(
            report.Step(
                step=use.number,
                complete=use.complete,
                used=use.used,
                start_ns=min(step.start for step in here) - origin,
                end_ns=max(step.end for step in here) - origin,
                window_ns=round(fmean(p.window.length for p in pipelines)) if pipelines else None,
                bubble=fmean(p.bubble for p in pipelines) if pipelines else None,
                points=why.steps.get(use.number),
                left_out=use.left_out,
                missing_ranks=use.lacking,
                kind=use.content.kind if use.content else None,
                microbatches=(use.content.microbatches or None) if use.content else None,
                extra_forwards=use.content.extra if use.content else 0,
            )
        )
    return tuple(rows)


def _lines(found: Study, use: StepUse) -> list[PipelineStep]:
    """The pipelines of a step that were seen whole and have a time of their own."""
    if use.used:
        return [step for step in found.whole if step.step == use.number]
    return whole(pipeline_steps(found.job, found.views, use.number)) if use.complete else []


def _per_step(steps: Sequence[PipelineStep]) -> list[float]:
    """The bubble of every step, the mean over its pipelines, which were seen whole."""
    return [fmean(p.bubble for p in steps if p.step == n) for n in dict.fromkeys(p.step for p in steps)]


def _bubble(found: Study, per_step: Sequence[float], why: Reasons, options: Options, *, trusted: bool) -> report.Bubble:
    seen, owed = found.whole, found.theory
    measured = fmean(per_step) if per_step else None
    left = abs(why.causes[-1].share) if why.causes else 0.0
    lower, upper = None, None
    if measured is not None:
        lower, upper = _bounds(found)
    elif _shown(found):
        lower, upper = missing.interval(found.job, sound(found.steps))
    return report.Bubble(
        measured=measured,
        lower=lower,
        upper=upper,
        spread=stdev(per_step) if len(per_step) > 1 else None,
        formula=owed.formula,
        formula_source=owed.source,  # type: ignore[arg-type]
        replay=owed.replay if measured is not None else None,
        gap=measured - owed.formula if measured is not None and owed.formula is not None else None,
        ratio_to_ideal=measured / (1 - measured) if measured is not None and measured < 1 else None,
        span=fmean(p.span_bubble for p in seen) if seen else None,
        window_ns=round(fmean(p.window.length for p in seen)) if seen else None,
        trusted=trusted and measured is not None and left <= LIMIT,
        attribution=options.attribution,
        causes=why.causes,
        by_position=why.positions,
        by_phase=why.phases,
        by_microbatches=tuple(size for size in map(_of_size, found.sizes) if _known(size)),
    )


def _known(size: report.SizeBubble) -> bool:
    """Whether a size has any number: without a whole step or a schedule it has none, as little as the rest has."""
    return any(number is not None for number in (size.measured, size.formula, size.replay))


def _of_size(size: Size) -> report.SizeBubble:
    per_step = _per_step(whole(size.steps))
    return report.SizeBubble(
        microbatches=size.microbatches,
        steps=tuple(size.numbers),
        measured=fmean(per_step) if per_step else None,
        formula=size.theory.formula,
        formula_source=size.theory.source,  # type: ignore[arg-type]
        replay=size.theory.replay if per_step else None,
    )


def _bounds(found: Study) -> tuple[float, float]:
    """What the clocks leave open of the measured bubble: means over the steps, as the bubble itself is."""
    of_step: dict[int, list[tuple[float, float]]] = {number: [] for number in found.used}
    for step in found.whole:
        of_step[step.step].append(step.bounds)
    means = [tuple(fmean(side) for side in zip(*bounds, strict=True)) for bounds in of_step.values() if bounds]
    lower, upper = (fmean(side) for side in zip(*means, strict=True))
    return lower, upper


def _pipelines(found: Study) -> tuple[report.Pipeline, ...]:
    rows = []
    for number, pipeline in enumerate(found.job.plan.pipelines):
        mine: Sequence[PipelineStep] = [step for step in found.whole if step.pipeline == number]
        windows: list[Window] = [step.window for step in mine]
        rows.append(
            report.Pipeline(
                pipeline=number,
                ranks=tuple(sorted(rank for ranks in pipeline for rank in ranks)),
                bubble=fmean(step.bubble for step in mine) if mine else None,
                window_ns=round(fmean(window.length for window in windows)) if windows else None,
            )
        )
    return tuple(rows)
