"""The summary in the terminal: one sentence, what was detected, the tables, warnings last."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bubblescope.model.report import Report
from bubblescope.report import canvas
from bubblescope.report.summary import summarise

__all__ = ["plain", "render"]


def render(report: Report, console: Console) -> None:
    """Print the summary. Names from traces are never read as markup."""
    summary = summarise(report).map(canvas.alphabet(console))
    console.print(Text(summary.verdict, style="bold"))
    console.print()
    canvas.print_facts(summary.facts, console)
    for table in summary.tables:
        console.print()
        canvas.print_table(table, console)
    _list("What would help", summary.findings, "green", console)
    _list("Warnings", summary.warnings, "yellow", console)


def plain(report: Report) -> bytes:
    """The summary without colour, 100 columns wide, for a file."""
    return canvas.plain(lambda console: render(report, console))


def _list(title: str, lines: tuple[str, ...], colour: str, console: Console) -> None:
    if not lines:
        return
    console.print()
    console.print(Text(title, style=f"bold {colour}"))
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
