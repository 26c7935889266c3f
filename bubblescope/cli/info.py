"""`bubblescope info`: what trace files are, before anything is asked of them."""

from __future__ import annotations

import click

from bubblescope.cli import pages
from bubblescope.cli.console import Progress
from bubblescope.cli.options import GroupedCommand, file_options, output_options, trace_arguments
from bubblescope.cli.output import Output
from bubblescope.errors import InputError
from bubblescope.model.options import Options

__all__ = ["command"]


@click.command("info", cls=GroupedCommand)
@trace_arguments
@file_options
@output_options
def command(*, traces: tuple[str, ...], options: Options, output: Output, progress: bool) -> None:
    """Say what trace files hold, what is wrong and what they lack.

    For each file what it looks like, its ranks, devices, steps, streams and communicators, how its
    forwards and backwards are told apart, and the lines that make the next recording say more. At
    the end what the files are as one job, and what analyze can answer. A TRACE is a file, a
    directory, a glob, or - for stdin.

    \b
    Examples:
      bubblescope info traces/
      bubblescope info rank0.json.gz --json
      zcat rank0.json.gz | bubblescope info -
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.inventory.take import info  # noqa: PLC0415  numpy and pandas are not for --help

    with Progress(wanted=progress) as tell:
        found = info(traces, options, tell)
    from bubblescope.report import info_csv, inventories, json  # noqa: PLC0415  nor are rich and orjson

    result = pages.Result(
        page=lambda: inventories.page(found), json=lambda: json.render(found), csv=lambda: info_csv.render(found)
    )
    pages.write(output, result)
    if not found.readable:
        raise InputError("none of the files can be read as a trace", hint="see what is said of each")
