"""Pages beside the report: what they look like where letters are few or names hostile."""

from __future__ import annotations

import io

from rich.console import Console

from bubblescope.report import pages
from bubblescope.report.gantt import Bar, Lane
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

PAGE = Page(
    headline="a|b <script> \x1b[31m",
    intro="p*q",
    facts=(("File", "_x_*.csv"),),
    warnings=("- [x]",),
    tables=(Table(title="T", denominator="of [y]", align="lr", headers=("a", "b"), rows=(("–", "1|2"),)),),  # noqa: RUF001
    caption="Picture",
    lanes=(Lane("rank 0", (Bar("F0", 0, 1),)),),
    legend="F forward",
    notes=("café …",),
)


def test_names_are_shown_as_they_are():
    """Markup of the terminal library stays text, and what commands a terminal becomes an escape."""
    assert pages.plain(PAGE).decode() == (
        "a|b <script> \\x1b[31m\n\np*q\n\nFile  _x_*.csv\n\nWarnings\n  - [x]\n\n"
        "T  of [y]\n  a    b\n  –  1|2\n\n"  # noqa: RUF001
        "Picture\ntime    0\nrank 0 |F0  |\nF forward\n\ncafé …\n"
    )


def test_markdown_escapes_names():
    """No name becomes a construct of Markdown or HTML, and the picture is a block of text."""
    assert pages.markdown(PAGE).decode() == (
        "### a\\|b &lt;script&gt; \\\\x1b\\[31m\n\np\\*q\n\n- File: \\_x\\_\\*.csv\n\n"
        "**Warnings**\n\n- &#8203;- \\[x\\]\n\n"
        "**T**: of \\[y\\]\n\n"
        "| a | b |\n| :--- | ---: |\n| – | 1\\|2 |\n\n"  # noqa: RUF001
        "**Picture**\n\n```text\ntime    0\nrank 0 |F0  |\n```\n\nF forward\n\ncafé …\n"
    )


def test_terminals_that_know_only_ascii():
    """Signs have a likeness, and other letters an escape."""
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    pages.draw(PAGE, Console(file=raw, width=60))
    raw.seek(0)
    text = raw.read()
    assert text.isascii()
    assert "  -  1|2" in text
    assert "caf\\xe9 ..." in text


def test_a_page_without_lanes_has_no_picture():
    """Nor its caption and legend."""
    text = pages.plain(Page(headline="h", caption="Picture", legend="F forward")).decode()
    assert text == "h\n"
    assert pages.markdown(Page(headline="h", caption="Picture", legend="F forward")).decode() == "### h\n"
