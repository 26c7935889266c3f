"""Which range holds a moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.reconstruct.ranges import NONE, owners

RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda r: (r[0], r[0] + r[1])), max_size=6)


def owned(ranges, *moments):
    """The owner of each moment, as `owners` says."""
    start, end = (np.array([r[i] for r in ranges], np.int64) for i in (0, 1))
    return owners(start, end, np.array(moments, np.int64)).tolist()


def test_the_shortest_range_owns():
    """Inner ranges win over outer ones, in whatever order the rows come."""
    assert owned([(0, 100), (40, 60), (10, 90)], 5, 20, 50, 70, 95, 101) == [0, 2, 1, 2, 0, NONE]


def test_a_moment_at_the_border_of_two_ranges_belongs_to_the_later():
    """Where a range ends and another begins, the one that begins owns, however long either is."""
    assert owned([(0, 10), (10, 50)], 10) == [1]
    assert owned([(0, 10), (10, 12)], 10) == [1]
    assert owned([(10, 50), (0, 10)], 10) == [0]


def test_the_last_moment_of_a_range_is_its_own():
    """Where nothing else begins, a range still owns the moment at which it ends."""
    assert owned([(0, 10), (20, 30)], 10, 30) == [0, 1]


def test_an_empty_range_owns_its_moment():
    """A range of no length holds the one moment it stands at, inside others too."""
    assert owned([(0, 20), (10, 10)], 9, 10, 11) == [0, 1, 0]


def test_no_ranges_no_owner():
    """Without ranges nothing is owned; without moments there is nothing to own."""
    assert owned([], 1, 2) == [NONE, NONE]
    assert owned([(0, 5)]) == []


@given(RANGES, st.lists(st.integers(-1, 30), max_size=8).map(sorted))
def test_an_owner_holds_its_moment(ranges, moments):
    """Any owner holds the moment, no strictly shorter range holds its inside, and what is held by one is owned."""
    for moment, owner in zip(moments, owned(ranges, *moments), strict=True):
        inside = [end - start for start, end in ranges if start < moment < end or start == moment]
        if owner == NONE:
            assert not inside
        else:
            start, end = ranges[owner]
            assert start <= moment <= end
            assert not inside or end - start <= min(inside)
