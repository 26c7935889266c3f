"""Arithmetic of time, against sets of single nanoseconds on short axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bubblescope.model.spans import Spans, lengths_by_layer, union_by_owner

HUGE = 2**62
pairs = st.lists(st.tuples(st.integers(-12, 12), st.integers(-12, 12)), max_size=8)
"""Intervals as they come: unsorted, overlapping, touching, empty, backwards."""
point = st.integers(-14, 14)
origin = st.sampled_from([0, HUGE - 100, -HUGE, HUGE])


def spans(intervals, at: int = 0) -> Spans:
    """The union of intervals on an axis that begins at `at`."""
    return Spans.of(
        np.array([lo + at for lo, _ in intervals], np.int64), np.array([hi + at for _, hi in intervals], np.int64)
    )


def instants(intervals) -> set[int]:
    """The nanoseconds that intervals cover, one by one."""
    return {instant for lo, hi in intervals for instant in range(lo, hi)}


def seen(found: Spans, at: int = 0) -> set[int]:
    """The same of a result, once its normal form and type are checked: so equal sets are equal results."""
    found.self_check()
    assert found.start.dtype == found.end.dtype == np.int64
    return instants(zip((found.start - at).tolist(), (found.end - at).tolist(), strict=True))


@settings(deadline=None)
@given(pairs, origin)
@example([(0, 1), (1, 2), (2, 3)], 0)
@example([(0, 9), (1, 2)], HUGE)
@example([], 0)
def test_union(intervals, at):
    """A union covers each instant of its intervals once, touching ones joined, wherever the axis begins."""
    union = spans(intervals, at)
    covered = instants(intervals)
    assert seen(union, at) == covered
    assert union.total == len(covered)
    assert len(union) == sum(instant - 1 not in covered for instant in covered)


@settings(deadline=None)
@given(pairs, st.randoms(use_true_random=False))
def test_union_forgets_order_and_repetition(intervals, random):
    """Shuffled or repeated intervals give the same union, and the union of a union is itself."""
    shuffled = intervals * 2
    random.shuffle(shuffled)
    union = spans(intervals)
    again = Spans.of(union.start, union.end)
    for other in (spans(shuffled), again):
        assert other.start.tolist() == union.start.tolist()
        assert other.end.tolist() == union.end.tolist()


@settings(deadline=None)
@given(st.lists(pairs, max_size=4))
def test_join(parts):
    """The union of sets is the union of all their intervals."""
    assert seen(Spans.join(spans(part) for part in parts)) == instants(pair for part in parts for pair in part)


@settings(deadline=None)
@given(pairs, point, point, origin)
@example([(0, 10)], 5, 5, 0)
@example([(0, 10)], 7, 3, 0)
def test_clip_and_gaps(intervals, lo, hi, at):
    """What is covered in a window and what is not share it exactly; a window that ends before it begins has neither."""
    union, covered, window = spans(intervals, at), instants(intervals), set(range(lo, hi))
    inside, gaps = union.clip(lo + at, hi + at), union.gaps(lo + at, hi + at)
    assert seen(inside, at) == covered & window
    assert seen(gaps, at) == window - covered
    assert inside.total + gaps.total == len(window)


@settings(deadline=None)
@given(pairs, origin)
def test_covers(intervals, at):
    """An instant is covered from a start, itself included, to an end, itself excluded."""
    points = np.arange(-14, 15)
    covered = instants(intervals)
    assert spans(intervals, at).covers(points + at).tolist() == [instant in covered for instant in points.tolist()]


@settings(deadline=None)
@given(pairs, st.lists(st.tuples(point, st.integers(0, 20))), origin)
@example([], [(0, 5)], 0)
def test_within(intervals, stretches, at):
    """Of a stretch as many nanoseconds are covered as it has instants that are."""
    start, length = np.array(stretches, np.int64).reshape(-1, 2).T
    covered = instants(intervals)
    expected = [len(covered & {*range(begin, begin + took)}) for begin, took in stretches]
    assert spans(intervals, at).within(start + at, start + length + at).tolist() == expected


@settings(deadline=None)
@given(pairs, pairs, origin)
@example([(0, 2)], [(2, 4)], 0)
@example([(0, 2)], [], 0)
@example([], [(0, 2)], 0)
def test_minus_and_common(here, there, at):
    """What two sets share and what one has alone are those of the instants, and add up to it."""
    one, two = spans(here, at), spans(there, at)
    alone, shared = one.minus(two), one.common(two)
    assert seen(alone, at) == instants(here) - instants(there)
    assert seen(shared, at) == instants(here) & instants(there)
    assert alone.total + shared.total == one.total
    assert two.common(one).start.tolist() == shared.start.tolist()


@settings(deadline=None)
@given(pairs, st.sampled_from([-HUGE, -1, 0, 7, HUGE]))
def test_shifted(intervals, offset):
    """A shifted set lies on the other clock and keeps its length."""
    moved = spans(intervals).moved(lambda times: times + offset)
    assert seen(moved, offset) == instants(intervals)


@settings(deadline=None)
@given(pairs, st.sampled_from([-0.4, -1e-3, 1e-3, 0.4]))
@example([(6, 7)], -0.4)
@example([(4, 6), (7, 9)], -0.4)
def test_a_clock_that_runs_slow_leaves_a_sound_set(intervals, drift):
    """Moments that fall together on the other clock leave no empty interval, and none that touches the next."""

    def move(times):
        return times + np.rint(times * drift).astype(np.int64)

    one = spans(intervals)
    moved = one.moved(move)
    assert seen(moved) == instants(zip(move(one.start).tolist(), move(one.end).tolist(), strict=True))


def test_empty():
    """The empty set has no time and is neutral everywhere."""
    nothing, some = Spans.empty(), spans([(1, 4), (6, 8)])
    assert len(nothing) == nothing.total == 0
    assert seen(Spans.join([])) == seen(nothing.clip(0, 9)) == seen(nothing.minus(some)) == seen(some.common(nothing))
    assert seen(some.minus(nothing)) == seen(some) == seen(Spans.join([nothing, some]))
    assert seen(nothing.gaps(2, 5)) == {2, 3, 4}
    assert nothing.covers(np.array([0, 1])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("start", "end"),
    [([0, 1], [2, 3]), ([0, 2], [2, 3]), ([5, 0], [6, 1]), ([3], [3]), ([4], [3])],
    ids=["overlapping", "touching", "unsorted", "empty", "backwards"],
)
def test_self_check_refuses(start, end):
    """A set that is not in its normal form does not pass."""
    with pytest.raises(ValueError, match="overlap, touch, or are empty"):
        Spans(np.array(start), np.array(end)).self_check()


def test_whole_axis():
    """An interval from one end of the axis of nanoseconds to the other is measured exactly."""
    union = Spans.of([-HUGE, 5, HUGE - 3], [-HUGE + 10, HUGE - 1, HUGE])
    assert union.start.tolist() == [-HUGE, 5]
    assert union.end.tolist() == [-HUGE + 10, HUGE]
    assert union.total == HUGE + 5


owned = st.lists(st.tuples(st.integers(-3, 3), st.integers(-12, 12), st.integers(-12, 12)), max_size=12)


@settings(deadline=None)
@given(owned, st.sampled_from([1, 2**40, 2**57]), origin)
@example([(1, -12, 12), (0, 0, 12), (1, 3, 4)], 2**57, 0)
def test_union_by_owner(rows, unit, at):
    """Each owner has its own union, sorted by owner and start, also where the axis is too long to lift owners."""
    at = 0 if unit > 1 else at
    owner, start, end = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    owners, starts, ends = union_by_owner(owner, start * unit + at, end * unit + at)
    found = list(zip(owners.tolist(), starts.tolist(), ends.tolist(), strict=True))
    expected = []
    for who in sorted({row[0] for row in rows}):
        union = spans([(lo, hi) for name, lo, hi in rows if name == who])
        expected += [
            (who, lo * unit + at, hi * unit + at)
            for lo, hi in zip(union.start.tolist(), union.end.tolist(), strict=True)
        ]
    assert found == expected


@pytest.mark.parametrize("reach", [10**6, 2**60], ids=["lifted", "too long to lift"])
def test_many_owners(reach):
    """A long interval of one of a thousand owners swallows its own successors and no one else's."""
    count = 1000
    owner = np.repeat(np.arange(count), 3)
    start = np.tile(np.array([0, 10, 40]), count)
    end = np.tile(np.array([5, 20, 50]), count)
    end[0:-1:6] = reach  # the first interval of every other owner lasts past all others
    owners, starts, ends = union_by_owner(owner[::-1], start[::-1], end[::-1])
    for who in range(count):
        mine = owners == who
        expected = ([0], [reach]) if who % 2 == 0 else ([0, 10, 40], [5, 20, 50])
        assert (starts[mine].tolist(), ends[mine].tolist()) == expected


@settings(deadline=None)
@given(st.lists(pairs, max_size=4), point, st.integers(0, 20), origin)
@example([[(0, 9)], [(3, 12)]], 1, 9, HUGE - 100)
def test_lengths_by_layer(layers, lo, width, at):
    """Each instant of a window goes to the first layer that covers it or to the rest; nothing is lost or doubled."""
    lengths = lengths_by_layer([spans(layer, at) for layer in layers], lo + at, lo + width + at)
    free, expected = set(range(lo, lo + width)), []
    for layer in layers:
        expected.append(len(free & instants(layer)))
        free -= instants(layer)
    assert lengths == [*expected, len(free)]
    assert sum(lengths) == width
