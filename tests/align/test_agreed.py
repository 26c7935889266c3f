"""What a group is for, told by one member for all."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.align.agreed import agreed
from bubblescope.model.trace import CommArgs
from tests.building import timeline


def purposes(*calls):
    """The purpose of one call of each rank; a call is (purpose, ranks), or (purpose, ranks, operation)."""
    built = {
        rank: replace(timeline(rank), calls=(CommArgs(op=(*op, "all_reduce")[0], purpose=told, ranks=ranks),))
        for rank, (told, ranks, *op) in enumerate(calls)
    }
    return [t.calls[0].purpose for t in agreed(built).values()]


def test_one_member_tells_for_all():
    """Of the same group and operation."""
    assert purposes(("tp", (0, 1)), ("", (0, 1))) == ["tp", "tp"]


def test_other_groups_and_operations():
    """Are not meant; nor is a group whose members nobody knows."""
    assert purposes(("tp", (0, 1)), ("", (1, 2))) == ["tp", ""]
    assert purposes(("tp", (0, 1)), ("", (0, 1), "all_gather")) == ["tp", ""]
    assert purposes(("tp", ()), ("", ())) == ["tp", ""]


def test_members_that_disagree():
    """Tell nothing."""
    assert purposes(("tp", (0, 1, 2)), ("dp", (0, 1, 2)), ("", (0, 1, 2))) == ["tp", "dp", ""]
