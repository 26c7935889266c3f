"""The summary in the terminal: one sentence, what was detected, the tables, warnings last."""

from __future__ import annotations

from rich.console import Console
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
    canvas.print_list("What would help", summary.findings, "green", console)
    canvas.print_list("Warnings", summary.warnings, "yellow", console)


def plain(report: Report) -> bytes:
    """The summary without colour, 100 columns wide, for a file."""
    return canvas.plain(lambda console: render(report, console))
