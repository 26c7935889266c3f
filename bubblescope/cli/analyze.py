"""`bubblescope analyze`: the summary of a run."""

from __future__ import annotations

import click

from bubblescope.cli.console import Progress
from bubblescope.cli.options import GroupedCommand, job_options, output_options, trace_arguments
from bubblescope.cli.output import Output
from bubblescope.errors import InputError
from bubblescope.model.options import Options

__all__ = ["command"]

_HINT = "bubblescope info says what the files hold, and what to add to the recording"


@click.command("analyze", cls=GroupedCommand)
@trace_arguments
@job_options
@output_options
def command(*, traces: tuple[str, ...], options: Options, output: Output, progress: bool) -> None:
    """Measure the bubble of a training run and tell where it comes from.

    A TRACE is a file, a directory, a glob, or - for stdin; give those of all ranks.

    \b
    Examples:
      bubblescope analyze traces/
      bubblescope analyze traces/ --steps 2:5 --json -o report.json
      bubblescope analyze rank*.json.gz --format markdown >> "$GITHUB_STEP_SUMMARY"
      bubblescope analyze traces/ --label 'F=fwd_mb(?P<microbatch>\\d+)'
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.engine import analyze  # noqa: PLC0415  numpy and pandas are not for --help

    with Progress(wanted=progress) as tell:
        analysis = analyze(traces, options, tell)
    output.write(analysis.report)
    if analysis.report.quality.verdict == "unusable":
        raise InputError("the traces are unusable: none of the numbers can be told", hint=_HINT)
