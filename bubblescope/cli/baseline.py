"""`bubblescope baseline`: a run in a few kB, to be committed and compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bubblescope.cli import console, pages
from bubblescope.cli.console import Progress
from bubblescope.cli.options import (
    GroupedCommand,
    GroupedOption,
    job_options,
    output_options,
    target_options,
    trace_arguments,
)
from bubblescope.cli.output import Output, write_file
from bubblescope.cli.subcommands import Subcommands
from bubblescope.errors import InputError, UndecidedError
from bubblescope.model.options import Options

if TYPE_CHECKING:
    from bubblescope.model.baseline import Baseline

__all__ = ["command"]


@click.group("baseline", cls=Subcommands)
def command() -> None:
    """Save a run's numbers as a baseline, show one, or tell two apart.

    \b
    Examples:
      bubblescope baseline save traces/ -o bubble.json
      bubblescope baseline show bubble.json
      bubblescope baseline diff old.json bubble.json
    """  # noqa: D301  \b is click's mark for lines that must stay as they are


@command.command("save", cls=GroupedCommand)
@trace_arguments
@click.option("--reason", metavar="TEXT", cls=GroupedOption, heading="Output", help="Why these values are fine.")
@job_options
@target_options
def save(*, traces: tuple[str, ...], reason: str | None, options: Options, output: Output, progress: bool) -> None:
    """Write a run's numbers, and how much its steps differ, to be committed.

    A TRACE is a file, a directory, a glob, or - for stdin; give those of all ranks, or a report of
    analyze --json. The file holds no path and no time of day, and one line a number.

    \b
    Examples:
      bubblescope baseline save traces/ -o bubble.json
      bubblescope baseline save traces/ -o bubble.json -f --reason "longer sequences"
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.gate.evaluate import baseline  # noqa: PLC0415  numpy and pandas are not for --help
    from bubblescope.report import baselines  # noqa: PLC0415  nor is orjson

    with Progress(wanted=progress) as tell:
        found = replace(baseline(traces, options=options, progress=tell), reason=reason)
    _check(found)
    data = baselines.render(found)
    if output.target is None:
        console.result(data)
        return
    output.check()
    write_file(output.target, data)
    if not output.quiet:
        console.note(f"Wrote {output.target}")


def _check(found: Baseline) -> None:
    """Refuse a baseline that no later run could be compared with; say what is doubtful about another one."""
    if found.fingerprint.schedule != "none" and found.metric("bubble") is None:
        reasons = ", ".join(found.doubts.get("bubble", ())) or "no step is whole"
        raise UndecidedError(
            f"the bubble of this run is unknown ({reasons}): it cannot be a baseline",
            hint="bubblescope analyze says what is missing",
        )
    from bubblescope.gate.decide import undecided  # noqa: PLC0415  numpy is not for --help

    reasons = ", ".join(dict.fromkeys(reason for each in found.doubts.values() for reason in each))
    if reasons:
        console.note(f"bubblescope: numbers of this baseline are degraded: {reasons}")
    open_ = undecided(found)
    if open_:
        console.note(f"bubblescope: gates may not decide against this baseline: {open_}")


@command.command("show", cls=GroupedCommand)
@click.argument("file", metavar="FILE")
@output_options
def show(*, file: str, output: Output, progress: bool) -> None:  # noqa: ARG001  there is nothing to wait for
    """Show a baseline: what run it is of, and its numbers.

    \b
    Examples:
      bubblescope baseline show bubble.json
      bubblescope baseline show bubble.json --format csv
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.report import baselines  # noqa: PLC0415  rich and orjson are not for --help

    found = _read(file)
    result = pages.Result(
        page=lambda: baselines.page(found),
        json=lambda: baselines.render(found),
        csv=lambda: baselines.table(found),
    )
    pages.write(output, result)


def _read(file: str) -> Baseline:
    """The baseline in a file that must be there."""
    from bubblescope.gate.files import reference  # noqa: PLC0415  msgspec is not for --help

    found = reference(file)
    if found is None:
        raise InputError(f"{file} does not exist")
    return found


@command.command("diff", cls=GroupedCommand)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--all", "every", is_flag=True, cls=GroupedOption, heading="What to show", help="Unchanged numbers, too.")
@output_options
def diff(*, old: str, new: str, every: bool, output: Output, progress: bool) -> None:  # noqa: ARG001  nothing takes long
    """Tell two baselines apart: every number that changed, and in what the runs differ.

    What a reviewer of a changed baseline wants to see; compare says what a change is made of.

    \b
    Examples:
      bubblescope baseline diff old.json bubble.json
      bubblescope baseline diff <(git show main:bubble.json) bubble.json
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.cli import compare  # noqa: PLC0415  it takes orjson and rich
    from bubblescope.gate.compare import compare as compared  # noqa: PLC0415  numpy is not for --help

    compare.write(compared(_read(old), _read(new), (old, new)), output, "all" if every else "changed")
