"""Medians of many groups, and their limits."""

from __future__ import annotations

from math import comb, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.analysis.medians import Sorted, needed

VALUES = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=40)


def grouped(pairs):
    """The values of pairs (group, value) by group, of four groups."""
    group, value = (np.array([p[i] for p in pairs], np.int64) for i in range(2))
    return Sorted(group, value, 4)


@given(VALUES)
def test_medians_are_those_of_numpy(pairs):
    """Group by group; without values there is none."""
    found = grouped(pairs)
    for number, median in enumerate(found.median()):
        mine = [v for g, v in pairs if g == number]
        assert found.count[number] == len(mine)
        assert median == np.median(mine) if mine else np.isnan(median)


@given(VALUES, st.randoms())
def test_the_order_of_the_values_is_nothing(pairs, dice):
    """Medians and limits are the same in any order."""
    mixed = pairs[:]
    dice.shuffle(mixed)
    for one, other in zip(grouped(pairs).limits(0.1), grouped(mixed).limits(0.1), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("count", [1, 2, 7, 11, 24, 60])
@pytest.mark.parametrize("tail", [0.4, 0.05, 0.001])
def test_limits_leave_out_as_many_values_as_chance_allows(count, tail):
    """With k values under the lower limit at most k of n fair coins show heads: the largest k with under `tail`."""
    below = [sum(comb(count, i) for i in range(k + 1)) / 2**count for k in range(count // 2)]
    left_out = sum(chance <= tail for chance in below)
    low, high = Sorted(np.zeros(count, np.int64), np.arange(count), 1).limits(tail)
    expected = (left_out - 1, count - left_out) if left_out else (-inf, inf)
    assert (low[0], high[0]) == expected


@pytest.mark.parametrize("tail", [0.5, 0.3, 0.01, 0.0008, 1e-6])
def test_fewer_values_than_needed_limit_nothing(tail):
    """One more than too few is enough."""
    least = needed(tail)
    enough, less = (Sorted(np.zeros(n, np.int64), np.arange(n), 1).limits(tail) for n in (max(least, 2), least - 1))
    assert np.all(np.isfinite(enough))
    assert np.all(np.isinf(less))


def test_limits_hold_as_often_as_they_say():
    """Of 2,000 samples of 25 from a skewed distribution the median lies outside in about 2 times 2.16 %."""
    drawn = np.random.default_rng(5).exponential(size=(2000, 25))
    low, high = Sorted(np.repeat(np.arange(2000), 25), drawn.ravel(), 2000).limits(0.025)
    outside = np.mean((low > np.log(2)) | (high < np.log(2)))
    assert 0.03 < outside < 0.055


def test_a_million_values_have_limits():
    """No power of two underflows to nothing."""
    low, high = Sorted(np.zeros(10**6, np.int64), np.arange(10**6), 1).limits(0.0005)
    assert 498_000 < low[0] < 499_000
    assert 501_000 < high[0] < 502_000
