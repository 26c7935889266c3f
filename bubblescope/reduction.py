"""The reduce step: the timelines of the ranks to a job, and the job to its analysis or to forecasts.

It knows all ranks and needs no file. To import it takes as long as to read 50 MB, so `engine` does that while other
processes read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bubblescope.advice.advise import advise
from bubblescope.align.communicators import ranked
from bubblescope.align.cycles import recorded_again
from bubblescope.align.once import counted_once
from bubblescope.align.places import placed
from bubblescope.align.resolve import resolve
from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import Study, study
from bubblescope.errors import InputError, UndecidedError, UsageError
from bubblescope.forecast.forecaster import LIMIT, Forecaster
from bubblescope.forecast.standard import standard
from bubblescope.model.analysis import Analysis
from bubblescope.model.changes import Changes
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.whatif import WhatIf

__all__ = ["analyze", "forecast", "join"]

MOST_REPLAYED = 10_000
"""Actions of the steps that are replayed for advice: more steps make no gain surer than it needs to be."""


def join(read: Sequence[RankTimeline], options: Options = Options()) -> Job:  # noqa: B008 - frozen
    """The job of timelines, which come in the order of their files; raises as `engine.analyze` does."""
    timelines = _by_rank(placed(ranked(recorded_again(counted_once(read)))))
    if options.ranks is not None:
        timelines = {rank: t for rank, t in timelines.items() if rank in options.ranks}
        if not timelines:
            raise UsageError("none of the ranks of --ranks is in the traces")
    return resolve(timelines, options)


def analyze(job: Job, options: Options) -> Analysis:
    """The bubble of a job, and what would help."""
    found = study(job, options)
    return Analysis(job, _advised(found, assemble(found, options), options))


def _advised(found: Study, report: Report, options: Options) -> Report:
    """The report with what would help."""
    try:
        forecaster = Forecaster.of(found, options, most_actions=MOST_REPLAYED)
    except UndecidedError:
        forecaster = None
    return dataclasses.replace(report, findings=advise(found, report, forecaster))


def forecast(job: Job, changes: Sequence[Changes], options: Options, *, anyway: bool) -> WhatIf:
    """The job replayed with each of the changes, or the usual ones; raises as `engine.whatif` does."""
    found = study(job, options)
    forecaster = Forecaster.of(found, options)
    if forecaster.error > LIMIT and not anyway:
        raise UndecidedError(
            f"the replay of the unmodified run misses it by {100 * forecaster.error:.1f}% of a step, "
            f"more than {100 * LIMIT:.0f}%: a forecast from it would be a guess",
            hint="--anyway makes it all the same; bubblescope analyze tells what the causes leave over",
        )
    report = assemble(found, options)
    return WhatIf(
        tool=report.tool,
        quality=report.quality,
        trusted=report.bubble.trusted,
        measured=forecaster.measured,
        replayed=forecaster.replayed,
        error=forecaster.error,
        steps=forecaster.steps,
        forecasts=tuple(map(forecaster.forecast, changes or standard(forecaster.now))),
    )


def _by_rank(timelines: Sequence[RankTimeline]) -> dict[int, RankTimeline]:
    """Timelines by rank; those that do not know theirs take the free numbers, in the order of the files."""
    known: dict[int, RankTimeline] = {}
    for timeline in timelines:
        if timeline.rank >= 0:
            other = known.setdefault(timeline.rank, timeline)
            if other is not timeline:
                raise _claimed_twice(other, timeline)
    free = (rank for rank in range(len(timelines) + max(known, default=0) + 1) if rank not in known)
    for timeline in timelines:
        if timeline.rank < 0:
            rank = next(free)
            identity = dataclasses.replace(timeline.identity, rank=rank, rank_source="order")
            known[rank] = dataclasses.replace(timeline, rank=rank, identity=identity)
    return known


def _claimed_twice(one: RankTimeline, other: RankTimeline) -> InputError:
    if one.source.path == other.source.path:
        return InputError(f"{one.source.path}: two processes claim rank {one.rank}", hint="record them again")
    return InputError(
        f"rank {one.rank} is claimed by two files: {one.source.path} and {other.source.path}",
        hint="leave one of them out: one run writes one trace a rank",
    )
