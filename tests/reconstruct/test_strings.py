"""Strings of kernel names: which are alike, and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.reconstruct.strings import alike, border, equal_parts, grouped, parse, simple, turn


def string(text):
    """A letter a kernel."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abcdefghij", "abcdefghij", True),
        ("abcdefghij", "abcdefghix", True),
        ("abcdefghij", "abcdefghijk", True),
        ("abcdefghij", "abcdefghxy", False),
        ("abcdefghij", "abcdefghijkl", False),
        ("abc", "abx", False),
    ],
)
def test_a_tenth_of_the_kernels_may_differ(one, other, expected):
    """One of ten replaced or added is the same string, two of ten are not, nor is one of three."""
    assert alike(string(one), string(other)) is expected


def test_the_most_frequent_of_alike_strings_leads_its_group():
    """Another string has a group of its own."""
    group, leaders = grouped([string(t) for t in ("abcdefghix", "abcdefghij", "zzz", "abcdefghij")])
    assert group.tolist() == [0, 0, 1, 0]
    assert [leader.tolist() for leader in leaders] == [string("abcdefghij").tolist(), string("zzz").tolist()]


def test_a_string_is_cut_into_known_ones():
    """Ends and numbers of the pieces; None where it is not made of them."""
    bases = [string("abc"), string("xy")]
    assert parse(string("abcxyxyabc"), bases) == [(3, 0), (5, 1), (7, 1), (10, 0)]
    assert parse(string("abcqq"), bases) is None


def test_a_piece_with_an_extra_kernel_is_cut_off_whole():
    """The next piece begins where a base begins, not where the length says."""
    base = string("abcdefghij")
    assert parse(string("abcdeqfghijabcdefghij"), [base]) == [(11, 0), (21, 0)]


def test_repetitions_are_not_simple():
    """Of f, b, ff and bff two are simple."""
    found = simple([string(t) for t in ("fghi", "bcd", "fghifghi", "bcdfghifghi")])
    assert [s.tolist() for s in found] == [string("bcd").tolist(), string("fghi").tolist()]


def test_equal_parts_are_alike():
    """Three times four kernels, but not four times three."""
    assert equal_parts(string("abcdabcdabcd"), 3) == [4, 8, 12]
    assert equal_parts(string("abcdabcdabcd"), 4) is None


def test_a_forward_turns_where_the_names_change():
    """Wherever that lies in time; with the same or all names different, at a third of the time."""
    assert turn(string("ababxyxy"), np.full(8, 10)) == 4
    assert turn(string("abcdefghi"), np.full(9, 10)) == 3
    assert turn(string("aaaaaaaaa"), np.full(9, 10)) == 3


def test_a_border_lies_between_layers_of_different_names():
    """A layer alone has no border, nor has a string that takes turns."""
    assert border(string("ababxyxy")) == 4
    assert border(string("abxy")) == 0
    assert border(string("axbyaxby")) == 0
