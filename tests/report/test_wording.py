"""How numbers and names are written."""

from __future__ import annotations

import pytest

from bubblescope.report import wording as words


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, words.ABSENT),
        (0, "0 ns"),
        (999, "999 ns"),
        (5300, "5.30 µs"),
        (52_345_678, "52.35 ms"),
        (412e6, "412.0 ms"),
        (2e12, "2000 s"),
    ],
)
def test_durations_take_the_unit_that_fits(ns, text):
    """A time has few digits whatever its size."""
    assert words.duration(ns) == text


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ([1_234_567, None, 0], ["1.235", words.ABSENT, "0.000"]),
        ([12_345_678, 1], ["12.35", "0.00"]),
        ([999_123_456], ["999.1"]),
        ([], []),
    ],
)
def test_columns_of_milliseconds_share_their_digits(column, cells):
    """The points of a column stand below each other."""
    assert words.milliseconds(column) == cells


def test_nothing_is_ever_minus_zero():
    """-0.0 is a number that only a programmer understands."""
    assert words.percent(-0.00001) == "0.0%"
    assert words.bare_points(-0.0001) == "0.0"


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((), words.ABSENT),
        ((3,), "3"),
        ((0, 1, 2, 5), "0-2, 5"),
        ((5, 0, 1), "0-1, 5"),
        (range(0, 40, 2), "0, 2, 4, 6, 8, 10, … 14 more"),
    ],
)
def test_rank_lists_are_runs(ranks, text):
    """Many ranks are read at a glance."""
    assert words.rank_list(ranks) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("void gemm<float, 4>(x) [unroll=4]", "void gemm<float, 4>(x) [unroll=4]"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x9b31m", r"\x9b31m"),
        ("bad\udcffname", r"bad\udcffname"),
        ("日本語 é", "日本語 é"),
        ("\U000e0041", r"\U000e0041"),
        ("\u2028", r"\u2028"),
    ],
)
def test_characters_that_act_are_shown_instead(raw, shown):
    """Names stay as they are, but no character of them commands a terminal or hides."""
    assert words.visible(raw) == shown


@pytest.mark.parametrize(
    ("items", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_enumerations_end_with_and(items, text):
    """Lists read like a sentence."""
    assert words.enumerate_words(items) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.024_12, "0.0241"),
        (0.9996, "1.00"),
        (2.413, "2.41"),
        (99.96, "100"),
        (412.4, "412"),
        (999.6, "1.00k"),
        (39_512, "39.5k"),
        (999_499, "999k"),
        (1_204_000, "1.20M"),
        (3.4e9, "3.40G"),
    ],
)
def test_rates_have_three_digits(value, text):
    """However large, and none is rounded to a thousand of its unit."""
    assert words.short(value) == text
