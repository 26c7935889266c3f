"""A name explained in words: what an entry says, how it may be spelled, and its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bubblescope.report.facts import Fact
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["LABELS", "RUN", "Entry", "Example", "normal", "page", "spellings"]

LABELS = {
    "severity": "Severity",
    "formula": "Formula",
    "gain": "Gain",
    "unit": "Unit",
    "effect": "Effect",
    "changed": "Changed",
    "kept": "As measured",
    "assumed": "Assumed",
    "makers": "Made by",
    "neighbours": "Tell apart",
    "reading": "Reading",
    "pitfalls": "Beware",
    "remedy": "What to do",
    "where": "Shown in",
}
"""The parts of an entry that are lines of its page, and what stands before them."""

RUN = "1f1b on 4 ranks, 8 micro-batches, F 10 ms, B 20 ms; stage 3 works 1.2 times as long, and a transfer takes 1 ms"
"""The run of most examples. tests/test_explained_run.py has it written as traces, and analyzes these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A worked example: the setting, and rows of what, its calculation in plain arithmetic, and the value."""

    setting: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name and all that is said of it; a part that is empty has no line.

    Attributes:
        name: what it is asked for by, unlike any other entry's.
        summary: what it is, in half a sentence.
        text: the same in a sentence or two of plain words.
        keys: its places in the JSON report, `ranks[].host_ns`.
        also: other names, which its page tells.
        hidden: further spellings, which nobody needs to be told.
        see: names of related entries or schedules.
        section: the anchor of the section of the document that defines it.
        document: where that is.
        source: the paper and its section, empty where the definition is bubblescope's own.
    """

    name: str
    summary: str
    text: str
    keys: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    severity: str = ""
    formula: str = ""
    gain: str = ""
    unit: str = ""
    effect: str = ""
    changed: str = ""
    kept: str = ""
    assumed: str = ""
    makers: str = ""
    neighbours: str = ""
    reading: str = ""
    pitfalls: str = ""
    remedy: str = ""
    where: str = ""
    example: Example | None = None
    see: tuple[str, ...] = ()
    section: str
    document: str = "docs/definitions.md"
    source: str = ""


def normal(spelling: str) -> str:
    """A name without what people write differently: case, spaces, brackets of lists, the unit at the end."""
    bare = re.sub(r"\[[^\]]*\]", "", spelling.strip().lower())
    return re.sub(r"[\s_]+", "-", bare).removesuffix("-ns")


def spellings(entry: Entry) -> frozenset[str]:
    """All that the entry answers to beside its name, as `normal` leaves it; name and keys also by their last parts."""
    paths = [normal(path).split(".") for path in (entry.name, *entry.keys)]
    tails = (".".join(path[first:]) for path in paths for first in range(len(path)))
    return frozenset({*tails, *map(normal, (*entry.also, *entry.hidden))}) - {normal(entry.name)}


def page(entry: Entry) -> Page:
    """The page of an entry."""
    return Page(
        headline=f"{entry.name}: {entry.summary}.",
        intro=entry.text,
        facts=tuple(_facts(entry)),
        tables=() if entry.example is None else (_worked(entry.example),),
    )


def _facts(entry: Entry) -> Iterator[Fact]:
    if entry.also:
        yield "Also called", ", ".join(entry.also)
    if entry.keys:
        yield "JSON", ", ".join(entry.keys)
    for part, label in LABELS.items():
        if getattr(entry, part):
            yield label, getattr(entry, part)
    if entry.see:
        yield "See also", ", ".join(entry.see)
    yield "Source", f"{entry.source or 'bubblescope itself'}; {entry.document}#{entry.section}"


def _worked(example: Example) -> Table:
    return Table(
        title="Example",
        denominator=example.setting,
        align="llr",
        headers=("", "calculation", "value"),
        rows=example.rows,
    )
