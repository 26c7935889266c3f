"""Messages that only lead up to another."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.announced import announcements
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.units import NO_HOST, Units


def leading(text, *, streams=None, calls=None, forwards=4, work=True):
    """The places of the messages that announce others; `text` has an `m` for each, an `F` for a kernel of compute.

    Letters stand at 10, 20 and so on. `streams` and `calls` are those of the messages: one stream, no name if absent.
    """
    host = 10 * np.arange(1, len(text) + 1)
    posted = host[[letter == "m" for letter in text]]
    computes = host[[letter != "m" for letter in text]]
    count = len(posted)
    zeros = np.zeros(count)
    units = Units(posted, posted, posted if work else np.full(count, NO_HOST), zeros, zeros, zeros, streams or zeros)
    calls = calls or [CommArgs(op="send_recv")] * count
    table = tuple(dict.fromkeys(calls))
    talk = Talk(units, table, np.array([table.index(call) for call in calls], np.int64), np.arange(count))
    return np.flatnonzero(announcements(talk, computes, forwards)).tolist()


FIRST_STAGE = "F" + "mmF" * 8


def test_the_first_of_each_pair_announces_the_second():
    """Two messages for each output and each input of a first stage: eight of four micro-batches."""
    assert leading(FIRST_STAGE) == list(range(0, 16, 2))


def test_three_for_each():
    """Two before each tensor lead up to it."""
    assert leading("F" + "mmmF" * 8) == [i for i in range(24) if i % 3 < 2]


def test_an_output_and_an_input_between_two_actions_are_no_pair():
    """A first stage in 1f1b sends and receives between its actions, and begins with a send alone."""
    assert leading("FmFmmFmmFmmFmF", forwards=4) == []


def test_one_microbatch_a_step_makes_no_pairs():
    """A send and a receive for each forward are what a first stage has."""
    assert leading("FmmFFmmFFmmFFmmF", forwards=4) == []
    assert leading("FmmmmFFmmmmFFmmmmFFmmmmF", forwards=4)


def test_streams_are_looked_at_one_by_one():
    """Sends on one stream and receives on another, each by twos, between the same two actions."""
    assert leading("FmmmmF" * 5, streams=[1, 1, 2, 2] * 5) == list(range(0, 20, 2))
    assert leading("FmmmF" * 5, streams=[1, 1, 2] * 5) == []


def test_peers_are_looked_at_one_by_one():
    """A block sends to two neighbours at once; neither announces the other."""
    calls = [CommArgs(op="send", dst=1), CommArgs(op="send", dst=3)] * 8
    assert leading(FIRST_STAGE, calls=calls) == []


@pytest.mark.parametrize(
    ("calls", "work"),
    [([CommArgs(op="send", elements=64, dtype="float")] * 16, True), (None, False)],
    ids=["sizes told", "no launch"],
)
def test_nothing_is_told_elsewhere(calls, work):
    """Sizes say for themselves, and what nobody launched has no place among the actions."""
    assert leading(FIRST_STAGE, calls=calls, work=work) == []
