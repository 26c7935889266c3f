"""The summary in the terminal: one sentence, what was detected, the tables, warnings last."""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bubblescope.model.report import Report
from bubblescope.report.summary import Summary, summarise
from bubblescope.report.tables import Table

__all__ = ["plain", "render"]

PLAIN_WIDTH = 100

# For a terminal or a log that knows only ASCII.
_ASCII = str.maketrans({"…": "...", "–": "-", "µ": "u", "±": "+-"})  # noqa: RUF001


def render(report: Report, console: Console) -> None:
    """Print the summary. Names from traces are never read as markup."""
    summary = summarise(report)
    if not _speaks_unicode(console):
        summary = summary.map(_ascii)
    _head(summary, console)
    for table in summary.tables:
        console.print()
        _print_table(table, console)
    _list("What would help", summary.findings, "green", console)
    _list("Warnings", summary.warnings, "yellow", console)


def plain(report: Report) -> bytes:
    """The summary without colour, 100 columns wide, for a file."""
    out = io.StringIO()
    console = Console(file=out, width=PLAIN_WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    render(report, console)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()).encode()


def _speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")


def _ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def _head(summary: Summary, console: Console) -> None:
    console.print(Text(summary.verdict, style="bold"))
    console.print()
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, text in summary.facts:
        grid.add_row(Text(name, style="cyan"), Text(text))
    console.print(grid)


def _print_table(table: Table, console: Console) -> None:
    console.print(Text.assemble((table.title, "bold cyan"), (f"  {table.denominator}", "dim")))
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
    for header, side in zip(table.headers, table.align, strict=True):
        grid.add_column(Text(header), justify="right" if side == "r" else "left", overflow="fold")
    for index, row in enumerate(table.rows):
        grid.add_row(*map(Text, row), style="bold yellow" if index in table.strong else None)
    console.print(Padding(grid, (0, 0, 0, 2)))
    if table.more:
        console.print(Text(f"  {table.more}", style="dim"))


def _list(title: str, lines: tuple[str, ...], colour: str, console: Console) -> None:
    if not lines:
        return
    console.print()
    console.print(Text(title, style=f"bold {colour}"))
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
