"""The summary as GitHub Markdown, for a pull request or a job's summary page."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bubblescope.model.report import Report
from bubblescope.report.summary import Summary, summarise
from bubblescope.report.table import Table

__all__ = ["code", "escape", "line", "markdown_table", "render"]

# What starts a construct anywhere in a line. `$` is GitHub's mathematics.
_ACTIVE = re.compile(r"([\\`*_\[\]<>|~$])")
# A reader must not be notified, nor an issue linked, because a kernel is called @team or #1.
# Nor may `:+1:` become a picture, or `www.` a link.
_REFERENCE = re.compile(r"([@#])(?=\w)|(?<=\w)(:)(?=//)|(:)(?=[\w+-]+:)|(?<!\w)(www)(?=\.)")
# What starts a list, a heading or a quotation at the beginning of a line.
_LEADING = re.compile(r"^(\s*)([-+#=]|\d+(?=[.)]))")
_BREAKER = "&#8203;"


def escape(text: str) -> str:
    """The text such that Markdown shows it as it is."""
    text = text.replace("&", "&amp;")
    text = _ACTIVE.sub(r"\\\1", text).replace(r"\<", "&lt;").replace(r"\>", "&gt;")
    text = _REFERENCE.sub(lambda match: match[0] + _BREAKER, text)
    return re.sub(r"\s*[\r\n]+\s*", " ", text)


def code(text: str) -> str:
    """A text in one line to be copied as it is."""
    text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def line(text: str) -> str:
    """An escaped text that stands at the beginning of a line or an item."""
    return _LEADING.sub(lambda match: f"{match[1]}{_BREAKER}{match[2]}", text)


def render(report: Report) -> bytes:
    """The summary: verdict first, tables of ranks and calls folded, warnings last."""
    summary = summarise(report).map(escape)
    return ("\n\n".join(_blocks(summary)) + "\n").encode()


def _blocks(summary: Summary) -> list[str]:
    blocks = ["### Pipeline bubble", f"**{summary.verdict}**"]
    blocks.append("\n".join(f"- {name}: {text}" for name, text in summary.facts))
    blocks += [_folded(table) if table.detail else markdown_table(table) for table in summary.tables]
    if summary.findings:
        blocks += ["**What would help**", "\n".join(f"- {line(text)}" for text in summary.findings)]
    if summary.warnings:
        blocks += ["**Warnings**", "\n".join(f"- {line(text)}" for text in summary.warnings)]
    return blocks


def _folded(table: Table) -> str:
    """A table behind its title; GitHub reads Markdown in there only after an empty line."""
    return f"<details><summary>{table.title}</summary>\n\n{table.denominator}\n\n{_grid(table)}\n\n</details>"


def markdown_table(table: Table) -> str:
    """A table under its title; its strings are escaped already."""
    return f"**{table.title}**: {table.denominator}\n\n{_grid(table)}"


def _grid(table: Table) -> str:
    lines = [_row(table.headers), _row("---:" if side == "r" else ":---" for side in table.align)]
    for index, row in enumerate(table.rows):
        lines.append(_row(map(_bold, row) if index in table.strong else row))
    return "\n".join(lines) + (f"\n\n{table.more}" if table.more else "")


def _bold(cell: str) -> str:
    return f"**{cell}**" if cell else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
