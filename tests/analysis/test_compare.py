"""Members of a group against the others, in pairs."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.analysis.compare import LEVEL, above
from bubblescope.model.chance import holm


def test_the_difference_is_to_the_median_of_the_others():
    """Of four the last is e times as long as the middle of the rest, whatever the third does."""
    times = np.exp(np.array([[0.0, 0.1], [0.0, 0.1], [5.0, 5.1], [1.0, 1.1]]))
    assert [round(d.mean, 9) for d in above(times, against="median")] == [-1.0, -1.0, 5.0, 1.0]


def test_the_difference_is_to_the_mean_of_the_others():
    """12 against the mean of 3 and 9."""
    assert above(np.array([[3.0] * 2, [9.0] * 2, [12.0] * 2]), against="mean")[2].mean == pytest.approx(np.log(2))


def test_exactly_equal_differences_are_sure():
    """A difference that is the same in each pair is no chance; no difference is nothing but chance."""
    assert [d.chance for d in above(np.array([[1.0] * 3, [2.0] * 3]), against="median")] == [1.0, 0.0]


def test_pairs_that_lack_a_member_do_not_count():
    """Of three pairs two have both members."""
    times = np.array([[1.0, 1.0, np.nan], [3.0, 3.0, 9.0]])
    assert above(times, against="median")[1].mean == pytest.approx(np.log(3))
    assert [d.chance for d in above(times[:, 1:], against="median")] == [1.0, 1.0]


@pytest.mark.parametrize("against", ["median", "mean"])
@pytest.mark.parametrize("members", [2, 3, 8])
def test_equal_members_are_rarely_told_apart(against, members):
    """Of 400 jobs in which all take as long, 4 are expected to name someone; 12 would come once in a thousand."""
    dice = np.random.default_rng(members)
    jobs = (dice.normal(10, 0.3, (members, 6)) for _ in range(400))
    assert sum(min(holm([d.chance for d in above(times, against=against)])) < LEVEL for times in jobs) < 12
