"""One clock for all ranks."""

from __future__ import annotations

from bubblescope.align.clocks import fit
from tests.building import timeline


def test_absolute_times_share_a_clock():
    """Times that count from the epoch are taken as they are; nothing bounds their error."""
    found = fit({0: timeline(0), 3: timeline(3)})
    assert (found.method, found.offsets, found.error) == ("recorded", {0: 0, 3: 0}, None)


def test_one_relative_clock_spoils_it():
    """Where one file does not say when it began, ranks cannot be compared, and the fit says so."""
    found = fit({0: timeline(0), 1: timeline(1, absolute=False)})
    assert (found.method, found.offsets) == ("none", {0: 0, 1: 0})
