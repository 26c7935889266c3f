"""Pages that are no report: a headline, facts, tables and a picture, for the terminal, a file or Markdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from bubblescope.report import canvas, gantt
from bubblescope.report.facts import Fact
from bubblescope.report.markdown import code, escape, line, markdown_table
from bubblescope.report.table import Table
from bubblescope.report.wording import visible

__all__ = ["Page", "draw", "markdown", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says, in the order in which it is read; `caption` and `legend` stand around the picture.

    `remarks` are what a reader may want to know and need not mind; `commands` are what to run next, each with a word
    before it, and stay in one line to be copied.
    """

    headline: str
    intro: str = ""
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    caption: str = ""
    lanes: tuple[gantt.Lane, ...] = ()
    legend: str = ""
    notes: tuple[str, ...] = ()
    commands: tuple[Fact, ...] = ()

    def map(self, change: Callable[[str], str]) -> Page:
        """The same page with every string but those of the picture changed."""
        return replace(
            self,
            headline=change(self.headline),
            intro=change(self.intro),
            facts=tuple((change(name), change(text)) for name, text in self.facts),
            warnings=tuple(map(change, self.warnings)),
            remarks=tuple(map(change, self.remarks)),
            tables=tuple(table.map(change) for table in self.tables),
            caption=change(self.caption),
            legend=change(self.legend),
            notes=tuple(map(change, self.notes)),
            commands=tuple((change(name), change(text)) for name, text in self.commands),
        )


def draw(page: Page, console: Console) -> None:
    """Print a page. Names are never read as markup."""
    page = page.map(visible).map(canvas.alphabet(console))
    console.print(Text(page.headline, style="bold"))
    if page.intro:
        console.print()
        console.print(Text(page.intro))
    if page.facts:
        console.print()
        canvas.print_facts(page.facts, console)
    canvas.print_list("Warnings", page.warnings, "yellow", console)
    canvas.print_list("Remarks", page.remarks, "cyan", console)
    for table in page.tables:
        console.print()
        canvas.print_table(table, console)
    _print_picture(page, console)
    for note in page.notes:
        console.print()
        console.print(Text(note))
    for name, command in page.commands:
        console.print()
        console.print(Text(f"{name}: {command}"), soft_wrap=True)


def plain(page: Page) -> bytes:
    """The page without colour, 100 columns wide, for a file."""
    return canvas.plain(lambda console: draw(page, console))


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
    blocks = [f"### {safe.headline}", safe.intro, "\n".join(f"- {name}: {text}" for name, text in safe.facts)]
    for title, texts in (("Warnings", safe.warnings), ("Remarks", safe.remarks)):
        blocks += [f"**{title}**", "\n".join(f"- {line(text)}" for text in texts)] if texts else []
    blocks += [markdown_table(table) for table in safe.tables]
    picture = gantt.draw(page.lanes, canvas.PLAIN_WIDTH)
    if picture.lines:
        lines = "\n".join(drawn.plain.rstrip() for drawn in picture.lines)
        blocks += [f"**{safe.caption}**", f"```text\n{lines}\n```", safe.legend]
    blocks += [*map(escape, picture.notes), *safe.notes]
    blocks += [f"{name}: {code(command)}" for name, command in page.commands]
    return ("\n\n".join(filter(None, blocks)) + "\n").encode()
