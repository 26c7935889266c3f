"""From files to an analysis: the map step over files, then the reduce step.

To import this module imports nothing of the reduce step, which is imported while the files are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bubblescope.ingest import sources
from bubblescope.mapping import Progress, each_file, read_ranks
from bubblescope.model.options import Options

if TYPE_CHECKING:
    from types import ModuleType

    from bubblescope.model.analysis import Analysis
    from bubblescope.model.changes import Changes
    from bubblescope.model.job import Job
    from bubblescope.model.whatif import WhatIf

__all__ = ["Progress", "Traces", "analyze", "load", "read_ranks", "whatif"]

Traces = str | Path | Sequence[str | Path]
"""Files, directories or globs, one or several: those of all ranks of one job."""


def analyze(traces: Traces, options: Options = Options(), progress: Progress | None = None) -> Analysis:  # noqa: B008 - frozen
    """Measure the bubble of a job.

    Args:
        traces: files, directories or globs; those of all ranks of one job.
        options: what the user states or asks.
        progress: told how many bytes are read.

    Raises:
        InputError: a trace is missing, unreadable or unusable, or two files claim one rank.
        UsageError: an option asks for something that cannot be.
    """
    _known(options.schedule)
    job = load(traces, options, progress)
    analysis: Analysis = _reduction().analyze(job, options)
    return analysis


def _known(*schedules: str | None) -> None:
    """Raise UsageError if one is unknown: a misspelt name should not cost a long read first."""
    stated = [name for name in schedules if name is not None]
    if stated:
        from bubblescope.schedules.registry import find  # noqa: PLC0415  all schedules, for one name

        for name in stated:
            find(name)


def whatif(
    traces: Traces,
    changes: Sequence[Changes] = (),
    options: Options = Options(),  # noqa: B008 - frozen
    progress: Progress | None = None,
    *,
    anyway: bool = False,
) -> WhatIf:
    """Replay a job with something changed.

    Args:
        traces: as for `analyze`.
        changes: each is forecast by itself; without any the usual ones are.
        options: what the user states or asks.
        progress: told how many bytes are read.
        anyway: forecast also where the replay of the unmodified run misses it by more than 5 %.

    Raises:
        UndecidedError: the run cannot be replayed, or its replay misses it by more than 5 %.
        InputError, UsageError: as `analyze` does.
    """
    _known(options.schedule, *(each.schedule for each in changes))
    job = load(traces, options, progress)
    forecast: WhatIf = _reduction().forecast(job, changes, options, anyway=anyway)
    return forecast


def load(traces: Traces, options: Options = Options(), progress: Progress | None = None) -> Job:  # noqa: B008 - frozen
    """Read traces and join them to a job; raises as `analyze` does."""
    named = [traces] if isinstance(traces, str | Path) else traces
    found = sources.expand([str(trace) for trace in named])
    each = each_file(read_ranks, found.paths, options, progress, meanwhile=_reduction)
    job: Job = _reduction().join([timeline for path in found.paths for timeline in each[path]], options)
    return dataclasses.replace(job, findings=(*found.findings, *job.findings))


def _reduction() -> ModuleType:
    from bubblescope import reduction  # noqa: PLC0415  as the first lines say

    return reduction
