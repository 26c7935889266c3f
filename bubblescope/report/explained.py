"""What can be explained, topic by topic: a topic is a row of `TOPICS`, and brings its names and their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from bubblescope.errors import UsageError
from bubblescope.report import entries, schedule_pages
from bubblescope.report.advice_pages import ADVICE
from bubblescope.report.bubble_pages import BUBBLE
from bubblescope.report.cause_detail_pages import DETAILS
from bubblescope.report.cause_pages import CAUSES
from bubblescope.report.entries import Entry, normal
from bubblescope.report.finding_pages import FINDINGS
from bubblescope.report.found_pages import FOUND
from bubblescope.report.pages import Page
from bubblescope.report.speed_pages import SPEED
from bubblescope.report.stage_pages import STAGES
from bubblescope.report.table import Table
from bubblescope.report.time_pages import TIME
from bubblescope.report.traffic_pages import TRAFFIC
from bubblescope.report.uneven_pages import UNEVEN
from bubblescope.report.whatif_pages import WHATIF

__all__ = ["TOPICS", "Topic", "contents", "explain"]


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of thing.

    Attributes:
        title: of the topic.
        names: what each name is, in half a sentence.
        aliases: other spellings, each with the name that it stands for; one may stand for several.
        page: the page of a name.
    """

    title: str
    names: Callable[[], Mapping[str, str]]
    aliases: Callable[[], Iterable[tuple[str, str]]]
    page: Callable[[str], Page]


def _worded(title: str, told: tuple[Entry, ...]) -> Topic:
    """A topic of entries."""
    of = {entry.name: entry for entry in told}
    return Topic(
        title,
        names=lambda: {entry.name: entry.summary for entry in told},
        aliases=lambda: [(spelling, entry.name) for entry in told for spelling in sorted(entries.spellings(entry))],
        page=lambda name: entries.page(of[name]),
    )


TOPICS = (
    _worded("Bubble", BUBBLE),
    _worded("Causes of the bubble", CAUSES + DETAILS),
    _worded("Where a rank's time went", TIME),
    _worded("Throughput and utilisation", SPEED),
    _worded("Stages and balance", STAGES + UNEVEN),
    _worded("Communication", TRAFFIC),
    _worded("What-if", WHATIF),
    _worded("What would help", ADVICE),
    _worded("What was found, and how surely", FOUND),
    _worded("Findings about the data", FINDINGS),
    Topic("Schedules", schedule_pages.names, lambda: schedule_pages.aliases().items(), schedule_pages.page),
)

Found = list[tuple[Topic, str]]
"""Names, each with its topic."""


def explain(name: str) -> Page:
    """The page of a name or alias of any topic; of a word with several meanings, what it may be.

    Raises UsageError with near names where nothing is called so.
    """
    wanted = normal(name)
    found = _named(wanted) or _spelled(wanted)
    if len(found) == 1:
        topic, known = found[0]
        return topic.page(known)
    if found:
        return _choice(name, found)
    raise UsageError(f"nothing is called {name!r}", hint=_hint(wanted))


def _named(wanted: str) -> Found:
    return [(topic, name) for topic in TOPICS for name in topic.names() if normal(name) == wanted]


def _spelled(wanted: str) -> Found:
    found = [(topic, name) for topic in TOPICS for alias, name in topic.aliases() if normal(alias) == wanted]
    return [each for k, each in enumerate(found) if each not in found[:k]]


def _hint(wanted: str) -> str:
    """The nearest spellings, one for each thing that they stand for."""
    meant: dict[str, str] = {}
    for topic in TOPICS:
        spelled = [(name, name) for name in topic.names()] + list(topic.aliases())
        meant |= {spelling: name for spelling, name in spelled if spelling not in meant}
    nearest: dict[str, str] = {}
    for spelling in get_close_matches(wanted, meant, n=9):
        nearest.setdefault(meant[spelling], spelling)
    near = list(nearest.values())[:3]
    return f"did you mean {', '.join(near)}?" if near else "bubblescope explain lists what can be explained"


def _choice(name: str, found: Found) -> Page:
    """What a word may stand for."""
    return Page(
        headline=f"{name} has several meanings:",
        tables=tuple(
            _listed(topic, {known: topic.names()[known] for other, known in found if other is topic})
            for topic in TOPICS
            if any(other is topic for other, _ in found)
        ),
    )


def contents() -> Page:
    """All names of all topics."""
    return Page(
        headline="What bubblescope explain can explain:",
        tables=tuple(_listed(topic, topic.names()) for topic in TOPICS),
    )


def _listed(topic: Topic, names: Mapping[str, str]) -> Table:
    return Table(
        title=topic.title,
        denominator="bubblescope explain NAME",
        align="ll",
        headers=("name", "what it is"),
        rows=tuple(names.items()),
    )
