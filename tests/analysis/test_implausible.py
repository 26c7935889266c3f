"""What is said of times that cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.analysis.implausible import implausible
from bubblescope.model.trace import Doubts
from tests.building import job, timeline


def said(*found, used=(1,)):
    """Code, severity and the sum of all counts of each finding of ranks with (doubts, steps concerned)."""
    ranks = [replace(timeline(rank), doubts=doubts, doubted=steps) for rank, (doubts, steps) in enumerate(found)]
    return [(f.code, f.severity, counted(f.message)) for f in implausible(job(*ranks), set(used))]


def counted(message):
    """How many events its parts count."""
    return sum(int(part.split()[0]) for part in message.split("; ") if part[0].isdecimal())


@pytest.mark.parametrize(
    ("doubts", "steps", "severity"),
    [
        (Doubts(misplaced=3), (), "info"),
        (Doubts(misplaced=2, shortened=1), (0,), "info"),
        (Doubts(misplaced=2, shortened=1), (0, 1), "warning"),
        (Doubts(unplaced=3), (), "warning"),
        (Doubts(ahead=3), (), "info"),
    ],
)
def test_severity(doubts, steps, severity):
    """A warning, which degrades, where a used step may be concerned."""
    assert said((doubts, steps)) == [("implausible-times", severity, 3)]


def test_nothing():
    """Is said where nothing was found."""
    assert said((Doubts(), ())) == []


def test_ranks_of_one_file_are_one_finding():
    """As the helpers' ranks all are."""
    assert said((Doubts(misplaced=2), ()), (Doubts(shortened=5), (1,))) == [("implausible-times", "warning", 7)]


def test_doubled_events():
    """Are told apart, and harm nothing."""
    assert said((Doubts(doubled=12), ())) == [("doubled-events", "info", 12)]
