"""A run as a gate or a comparison takes it, from whatever holds it: traces, a report, or a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bubblescope import engine
from bubblescope.errors import InputError, UsageError
from bubblescope.gate.condense import condense
from bubblescope.gate.files import read
from bubblescope.model.analysis import Analysis
from bubblescope.model.baseline import Baseline
from bubblescope.model.options import Options
from bubblescope.model.report import Report

__all__ = ["Run", "Source", "check_use", "taken"]

Source = str | Path | Sequence[str | Path] | Report | Analysis | Baseline
"""Traces, a report or a baseline, as files or as values."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run, the numbers of its single ranks and pipelines included where they are known.

    `names` are the inputs as they were named, `holders` the ranks of each stage, as far as known, and `read` whether
    the numbers were read as they are, so that no option says anything about them.
    """

    numbers: Baseline
    names: tuple[str, ...] = ()
    holders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    read: bool = True


def taken(source: Source, options: Options = Options(), progress: engine.Progress | None = None) -> Run:  # noqa: B008 - frozen
    """The run in traces, in a report or in a baseline.

    Raises:
        InputError: it is missing, unreadable or unusable.
        UsageError: a report or a baseline among others, for each is a whole run.
    """
    if isinstance(source, Analysis):
        return _of_report(source.report)
    if isinstance(source, Report):
        return _of_report(source)
    if isinstance(source, Baseline):
        return Run(source)
    names = tuple(map(str, [source] if isinstance(source, str | Path) else source))
    known = [(name, found) for name in names if (found := read(name)) is not None]
    if known and len(names) > 1:
        raise UsageError(f"{known[0][0]} is a whole run by itself", hint="give it alone, or traces")
    if known:
        found = known[0][1]
        return _of_report(found, names) if isinstance(found, Report) else Run(found, names)
    return replace(_of_report(engine.analyze(names, options, progress).report, names), read=False)


def check_use(options: Options, *runs: Run) -> None:
    """Raise UsageError where options are stated that say nothing about any of these runs."""
    stated = options.words()
    if stated and all(run.read for run in runs):
        what = runs[0].names[0] if runs[0].names else "the run"
        raise UsageError(f"{what} is taken as it is: {' '.join(stated)} says nothing about it")


def _of_report(report: Report, names: tuple[str, ...] = ()) -> Run:
    if report.quality.verdict == "unusable":
        raise InputError(
            "the traces are unusable: none of the numbers can be told",
            hint="bubblescope info says what the files hold, and what to add to the recording",
        )
    holders = {str(each.stage): each.ranks for each in report.layout.stages}
    return Run(condense(report, whole=True), names, holders)
