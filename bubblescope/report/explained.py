"""What can be explained, topic by topic: a topic is a row of `TOPICS`, and brings its names and their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from bubblescope.errors import UsageError
from bubblescope.report import schedule_pages
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["TOPICS", "Topic", "contents", "explain"]


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of thing: what each name is in half a sentence, other names for them, and the page of a name."""

    title: str
    names: Callable[[], Mapping[str, str]]
    aliases: Callable[[], Mapping[str, str]]
    page: Callable[[str], Page]


TOPICS = (Topic("Schedules", schedule_pages.names, schedule_pages.aliases, schedule_pages.page),)


def explain(name: str) -> Page:
    """The page of a name or alias of any topic; raises UsageError with near names."""
    wanted = name.strip().lower().replace("_", "-")
    for topic in TOPICS:
        known = topic.aliases().get(wanted, wanted)
        if known in topic.names():
            return topic.page(known)
    near = get_close_matches(wanted, [name for topic in TOPICS for name in (*topic.names(), *topic.aliases())], n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "bubblescope explain lists what can be explained"
    raise UsageError(f"nothing is called {name!r}", hint=hint)


def contents() -> Page:
    """All names of all topics."""
    return Page(
        headline="What bubblescope explain can explain:",
        tables=tuple(
            Table(
                title=topic.title,
                denominator="bubblescope explain NAME",
                align="ll",
                headers=("name", "what it is"),
                rows=tuple(topic.names().items()),
            )
            for topic in TOPICS
        ),
    )
