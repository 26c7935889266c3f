"""Pages that are no report: a headline, facts, tables and a picture, for the terminal, a file or Markdown."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bubblescope.report import gantt
from bubblescope.report.facts import Fact
from bubblescope.report.markdown import escape
from bubblescope.report.tables import Table
from bubblescope.report.wording import visible

__all__ = ["Page", "draw", "markdown", "plain"]

PLAIN_WIDTH = 100

# For a terminal or a log that knows only ASCII.
_ASCII = str.maketrans({"…": "...", "–": "-", "µ": "u", "±": "+-"})  # noqa: RUF001


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says, in the order in which it is read; `caption` and `legend` stand around the picture."""

    headline: str
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    caption: str = ""
    lanes: tuple[gantt.Lane, ...] = ()
    legend: str = ""
    notes: tuple[str, ...] = ()

    def map(self, change: Callable[[str], str]) -> Page:
        """The same page with every string but those of the picture changed."""
        return replace(
            self,
            headline=change(self.headline),
            facts=tuple((change(name), change(text)) for name, text in self.facts),
            tables=tuple(_map_table(table, change) for table in self.tables),
            caption=change(self.caption),
            legend=change(self.legend),
            notes=tuple(map(change, self.notes)),
        )


def _map_table(table: Table, change: Callable[[str], str]) -> Table:
    return replace(
        table,
        title=change(table.title),
        denominator=change(table.denominator),
        headers=tuple(map(change, table.headers)),
        rows=tuple(tuple(map(change, row)) for row in table.rows),
        more=None if table.more is None else change(table.more),
    )


def draw(page: Page, console: Console) -> None:
    """Print a page. Names are never read as markup."""
    page = page.map(visible)
    if not console.encoding.lower().replace("-", "").startswith("utf"):
        page = page.map(lambda text: text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii"))
    console.print(Text(page.headline, style="bold"))
    if page.facts:
        console.print()
        console.print(_grid_of_facts(page.facts))
    for table in page.tables:
        console.print()
        _print_table(table, console)
    _print_picture(page, console)
    for note in page.notes:
        console.print()
        console.print(Text(note))


def plain(page: Page) -> bytes:
    """The page without colour, 100 columns wide, for a file."""
    out = io.StringIO()
    console = Console(file=out, width=PLAIN_WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    draw(page, console)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()).encode()


def _grid_of_facts(facts: tuple[Fact, ...]) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, text in facts:
        grid.add_row(Text(name, style="cyan"), Text(text))
    return grid


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


def _print_picture(page: Page, console: Console) -> None:
    if not page.lanes:
        return
    picture = gantt.draw(page.lanes, console.width)
    console.print()
    if picture.lines:
        console.print(Text(page.caption, style="bold cyan"))
        for line in picture.lines:
            console.print(line, soft_wrap=True)
        console.print(Text(page.legend, style="dim"))
    for note in picture.notes:
        console.print(Text(note, style="dim"))


def markdown(page: Page) -> bytes:
    """The page as GitHub Markdown, the picture as a block of text."""
    page = page.map(visible)
    safe = page.map(escape)
    blocks = [f"### {safe.headline}", "\n".join(f"- {name}: {text}" for name, text in safe.facts)]
    blocks += [_markdown_table(table) for table in safe.tables]
    picture = gantt.draw(page.lanes, PLAIN_WIDTH)
    if picture.lines:
        lines = "\n".join(line.plain.rstrip() for line in picture.lines)
        blocks += [f"**{safe.caption}**", f"```text\n{lines}\n```", safe.legend]
    blocks += [*map(escape, picture.notes), *safe.notes]
    return ("\n\n".join(filter(None, blocks)) + "\n").encode()


def _markdown_table(table: Table) -> str:
    lines = [table.headers, tuple("---:" if side == "r" else ":---" for side in table.align), *table.rows]
    grid = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"**{table.title}**: {table.denominator}\n\n{grid}" + (f"\n\n{table.more}" if table.more else "")
