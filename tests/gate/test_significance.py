"""What of a difference is noise, against calculations by hand and against scipy's published example."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from bubblescope.gate.significance import FALSE_ALARM, Difference, difference
from tests.gate.runs import metric


def test_welch_by_hand():
    """Means 20 and 22 with spreads 1 and 3 over 5 and 10 steps: e = sqrt(1/5 + 9/10), freedom by Satterthwaite."""
    found = difference(metric("imbalance", 22.0, 3.0, 10), metric("imbalance", 20.0, 1.0, 5))
    assert found.value == 2.0
    assert found.error == pytest.approx(sqrt(0.2 + 0.9))
    assert found.freedom == pytest.approx(1.1**2 / (0.2**2 / 4 + 0.9**2 / 9))
    # Tables of Student's t: one-sided 0.01 with 12.1 degrees of freedom is 2.678.
    assert found.noise() == pytest.approx(2.678 * sqrt(1.1), rel=2e-3)


def test_chance_of_a_known_sample():
    """Two samples of seven and five, whose p of Welch's test is 0.0286 two-sided by the formulas above."""
    one, two = [19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3], [28.2, 26.6, 20.1, 23.3, 25.2]
    found = difference(
        metric("imbalance", float(np.mean(two)), float(np.std(two, ddof=1)), 5),
        metric("imbalance", float(np.mean(one)), float(np.std(one, ddof=1)), 7),
    )
    rng = np.random.default_rng(0)
    t = found.value / found.error
    # Student's t with that freedom is a normal over the root of a chi-square over its freedom.
    drawn = rng.standard_normal(400_000) / np.sqrt(rng.chisquare(found.freedom, 400_000) / found.freedom)
    assert found.chance(1) == pytest.approx(float(np.mean(drawn > t)), rel=0.05)
    assert found.chance(-1) == pytest.approx(1 - found.chance(1))


def test_false_alarms_are_as_rare_as_they_should_be():
    """Of equal samples as few as two steps, one in a hundred changes is over the noise, or fewer."""
    rng = np.random.default_rng(1)
    for steps in (2, 3, 8):
        alarms = 0
        for _ in range(4000):
            one, two = rng.normal(0.3, 0.01, (2, steps))
            found = difference(*(metric("bubble", x.mean(), x.std(ddof=1), steps) for x in (one, two)))
            alarms += found.value > found.noise()
        assert alarms / 4000 <= FALSE_ALARM * 1.4


def test_clocks_count_as_noise():
    """What the clocks leave open of both runs stands on top, and no number of steps removes it."""
    found = difference(metric("bubble", 0.3, 0.0, 50, error=0.01), metric("bubble", 0.29, 0.0, 50, error=0.005))
    assert found.noise() == pytest.approx(0.015)
    assert found.chance(1) == 1.0


def test_no_spread_is_no_noise():
    """Runs whose steps are all alike differ for sure, or not at all."""
    assert difference(metric("bubble", 0.3, 0.0), metric("bubble", 0.29, 0.0)).noise() == 0
    assert difference(metric("bubble", 0.3, 0.0), metric("bubble", 0.29, 0.0)).chance(1) == 0
    assert difference(metric("bubble", 0.3, 0.0), metric("bubble", 0.3, 0.0)).chance(1) == 1


def test_one_step_tells_nothing():
    """Neither noise nor chance is known."""
    found = difference(metric("bubble", 0.4, None, 1), metric("bubble", 0.3))
    assert (found.noise(), found.chance(1)) == (None, None)
    assert found == Difference(found.value, None, None)


def test_tiny_spreads_do_not_vanish():
    """Squares of variances may be nothing to a computer where the variances are not."""
    found = difference(metric("bubble", 0.3, 1e-170), metric("bubble", 0.29, 1e-170))
    assert found.noise() is not None
