"""`bubblescope compare`: what changed from one run to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bubblescope.cli import pages
from bubblescope.cli.console import Progress
from bubblescope.cli.options import GroupedCommand, GroupedOption, job_options, output_options
from bubblescope.cli.output import Output
from bubblescope.errors import UsageError
from bubblescope.model.options import Options

if TYPE_CHECKING:
    from bubblescope.model.comparison import Comparison
    from bubblescope.report.comparisons import Shown

__all__ = ["command", "write"]


@click.command("compare", cls=GroupedCommand)
@click.argument("runs", metavar="A B", nargs=-1, required=True)
@click.option(
    "--all",
    "every",
    cls=GroupedOption,
    heading="What to show",
    is_flag=True,
    help="Show what did not change beyond noise, too.",
)
@job_options
@output_options
def command(*, runs: tuple[str, ...], every: bool, options: Options, output: Output, progress: bool) -> None:
    """Compare two runs: what changed, and what changed it.

    A, the run before, and B, the run after, are each a directory, a file or a glob of traces, a
    report that analyze --json wrote, or a baseline. What changed is split by cause, by stage and
    by communication group, the largest change first; what may be noise of the steps is left out.

    \b
    Examples:
      bubblescope compare before/ after/
      bubblescope compare before.json after/ --all
      bubblescope compare 'before/rank*.json.gz' 'after/rank*.json.gz' --json -o change.json
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    if len(runs) != 2:
        raise UsageError(
            f"compare takes two runs, found {len(runs)}",
            hint="name the folder of each, or its files by a glob in quotes: 'before/*.json'",
        )
    if runs == ("-", "-"):
        raise UsageError("only one of the two runs can come from stdin")
    from bubblescope.gate.compare import compare  # noqa: PLC0415  numpy and pandas are not for --help
    from bubblescope.gate.take import check_use, taken  # noqa: PLC0415

    with Progress(wanted=progress) as tell:
        before = taken([runs[0]], options, tell)
    with Progress(wanted=progress) as tell:
        after = taken([runs[1]], options, tell)
    check_use(options, before, after)
    write(compare(before.numbers, after.numbers, (runs[0], runs[1])), output, "all" if every else "certain")


def write(found: Comparison, output: Output, shown: Shown) -> None:
    """Write a comparison as the options say; JSON and CSV have all of it whatever is shown."""
    from bubblescope.report import comparison_csv, comparisons, json  # noqa: PLC0415  rich and orjson are not for --help

    result = pages.Result(
        page=lambda: comparisons.page(found, shown),
        json=lambda: json.render(found),
        csv=lambda: comparison_csv.render(found),
    )
    pages.write(output, result)
