"""Clocks corrected."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.model.job import ClockFit

EPOCH = 1_700_000_000 * 10**9
moments = st.integers(EPOCH - 10**13, EPOCH + 10**13)


def fit(offset, ppm, origin=EPOCH):
    """A clock of rank 1; that of rank 0 neither is off nor drifts."""
    return ClockFit(method="p2p", offsets={0: 0, 1: offset}, drift_ppm={1: ppm}, origin=origin)


def test_drift_counts_from_the_origin():
    """10 ppm are 10 us a second after it and as much before it, on the job's clock."""
    times = np.array([EPOCH - 10**9, EPOCH, EPOCH + 10**9]) - 500
    assert (fit(500, 10.0).corrected(1, times) - times).tolist() == [500 - 10_000, 500, 500 + 10_000]
    assert fit(500, 10.0).corrected(0, times).tolist() == times.tolist()


@given(st.lists(moments, max_size=9), st.integers(-(10**12), 10**12), st.floats(-500, 500))
def test_what_comes_later_stays_later(times, offset, ppm):
    """A correction keeps the order of moments, and takes nothing but whole nanoseconds that the drift explains."""
    times = np.sort(np.array(times, np.int64))
    found = fit(offset, ppm).corrected(1, times)
    assert found.dtype == np.int64
    assert np.all(np.diff(found) >= 0)
    exact = [(t + offset - EPOCH) * ppm / 10**6 for t in times.tolist()]
    assert np.all(np.abs(found - times - offset - np.array(exact)) <= 1)
