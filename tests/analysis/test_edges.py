"""Messages by the ranks that they join: how long their bytes moved."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bubblescope.analysis.edges import edges
from bubblescope.analysis.ranks import views
from bubblescope.model.job import ClockFit
from tests.analysis.jobs import hidden, job, rank, steps
from tests.building import loose

FIRST = [("0F0", 0, 10), ("0F1", 10, 20)]
SECOND = [("1F0", 40, 50), ("1F1", 50, 60)]
THIRD = [("2F0", 60, 70), ("2F1", 70, 80)]
CLOCK = ClockFit(method="recorded", offsets={})


def on(number, actions, messages, kernels=None, *, host="node", on_gpu=True, size=None):
    """A rank whose messages share kernels as listed, on a host of its own where told."""
    built = rank(number, actions, messages=messages, host=host)
    m = built.messages
    m = m.replace(kernel=np.arange(len(m)) if kernels is None else kernels, bytes=np.full(len(m), size or -1))
    return dataclasses.replace(built, messages=m, on_gpu=on_gpu)


def rows(*timelines, clock=CLOCK, without=(), used=(0,)):
    """(source, target, direction, transfer, wait, doubt) of each message."""
    whole = job(*timelines)
    e = edges(views(hidden(whole, *without)), clock, used)
    columns = (e.source, e.target, e.direction, e.transfer, e.wait, e.doubt)
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


SENDS = [("send 1 0F0", 12, 36), ("send 1 0F1", 40, 49)]
RECEIVES = [("recv 0 1F0", 8, 36), ("recv 0 1F1", 30, 49)]


def test_a_message_moves_once_both_halves_are_posted():
    """Posted at 12 and 8, at 40 and 30; over at 36 and 49."""
    found = rows(on(0, FIRST, SENDS), on(1, SECOND, RECEIVES))
    assert found == [(0, 1, 0, 9, 10, 0), (0, 1, 0, 24, 4, 0)]


def test_a_half_that_lingers_moves_nothing():
    """The send ends at 90 because somebody asks then."""
    found = rows(on(0, FIRST, [("send 1 0F0", 12, 90)]), on(1, SECOND, RECEIVES[:1]))
    assert found == [(0, 1, 0, 24, 4, 0)]


def test_backwards_are_a_direction_of_their_own():
    """A gradient goes from rank 1 to rank 0."""
    sends, receives = [("send 0 1B0", 70, 76)], [("recv 1 0B0", 60, 76)]
    found = rows(on(0, [*FIRST, ("0B0", 80, 90)], receives), on(1, [*SECOND, ("1B0", 60, 70)], sends))
    assert found == [(1, 0, 1, 6, 10, 0)]


def test_a_kernel_that_talks_with_two_ranks_tells_not_when_one_was_over():
    """Rank 1 receives from 0 and sends to 2 in one kernel: rank 0's own kernel tells when its message was over."""
    middle = on(1, SECOND, [("recv 0 1F1", 30, 80), ("send 2 1F0", 30, 80)], [0, 0])
    last = on(2, THIRD, [("recv 1 2F0", 25, 55)])
    found = rows(on(0, FIRST, SENDS[1:]), middle, last)
    assert found == [(0, 1, 0, 9, 41, 0), (1, 2, 0, 25, 5, 0)]


def test_where_both_kernels_talk_with_others_nothing_is_told():
    """Neither end of either kernel need be that of the message."""
    first = on(0, FIRST, [*SENDS[1:], ("recv 2 0F0", 40, 49)], [0, 0])
    middle = on(1, SECOND, [("recv 0 1F1", 30, 80), ("send 2 1F0", 30, 80)], [0, 0])
    assert (0, 1, 0, -1, -1, -1) in rows(first, middle)


def test_kernels_that_exchange_with_one_rank_tell():
    """A send and a receive with the same peer in one kernel on both sides."""
    backward = [("0B0", 90, 95)], [("1B0", 30, 35)]
    first = on(0, [*FIRST, *backward[0]], [("send 1 0F1", 40, 49), ("recv 1 0B0", 40, 49)], [0, 0])
    second = on(1, [*backward[1], *SECOND], [("recv 0 1F1", 44, 49), ("send 0 1B0", 44, 49)], [0, 0])
    assert rows(first, second) == [(0, 1, 0, 5, 0, 0), (1, 0, 1, 5, 4, 0)]


def test_between_clocks_the_shorter_kernel_tells():
    """Whatever their clocks say: 24 and 28, 9 and 19."""
    far = [(name, start + 1000, end + 1000) for name, start, end in RECEIVES]
    found = rows(on(0, FIRST, SENDS), on(1, [("1F0", 1040, 1050), ("1F1", 1050, 1060)], far, host="other"))
    assert found == [(0, 1, 0, 9, 10, 0), (0, 1, 0, 24, 4, 0)]


def test_a_send_that_was_over_first_tells_nothing():
    """It was buffered: it ended at 36, the receive began at 38."""
    found = rows(on(0, FIRST, SENDS[:1]), on(1, SECOND, [("recv 0 1F0", 38, 39)]))
    assert found == [(0, 1, 0, -1, -1, -1)]


@pytest.mark.parametrize(("off", "doubt"), [(7, 7), (np.inf, -1)])
def test_without_kernels_clocks_count_where_the_sender_was_last(off, doubt):
    """Sent at 12 by one clock and received by the other; a receive that was posted last tells by its own clock."""
    first, second = on(0, FIRST, SENDS, on_gpu=False), on(1, SECOND, RECEIVES, host="other", on_gpu=False)
    clock = loose(job(first, second), (0, 1, off)).clock
    assert (0, 1, 0, 24, 4, doubt) in rows(first, second, clock=clock)
    late = on(1, SECOND, [("recv 0 1F0", 14, 36)], host="other", on_gpu=False)
    assert (0, 1, 0, 22, 0, 0) in rows(on(0, FIRST, SENDS[:1], on_gpu=False), late, clock=clock)


@pytest.mark.parametrize("lost", [0, 1])
def test_messages_of_a_rank_without_trace_are_counted(lost):
    """Whichever half is there stands for the message."""
    found = rows(on(0, FIRST, SENDS), on(1, SECOND, RECEIVES), without=(lost,))
    assert found == [(0, 1, 0, -1, -1, -1)] * 2


def test_only_used_steps_count():
    """Step 1 is not asked for; steps go by their number, not by their row."""
    first = rank(0, [("0F0", 0, 10, 0), ("0F1", 110, 120, 1)], steps=steps(2), messages=[("send 1 0F0", 12, 36)])
    second = rank(1, [("1F0", 40, 50, 0)], steps=steps(2), messages=[("recv 0 1F0", 8, 36)])
    assert rows(first, second) == [(0, 1, 0, 24, 4, 0)]
    assert rows(first, second, used=(1,)) == []
