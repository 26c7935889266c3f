"""Lines between lower and upper bounds, and the tightest bounds of several clocks."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.align.bounds import STEEPEST, Band, Side, agreeing, closed, equalized, loosened, wobble

GRID = np.linspace(-STEEPEST, STEEPEST, 2001)
INF = np.inf


def points(seed: int, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Moments in order over 20 s, and values that spread by a millisecond around a slope."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(-1e10, 1e10, count))
    return at, 2e-5 * at - rng.exponential(1e6, count)


def band(seed: int) -> Band:
    """Lines between points below and points above, 50 us apart and more."""
    at, value = points(seed)
    later, above = points(seed + 100)
    return Band.between(Side.of(at, value), Side.of(later, above - 4e-5 * later - 50_000))


def feasible(found: Band) -> np.ndarray:
    """The slopes of the grid that leave room."""
    return GRID[found.below.top(GRID) + found.above.top(-GRID) <= 0]


@pytest.mark.parametrize("seed", range(10))
def test_the_hull_says_what_all_points_say(seed):
    """For every slope and moment the lowest line over the hull is the lowest one over all points."""
    at, value = points(seed)
    side = Side.of(at, value)
    assert len(side.at) < 50
    for slope in GRID[::100]:
        for moment in (-1e10, 0.0, 3e9):
            assert side.top(slope, moment) == pytest.approx(np.max(value - slope * (at - moment)))


def test_an_empty_side_bounds_nothing():
    """Without points any line is high enough."""
    assert Side.of(np.array([]), np.array([])).top(0.0) == -INF


def test_points_of_one_moment():
    """Of several points at one moment the highest counts."""
    side = Side.of(np.array([0.0, 0.0, 0.0, 5.0]), np.array([1.0, 3.0, 2.0, 3.0]))
    assert side.at.tolist() == [0.0, 5.0]
    assert side.value.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("seed", range(10))
def test_extreme_slopes(seed):
    """The flattest and the steepest line between two hulls are those that a fine grid finds."""
    found = band(seed)
    fits = feasible(found)
    assert found.slopes == pytest.approx((fits[0], fits[-1]), abs=GRID[1] - GRID[0])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("late", [False, True])
def test_reach(seed, late):
    """At the ends no line of the grid lies outside, and some come near."""
    found, moment = band(seed), 1e10 if late else -1e10
    fits = feasible(found)
    low, high = found.reach(moment, late=late)
    lowest, highest = found.below.top(fits, moment).min(), -found.above.top(-fits, moment).min()
    assert low <= lowest <= low + 2_000
    assert high - 2_000 <= highest <= high


@pytest.mark.parametrize("seed", range(10))
def test_the_middle_keeps_farthest_away(seed):
    """No slope of the grid leaves more room than the middle one."""
    found = band(seed)
    room = -(found.below.top(GRID) + found.above.top(-GRID))
    low, high = found.range(found.middle, 0.0)
    assert high - low >= room.max() - 1e-3


def test_contradictions_give_way_together():
    """Where the lower bound is 10 above the upper one, both give way by 5."""
    found = Band.between(Side(np.array([0.0]), np.array([10.0])), Side(np.array([0.0]), np.array([0.0])))
    assert found.slack == 5
    assert found.range(0.0, 0.0) == (5, 5)


def test_as_few_as_possible_go():
    """One lower bound above nine upper ones goes, with the tightest of the others on either side."""
    at = np.arange(10.0)
    below, above = np.where(at == 4, 50.0, -at), 10 + at
    low, high = agreeing((at, below), (at, above))
    assert np.flatnonzero(~low).tolist() == [0, 4]
    assert np.flatnonzero(~high).tolist() == [0]


def test_nothing_goes_without_need():
    """Bounds that agree stay."""
    at = np.arange(10.0)
    low, high = agreeing((at, -at), (at, 1 + at))
    assert low.all()
    assert high.all()


def test_the_shortest_way():
    """What bounds two clocks through a third counts if it is tighter."""
    most = np.array([[0, 1, 9], [1, 0, 2], [INF, 5, 0]], dtype=float)
    assert closed(most).tolist() == [[0, 1, 3], [1, 0, 2], [6, 5, 0]]


def test_a_loop_that_contradicts_itself():
    """A loop of three that is 6 short gives way by 2 at each."""
    most = np.array([[0, -1, INF], [INF, 0, -2], [-3, INF, 0]])
    found, slack = loosened(most)
    assert slack == pytest.approx(2, abs=1)
    assert np.all(np.diagonal(found) >= 0)


def test_a_loop_shares_its_room():
    """Round a loop of three with room for 9000, each way takes 3000: the clocks agree."""
    most = np.array([[0, 3000, INF], [INF, 0, 3000], [3000, INF, 0]])
    assert np.abs(equalized(most)).max() <= 2


def test_without_a_loop_nothing_is_drawn_tighter():
    """What is bounded on one side only has no room to share."""
    most = np.array([[0, 7.0], [INF, 0]])
    assert equalized(most).tolist() == most.tolist()


def test_tight_all_the_time():
    """Bounds of which each quarter has one on the line leave its slope certain, whatever the others are."""
    at = np.arange(40.0)
    value = 3 * at - 50 * (at % 5)
    assert wobble(((at, value), (np.array([]), np.array([]))), 3.0) == 0


def test_tight_now_and_then():
    """Where a quarter's tightest bound is 13 off over 39, the slope may be wrong by a third."""
    at = np.arange(40.0)
    sides = (at, np.where(at < 30, 0.0, -13.0)), (at, 0 * at)
    assert wobble(sides, 0.0) == pytest.approx(1 / 3)


def test_a_quarter_without_bounds():
    """Nothing is certain of a slope where bounds are missing for a quarter of the time."""
    at = np.array([0.0, 1, 2, 3, 100])
    assert wobble(((at, 0 * at), (at, 0 * at)), 0.0) == INF


def test_nothing_is_told_where_all_bounds_were_set_aside():
    """A pair of clocks of which every bound contradicts the rest has none left."""
    none = np.array([])
    assert wobble(((none, none), (none, none)), 0.0) == INF
