"""What is said of times that cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.analysis.implausible import implausible
from bubblescope.model.trace import Doubts
from tests.building import job, timeline


def said(*found, used=(1,)):
    """Code, severity and first word of each finding of ranks with (doubts, steps concerned); whether any is used."""
    ranks = [replace(timeline(rank), doubts=doubts, doubted=steps) for rank, (doubts, steps) in enumerate(found)]
    findings, touched = implausible(job(*ranks), set(used))
    return [(f.code, f.severity, f.message.split()[0]) for f in findings], touched


@pytest.mark.parametrize(
    ("doubts", "steps", "severity", "touched"),
    [
        (Doubts(misplaced=3), (), "info", False),
        (Doubts(misplaced=2, shortened=1), (0,), "info", False),
        (Doubts(misplaced=2, shortened=1), (0, 1), "warning", True),
        (Doubts(unplaced=3), (), "warning", False),
        (Doubts(ahead=3), (), "info", False),
    ],
)
def test_severity(doubts, steps, severity, touched):
    """A warning where a used step may be concerned; a doubt about the verdict where one is."""
    assert said((doubts, steps)) == ([("implausible-times", severity, "3")], touched)


def test_nothing():
    """Is said where nothing was found."""
    assert said((Doubts(), ())) == ([], False)


def test_ranks_of_one_file_are_one_finding():
    """As the helpers' ranks all are."""
    assert said((Doubts(misplaced=2), ()), (Doubts(shortened=5), (1,))) == (
        [("implausible-times", "warning", "7")],
        True,
    )


def test_doubled_events():
    """Are told apart, and harm nothing."""
    assert said((Doubts(doubled=12), ())) == ([("doubled-events", "info", "12")], False)
