"""`bubblescope gate`: pass, fail or undecided, for a merge to wait on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from bubblescope.cli import console, pages, streams
from bubblescope.cli.config import resolved, stated
from bubblescope.cli.console import Progress
from bubblescope.cli.gate_files import GateFiles, gate_files
from bubblescope.cli.options import (
    GroupedCommand,
    GroupedOption,
    config_option,
    job_options,
    output_options,
    trace_arguments,
)
from bubblescope.cli.output import Output
from bubblescope.errors import BubblescopeError, UsageError
from bubblescope.model.options import Options
from bubblescope.model.settings import KEYS

if TYPE_CHECKING:
    from bubblescope.gate.judge import Reference
    from bubblescope.model.gate import Gate
    from bubblescope.model.settings import Settings

__all__ = ["EXIT", "command"]

EXIT = {"pass": 0, "fail": 1, "inconclusive": 4}
"""The exit code of each verdict."""


def _rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is asked of the run, handed over as `settings`: those of the command line above all others."""

    @wraps(function)
    def call(**given: Any) -> Any:
        own = stated(click.get_current_context())
        for name in KEYS:
            given.pop(name.replace("-", "_"))
        return function(settings=resolved(own, given.pop("config")), **given)

    option = partial(click.option, cls=GroupedOption, heading="Rules")
    rule = "bubble > 18%, bubble@stage=3 > 25%, or against the baseline bubble:+2pp, step_time:+5%. Repeatable."
    missing = (
        "What a rule does whose baseline is missing or of another shape: leave the verdict open (default), warn, pass."
    )
    off = "Do without a rule of the preset; its number, as step_time, is enough. Repeatable."
    preset = "Rules to start from: default, strict, smoke or none; config show --preset NAME lists them."
    shape = "Compare runs of another schedule, layout or micro-batch count."
    doubt = "Take numbers that the data make doubtful as they are."
    options = [
        option("--baseline", metavar="FILE", help="What baseline save wrote, or a report, to compare with."),
        option("--fail-on", metavar="RULE", multiple=True, help=f"Fail on {rule}"),
        option("--warn-on", metavar="RULE", multiple=True, help="The same, but only warn."),
        option(
            "--off",
            metavar="RULE",
            multiple=True,
            help=off,
        ),
        option(
            "--preset",
            metavar="NAME",
            help=preset,
        ),
        option("--on-missing-baseline", type=click.Choice(["fail", "warn", "pass"]), help=missing),
        option(
            "--allow-mismatch/--no-allow-mismatch",
            default=None,
            help=shape,
        ),
        option(
            "--allow-degraded/--no-allow-degraded",
            default=None,
            help=doubt,
        ),
    ]
    wrapped: Callable[..., Any] = config_option(call)
    for each in reversed(options):
        wrapped = each(wrapped)
    return wrapped


@click.command("gate", cls=GroupedCommand)
@trace_arguments
@_rule_options
@gate_files
@job_options
@output_options
@click.pass_context
def command(  # noqa: PLR0913  one value a group of options
    context: click.Context,
    /,
    *,
    traces: tuple[str, ...],
    settings: Settings,
    files: GateFiles,
    options: Options,
    output: Output,
    progress: bool,
) -> None:
    """Pass or fail a run: by limits, or against a baseline.

    Every rule is evaluated and printed. The exit code is 0 if none failed, 1 if one did, and 4 if
    the traces cannot tell: no baseline, one of another shape, too few steps, ranks missing. A TRACE
    is a file, a directory, a glob, or - for stdin; give those of all ranks, or one report.

    \b
    Examples:
      bubblescope gate traces/ --baseline bubble.json
      bubblescope gate traces/ --fail-on "bubble > 18%" --fail-on "bubble@stage=3 > 25%"
      bubblescope gate traces/ --baseline bubble.json --fail-on bubble:+1pp --junit gate.xml
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    baseline = [] if settings.baseline.value is None else [str(settings.baseline.value)]
    try:
        files.check(output, (*traces, *baseline))
        gate = _gated(traces, settings, options, progress=progress)
    except BubblescopeError as error:
        files.tell_trouble(error.message)
        raise
    files.write(gate, output)
    try:
        _write(gate, output)
    except OSError as error:
        if not streams.is_closed_pipe(error):
            raise
    context.exit(EXIT[gate.verdict])  # also where nobody reads the page: a gate that failed has failed


def _gated(traces: tuple[str, ...], settings: Settings, options: Options, *, progress: bool) -> Gate:
    from bubblescope.gate.evaluate import decide  # noqa: PLC0415  numpy and pandas are not for --help
    from bubblescope.gate.policy import of_settings  # noqa: PLC0415  nor is what rules take

    asked, against = of_settings(settings), _reference(settings)
    with Progress(wanted=progress) as tell:
        return decide(traces, against, asked, options, tell)


def _reference(settings: Settings) -> Reference | None:
    """What to compare with: read before the traces are, which takes longer."""
    from bubblescope.gate.files import reference  # noqa: PLC0415  msgspec is not for --help
    from bubblescope.gate.judge import Reference  # noqa: PLC0415

    place = settings.baseline.value
    if str(place) == "-":
        raise UsageError("a baseline is a file, and cannot come from stdin")
    return None if place is None else Reference(str(place), reference(str(place)))


def _write(gate: Gate, output: Output) -> None:
    from bubblescope.report import gate_csv, gate_words, gates, json  # noqa: PLC0415  rich and orjson are not for --help

    result = pages.Result(
        page=lambda: gates.page(gate),
        json=lambda: json.render(gate),
        csv=lambda: gate_csv.render(gate),
        draw=lambda on: gates.draw(gate, on),
    )
    pages.write(output, result)
    if output.target is not None and not output.quiet:
        console.note(gate_words.verdict(gate))
