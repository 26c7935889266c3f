"""`bubblescope explain`: a page for every name, and help for names that are none.

After a wanted change write the golden anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/cli/test_explain.py`,
and read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bubblescope.report import explained
from bubblescope.report.explained import Topic
from bubblescope.report.pages import Page
from bubblescope.schedules.registry import FAMILIES

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS")


@pytest.mark.parametrize("name", ["1f1b", "looped-bfs", "gap", "imbalance", "missing-ranks", "host"])
def test_page_is_the_golden_one(bubblescope, name):
    """The page is what was last looked at and found good; nothing is said beside it."""
    seen = bubblescope("explain", name)
    assert (seen.code, seen.err) == (0, "")
    path = GOLDEN / f"explain-{name}.txt"
    if UPDATE:
        path.write_text(seen.out, "utf-8")
    assert seen.out == path.read_text("utf-8")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_schedule_is_explained(bubblescope, family):
    """Definition, order, formula, memory, source and a picture, under each of its names."""
    seen = bubblescope("explain", family.name)
    text = " ".join(seen.out.split())
    assert seen.code == 0
    for part in (family.summary, family.rule, family.source, family.memory.text, family.memory.weights_text):
        assert " ".join(part.split()) in text
    assert "idle / (idle + m " in text
    assert "rank 0 |" in text
    for alias in family.aliases:
        assert alias in text
        told = bubblescope("explain", alias).out
        assert told == seen.out or (f"{alias} has several meanings" in told and family.name in told)


def test_closed_forms_have_an_example(bubblescope):
    """1f1b with 4 ranks and 8 micro-batches: idle for 9 of 33, by the formula and by simulation."""
    rows = [line.split() for line in bubblescope("explain", "1f1b").out.splitlines() if line.startswith("  D")]
    assert [row[0] for row in rows] == ["D4", "D1", "D2", "D3"]
    assert [row[-2:] for row in rows] == [["9", "9"], ["27.3%", "27.3%"], ["37.5%", "37.5%"], ["27.3%", "27.3%"]]


def test_impossible_shapes_are_told(bubblescope):
    """What a schedule cannot have is found by trying, and told without the shape that was tried."""
    text = " ".join(bubblescope("explain", "chimera").out.split())
    assert "v = 1 where none is stated; chimera has one chunk a rank each way; chimera needs p and m even " in text


def test_names_are_forgiving(bubblescope):
    """Case and underscores do not matter."""
    assert bubblescope("explain", "ZB_H1").out == bubblescope("explain", "zb-h1").out


def test_without_a_name_all_are_listed(bubblescope):
    """Everything with its summary, under the heading of its topic."""
    seen = bubblescope("explain")
    text = " ".join(seen.out.split())
    assert seen.code == 0
    for topic in explained.TOPICS:
        assert topic.title in text
        assert all(f"{name} {' '.join(summary.split())}" in text for name, summary in topic.names().items())
    assert all(f"{family.name} {' '.join(family.summary.split())}" in text for family in FAMILIES)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("zbh3", "did you mean zbh2, zbh1"),
        ("1f2b", "did you mean 1f1b"),
        ("xyz", "bubblescope explain lists what can be explained"),
        ("", "bubblescope explain lists what can be explained"),
    ],
)
def test_unknown_names(bubblescope, name, hint):
    """They end with 2 and near names."""
    seen = bubblescope("explain", name)
    assert (seen.code, seen.out) == (2, "")
    assert f"error: nothing is called {name!r}" in seen.err
    assert hint in seen.err


def test_a_topic_is_one_more_row(bubblescope, monkeypatch):
    """Another kind of thing is explained, listed and found by near names as schedules are."""
    advice = Topic(
        title="Advice",
        names=lambda: {"more-chunks": "an interleaved schedule"},
        aliases=lambda: [("a1", "more-chunks")],
        page=lambda name: Page(headline=f"{name} is advice."),
    )
    monkeypatch.setattr(explained, "TOPICS", (*explained.TOPICS, advice))
    assert bubblescope("explain", "more_chunks").out == bubblescope("explain", "A1").out == "more-chunks is advice.\n"
    assert bubblescope("explain", "1f1b").code == 0
    assert "Advice" in bubblescope("explain").out
    assert "did you mean more-chunks" in bubblescope("explain", "more-chunk").err


@pytest.mark.parametrize("name", ["gap", "bubble.gap", "GAP"])
def test_a_key_of_the_report_is_a_name(bubblescope, name):
    """By itself, at the end of its path, and in any case."""
    seen = bubblescope("explain", name)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("gap: measured - formula, ")


def test_a_word_with_several_meanings_lists_them(bubblescope):
    """That is an answer, not an error; each can be asked for by the name listed."""
    seen = bubblescope("explain", "host")
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("host has several meanings:")
    for name in ("causes.host", "ranks.host", "outside"):
        assert f"\n  {name} " in seen.out
        assert bubblescope("explain", name).out.startswith(f"{name}: ")


def test_hostile_names_are_shown_harmless(bubblescope):
    """A name that is none cannot command the terminal."""
    seen = bubblescope("explain", "\x1b[31m")
    assert seen.code == 2
    assert "\x1b" not in seen.err
