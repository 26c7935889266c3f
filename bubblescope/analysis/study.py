"""What an analysis works out before any of it is put into words: views, used steps, schedule, theory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.apart import overtaken, whole
from bubblescope.analysis.contents import contents
from bubblescope.analysis.pipeline import PipelineStep, pipeline_steps
from bubblescope.analysis.ranks import RankView, views
from bubblescope.analysis.steps import Content, RankStep, StepUse, choose, first, microbatches
from bubblescope.analysis.theory import Schedule, Theory, find_schedule, theory
from bubblescope.analysis.variation import Variation, split
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Times
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["Size", "Study", "study"]


@dataclass(frozen=True, eq=False)
class Size:
    """Steps of one number of micro-batches: their numbers, their pipelines, and what their schedule owes."""

    microbatches: int
    numbers: Sequence[int]
    steps: Sequence[PipelineStep]
    theory: Theory


@dataclass(frozen=True, eq=False)
class Study:
    """A job, taken apart.

    `steps` are the pipelines of the used steps; `schedule` is None where there is no pipeline or
    no action; `microbatches` is m, None where nothing tells it. `sizes` are empty where all steps have as many.
    """

    job: Job
    views: Mapping[int, RankView]
    uses: Sequence[StepUse]
    steps: Sequence[PipelineStep]
    microbatches: int | None
    schedule: Schedule | None
    theory: Theory
    findings: tuple[Finding, ...]
    sizes: tuple[Size, ...] = ()

    @cached_property
    def used(self) -> list[int]:
        """Numbers of the used steps."""
        return [use.number for use in self.uses if use.used]

    @property
    def piped(self) -> bool:
        """Whether the job has a pipeline."""
        return bool(self.job.plan.pipelines)

    @cached_property
    def whole(self) -> list[PipelineStep]:
        """The pipelines of used steps of which every stage was recorded, and that have a time of their own."""
        return whole(self.steps)

    @cached_property
    def variation(self) -> Variation | None:
        """Profiles of the stages and what varies beside them; None where no step is whole or chunks are not told."""
        return split(self.whole) if self.whole and not self.job.untold_chunks else None


def study(job: Job, options: Options) -> Study:
    """Work out everything that the report rests on."""
    seen = views(job)
    members = {rank: view.steps for rank, view in seen.items()}
    piped = {rank: steps for rank, steps in members.items() if seen[rank].pipeline is not None}
    # A rank of which no action could be told is as good as not recorded: it must not make every step incomplete.
    told = {rank: steps for rank, steps in piped.items() if len(seen[rank].timeline.actions)}
    named = all(seen[rank].timeline.reconstruction == "labels" for rank in told)
    held = contents(told)
    counted = _usual_size(told, held, options, named=named, chunks=job.untold_chunks or 1)
    m = None if job.untold_chunks or not piped else counted or options.microbatches
    uses = choose(told or members, options.steps, counted, held)
    numbers = [use.number for use in uses if use.used]
    steps = [step for number in numbers for step in pipeline_steps(job, seen, number)]
    if steps and not options.microbatches and len(overtaken(steps)) == len(steps):
        m = None  # what is called a step is a part of one
    # A schedule shows in steps that lack an action too, where there are no others.
    ordered = steps or [step for use in uses for step in pipeline_steps(job, seen, use.number)]
    half = len(told) < len(piped) and any(seen[rank].timeline.reconstruction == "kernels" for rank in told)
    # Where kernels tell the actions of some ranks and not of others, those others may be what tells schedules apart.
    able = not half and job.plan.sized
    schedule = find_schedule(job, ordered, m, _transfer(seen), options.schedule) if ordered and m and able else None
    if (
        schedule is not None
        and schedule.family is None
        and any(_guessed_halves(view.timeline) for view in seen.values())
    ):
        m, steps = None, []  # nothing confirms a guess that no order fits: chunks that share kernels look like it, too
    owed = theory(job, steps, schedule) if schedule is not None else Theory(None, None, None)

    def sized(size: int) -> Size:
        """The steps of a size by themselves."""
        if size == m:
            return Size(size, numbers, steps, owed)
        mine = [use.number for use in choose(told, options.steps, size, held) if use.used]
        lines = [step for number in mine for step in pipeline_steps(job, seen, number)]
        its = find_schedule(job, lines, size, _transfer(seen), options.schedule) if lines and able else None
        return Size(size, mine, lines, Theory(None, None, None) if its is None else theory(job, lines, its))

    several = Counter(content.microbatches for content in held.values() if content.kind != "evaluation" and m)
    sizes = [sized(size) for size, count in sorted(several.items()) if count > 1] if len(several) > 1 else []
    known = tuple(size for size in sizes if size.numbers)  # of the steps that the user chose
    conflicts = (*_conflicts(options, held, counted, job.untold_chunks or 1), *_misfit(options, schedule))
    return Study(job, seen, uses, steps, m, schedule, owed, conflicts, known)


def _usual_size(
    told: Mapping[int, Mapping[int, RankStep]],
    held: Mapping[int, Content],
    options: Options,
    *,
    named: bool,
    chunks: int,
) -> int | None:
    """The micro-batches of most steps that may count; where steps differ, as many as the user says there are."""
    stated = (options.microbatches or 0) * chunks
    if any(content.microbatches == stated for content in held.values() if content.kind != "evaluation"):
        return stated
    evaluations = {number for number, content in held.items() if content.kind == "evaluation"}
    numbers = {number for steps in told.values() for number, step in steps.items() if len(step.rows)} - evaluations
    asked = {number for number in numbers if number in options.steps} or numbers
    asked -= {first(asked, options.steps, held)}
    return microbatches((step for mine in told.values() for n, step in mine.items() if n in asked), named=named)


def _guessed_halves(timeline: RankTimeline) -> bool:
    """Whether kernels alone tell which halves of backwards are for the weights."""
    return timeline.reconstruction == "kernels" and bool(np.any(timeline.actions.kind == Kind.W))


def _transfer(seen: Mapping[int, RankView]) -> float:
    """Nanoseconds that a message usually moves, once both sides are there; on CPU only what was waited for is known."""
    moved = [_moved(view) for view in seen.values() if view.timeline.on_gpu]
    together = np.concatenate(moved) if moved else np.empty(0)
    return float(np.median(together)) if len(together) else 0.0


def _moved(view: RankView) -> Times:
    messages, pairing = view.timeline.messages, view.pairing
    paired = (messages.direction == Messages.RECV) & (pairing.other != UNKNOWN)
    moved: Times = (messages.end - np.maximum(messages.start, pairing.other))[paired].clip(0)
    return moved


def _misfit(options: Options, schedule: Schedule | None) -> tuple[Finding, ...]:
    if options.schedule is None or schedule is None or schedule.family is not None:
        return ()
    message = f"--schedule {options.schedule} contradicts the traces: {schedule.verdict.reason}"
    return (Finding("metadata-conflict", "warning", message),)


def _conflicts(options: Options, held: Mapping[int, Content], counted: int | None, chunks: int) -> tuple[Finding, ...]:
    """A stated number of micro-batches that no step has; of chunks that nothing tells apart each holds as many."""
    stated = options.microbatches
    if stated is None or counted is None or stated * chunks == counted:
        return ()
    found = sorted({counted, *(content.microbatches for content in held.values() if content.kind != "evaluation")})
    sizes = " or ".join(map(str, found))
    if chunks == 1:
        has = f"whose steps have {sizes} micro-batch{'' if found == [1] else 'es'}; those of {counted} are measured"
    else:
        has = f"in whose steps a rank runs {sizes} forwards of {chunks} chunks; it is not used"
    return (Finding("metadata-conflict", "warning", f"--microbatches {stated} contradicts the traces, {has}"),)
