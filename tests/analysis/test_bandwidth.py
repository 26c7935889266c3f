"""Bandwidths as nccl-tests define them."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.analysis.bandwidth import bandwidths, bus_factor

SECOND = 10**9
FACTORS = {
    "all_reduce": 2 * 3 / 4,
    "all_gather": 3 / 4,
    "reduce_scatter": 3 / 4,
    "all_to_all": 3 / 4,
    "broadcast": 1,
    "reduce": 1,
    "send": 1,
    "recv": 1,
    "send_recv": 1,
}


def of(op, *calls):
    """Bandwidths of (members, bytes, seconds); an unknown time is negative."""
    members, size, seconds = (np.array(column) for column in zip(*calls, strict=True))
    return bandwidths(op, members, size, (seconds * SECOND).astype(np.int64))


@pytest.mark.parametrize(("op", "factor"), FACTORS.items())
def test_each_operation_has_its_factor(op, factor):
    """Of 4 ranks that move 800 bytes in 2 seconds the bus carries 400 bytes a second times the factor."""
    assert of(op, (4, 800, 2)) == (400, 400 * factor)
    assert bus_factor(op, np.array([4])).tolist() == [factor]


@pytest.mark.parametrize("op", ["gather", "scatter", "barrier", "unknown"])
def test_other_operations_have_no_bandwidth(op):
    """Nobody agrees what their bytes are."""
    assert of(op, (4, 800, 2)) == (None, None)


def test_groups_of_several_sizes_count_call_by_call():
    """100 bytes among 2 and 300 among 4, a second each: 100 times 1 and 300 times 1.5, over 2."""
    assert of("all_reduce", (2, 100, 1), (4, 300, 1)) == (200, (100 + 450) / 2)


@pytest.mark.parametrize("call", [(2, -1, 5), (2, 700, -5), (1, 700, 5)], ids=["bytes", "transfer", "alone"])
def test_calls_that_tell_nothing_are_left_out(call):
    """Neither their bytes nor their time counts, in whatever place they stand."""
    assert of("all_gather", (2, 100, 1), call) == of("all_gather", call, (2, 100, 1)) == (100, 50)
    assert of("all_gather", call) == (None, None)


def test_an_unknown_number_of_ranks_leaves_the_bus_unknown():
    """But for operations whose factor is 1 whatever the number."""
    assert of("all_reduce", (-1, 100, 1)) == (100, None)
    assert of("all_reduce", (-1, 100, 1), (2, 300, 1)) == (200, 300)
    assert of("broadcast", (-1, 100, 1)) == (100, 100)


def test_no_time_is_no_bandwidth():
    """Bytes that moved in no time are not infinitely fast."""
    assert of("send", (2, 100, 0)) == (None, None)
