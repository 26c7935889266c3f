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
from bubblescope.report.gate_pages import GATE, WORDS
from bubblescope.report.pages import Page
from bubblescope.report.speed_pages import SPEED
from bubblescope.report.stage_pages import STAGES
from bubblescope.report.table import Table
from bubblescope.report.time_pages import TIME
from bubblescope.report.traffic_pages import TRAFFIC
from bubblescope.report.trust_pages import TRUST
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
        called: words that ask for the list of its names, as `normal` leaves them.
    """

    title: str
    names: Callable[[], Mapping[str, str]]
    aliases: Callable[[], Iterable[tuple[str, str]]]
    page: Callable[[str], Page]
    called: tuple[str, ...] = ()


def _worded(title: str, told: tuple[Entry, ...], *called: str) -> Topic:
    """A topic of entries."""
    of = {entry.name: entry for entry in told}
    return Topic(
        title,
        names=lambda: {entry.name: entry.summary for entry in told},
        aliases=lambda: [(spelling, entry.name) for entry in told for spelling in sorted(entries.spellings(entry))],
        page=lambda name: entries.page(of[name]),
        called=called,
    )


TOPICS = (
    _worded("Bubble", BUBBLE),
    _worded("Causes of the bubble", CAUSES + DETAILS, "causes", "bubble.causes"),
    _worded("Where a rank's time went", TIME),
    _worded("Throughput and utilisation", SPEED),
    _worded("Stages and balance", STAGES + UNEVEN),
    _worded("Communication", TRAFFIC),
    _worded("What-if", WHATIF),
    _worded("What would help", ADVICE, "findings"),
    _worded("What was found, and how surely", FOUND + TRUST),
    _worded("Gates and comparisons", GATE + WORDS),
    _worded("Findings about the data", FINDINGS, "findings", "quality.findings"),
    Topic(
        "Schedules", schedule_pages.names, lambda: schedule_pages.aliases().items(), schedule_pages.page, ("schedules",)
    ),
)

Found = list[tuple[Topic, str]]
"""Names, each with its topic."""


def explain(name: str) -> Page:
    """The page of a name or alias of any topic; of a word with several meanings, what it may be.

    What may stand after --try leads to the pages of its words, and the word for a kind of thing to a list.

    Raises UsageError with near names where nothing is called so.
    """
    wanted = normal(name)
    found = _meant(wanted)
    if found:
        return _told(found, f"{name} has several meanings:")
    if listed := [topic for topic in TOPICS if wanted in topic.called]:
        return Page(headline=f"{name}:", tables=tuple(_listed(topic, topic.names()) for topic in listed))
    if changed := _changed(wanted):
        return _told(changed, f"{name} changes several things:")
    raise UsageError(f"nothing is called {name!r}", hint=_hint(wanted))


def _meant(wanted: str) -> Found:
    return _named(wanted) or _spelled(wanted)


def _changed(wanted: str) -> Found:
    """The words of `schedule=zb-v,m=16`, whatever their values are; nothing where one of them is none."""
    if "=" not in wanted:
        return []
    parts = [part.strip("-").partition("=") for part in wanted.split(",")]
    found = [_meant(word.rstrip("-") + sign) for word, sign, _ in parts]
    return [each for meanings in found for each in meanings] if all(found) else []


def _told(found: Found, headline: str) -> Page:
    """The page of what was found, or where it is several a list of it."""
    if len(found) == 1:
        topic, known = found[0]
        return topic.page(known)
    return _choice(headline, found)


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


def _choice(headline: str, found: Found) -> Page:
    """What a word may stand for."""
    return Page(
        headline=headline,
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
