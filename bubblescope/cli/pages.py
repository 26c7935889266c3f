"""Where a page goes that is no report: the same places and formats, shown or written whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bubblescope.cli import console
from bubblescope.cli.output import Output, write_file
from bubblescope.report import registry

if TYPE_CHECKING:
    from bubblescope.report.pages import Page

__all__ = ["show", "write"]


def write(output: Output, page: Callable[[], Page], data: Callable[[], Mapping[str, Any]]) -> None:
    """Write the page or its data, whichever the format asks for, where the options say."""
    form = output.format or registry.guess(output.target)
    if output.target is None:
        if form == "table":
            show(page())
        else:
            console.result(_render(form, page, data))
        return
    output.check()
    write_file(output.target, _render(form, page, data))
    if not output.quiet:
        console.note(f"Wrote {output.target}")


def _render(form: str, page: Callable[[], Page], data: Callable[[], Mapping[str, Any]]) -> bytes:
    from bubblescope.report import pages, trial_json  # noqa: PLC0415  rich and orjson are not for --help

    if form == "json":
        return trial_json.render(data())
    if form == "csv":
        return trial_json.render_csv(data())
    return pages.markdown(page()) if form == "markdown" else pages.plain(page())


def show(page: Page) -> None:
    """Print a page to stdout, in colour where that is a terminal."""
    from bubblescope.report import pages  # noqa: PLC0415

    console.drawn(lambda on: pages.draw(page, on))
