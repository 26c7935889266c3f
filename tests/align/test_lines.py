"""Pipelines by the communicator in which their ranks send to each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.lines import lined
from bubblescope.model.trace import CommArgs
from tests.building import timeline


def purposes(talk, ranks, *, group="ab", description="", early=()):
    """What the calls of each rank are for; `talk` is whom each recorded rank sends to, all in one group.

    The ranks of `early` begin with a message of which nothing is told.
    """
    built = {}
    for rank, peers in talk.items():
        rows = [(f"send {peer}", 10 * i, 10 * i + 5) for i, peer in enumerate(peers)]
        made = timeline(rank, actions=[("?F0", 100, 110)], messages=rows)
        calls = (CommArgs(op="send", group=group, ranks=ranks, description=description),)
        calls += (CommArgs(op="send_recv"),) * (rank in early)
        asked = [len(calls) - 1, *[0] * (len(rows) - 1)]
        built[rank] = replace(made, calls=calls, messages=made.messages.replace(call=asked))
    return {rank: t.calls[0].purpose for rank, t in lined(built).items()}


def test_neighbours_in_a_group_are_a_pipeline():
    """Whichever global ranks they are."""
    assert purposes({3: [7], 7: [3, 11], 11: [7]}, (3, 7, 11)) == {3: "pp", 7: "pp", 11: "pp"}


def test_ranks_that_were_not_recorded():
    """What the others say of them is enough."""
    assert purposes({7: [3, 11]}, (3, 7, 11, 15)) == {7: "pp"}


def test_the_last_may_send_to_the_first():
    """Where chunks go round."""
    assert purposes({0: [1, 2], 1: [0, 2], 2: [1, 0]}, (0, 1, 2)) == {0: "pp", 1: "pp", 2: "pp"}


def test_a_message_from_before_the_recording():
    """Its kernel alone is there, and says nothing of groups."""
    assert purposes({0: [1, 1], 1: [0]}, (0, 1), early={0}) == {0: "pp", 1: "pp"}


@pytest.mark.parametrize(
    ("talk", "ranks"),
    [
        ({0: [1], 1: [0], 2: [3], 3: [2]}, (0, 1, 2, 3)),
        ({0: [2], 2: [0], 1: [3], 3: [1]}, (0, 1, 2, 3)),
        ({0: [1]}, (0, 1)),
        ({0: [1]}, ()),
        ({0: [1, 9], 1: [0]}, (0, 1)),
    ],
    ids=["two pipelines in it", "neighbours stand apart", "a pair of which one was seen", "no members", "a stranger"],
)
def test_other_groups(talk, ranks):
    """Say nothing."""
    assert set(purposes(talk, ranks).values()) == {""}


def test_a_group_that_is_described():
    """Keeps its description."""
    assert purposes({0: [1], 1: [0]}, (0, 1), description="default_pg") == {0: "", 1: ""}
