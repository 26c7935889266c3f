"""What every page in a terminal is drawn with: facts, tables, a place for text, an alphabet it knows."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bubblescope.report import fitting
from bubblescope.report.facts import Fact
from bubblescope.report.table import Table

__all__ = ["PLAIN_WIDTH", "alphabet", "plain", "print_facts", "print_list", "print_table"]

PLAIN_WIDTH = 100

_INDENT = 2

# For a terminal or a log that knows only ASCII.
_ASCII = str.maketrans({"…": "...", "–": "-", "µ": "u", "±": "+-"})  # noqa: RUF001


def alphabet(console: Console) -> Callable[[str], str]:
    """What turns a text into letters that the console knows."""
    return str if console.encoding.lower().replace("-", "").startswith("utf") else _ascii


def _ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def plain(draw: Callable[[Console], None]) -> bytes:
    """What is drawn, without colour and 100 columns wide, for a file."""
    out = io.StringIO()
    draw(Console(file=out, width=PLAIN_WIDTH, color_system=None, force_terminal=False, legacy_windows=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()).encode()


def print_facts(facts: tuple[Fact, ...], console: Console) -> None:
    """Print names and texts in two columns."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, text in facts:
        grid.add_row(Text(name, style="cyan"), Text(text))
    console.print(grid)


def print_table(table: Table, console: Console) -> None:
    """Print a table under its title."""
    console.print(Text.assemble((table.title, "bold cyan"), (f"  {table.denominator}", "dim")))
    table, widths = fitting.fitted(table, console.width - _INDENT)
    grid = Grid(box=None, padding=(0, fitting.GAP, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
    for k, (header, side) in enumerate(zip(table.headers, table.align, strict=True)):
        width = None if widths is None else widths[k]
        grid.add_column(Text(header), justify="right" if side == "r" else "left", overflow="fold", width=width)
    for index, row in enumerate(table.rows):
        grid.add_row(*map(Text, row), style="bold yellow" if index in table.strong else None)
    console.print(_indented(grid))
    for line in (table.more or "").splitlines():
        console.print(_indented(Text(line, style="dim")))


def _indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, _INDENT))


def print_list(title: str, lines: tuple[str, ...], colour: str, console: Console) -> None:
    """Print lines under their title, after an empty line; nothing where there are none."""
    if not lines:
        return
    console.print()
    console.print(Text(title, style=f"bold {colour}"))
    for line in lines:
        console.print(_indented(Text(line)))
