"""Where a page goes that is no report: the same places and formats, shown or written whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblescope.cli import console
from bubblescope.cli.output import Output, write_file
from bubblescope.report import registry

if TYPE_CHECKING:
    from rich.console import Console

    from bubblescope.report.pages import Page

__all__ = ["Result", "show", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command found, as a page for people and as data; each is made when a format asks for it."""

    page: Callable[[], Page]
    json: Callable[[], bytes]
    csv: Callable[[], bytes]
    draw: Callable[[Console], None] | None = None
    """What a terminal shows in place of the page."""


def write(output: Output, result: Result) -> None:
    """Write the page or its data, whichever the format asks for, where the options say."""
    form = output.format or registry.guess(output.target)
    if output.target is None:
        if form == "table":
            console.drawn(result.draw) if result.draw is not None else show(result.page())
        else:
            console.result(_render(form, result))
        return
    output.check()
    write_file(output.target, _render(form, result))
    if not output.quiet:
        console.note(f"Wrote {output.target}")


def _render(form: str, result: Result) -> bytes:
    from bubblescope.report import canvas, pages  # noqa: PLC0415  rich is not for --help

    if form == "json":
        return result.json()
    if form == "csv":
        return result.csv()
    if form == "markdown":
        return pages.markdown(result.page())
    return pages.plain(result.page()) if result.draw is None else canvas.plain(result.draw)


def show(page: Page) -> None:
    """Print a page to stdout, in colour where that is a terminal."""
    from bubblescope.report import pages  # noqa: PLC0415

    console.drawn(lambda on: pages.draw(page, on))
