"""Columns of tables that are wider than the page."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bubblescope.report.fitting import GAP, fitted
from bubblescope.report.table import Table

CELL = st.lists(st.text("ab", min_size=1, max_size=12), max_size=6).map(" ".join)
ROWS = st.integers(1, 5).flatmap(lambda count: st.lists(st.tuples(*[CELL] * count), min_size=1, max_size=4))


def table(*rows: tuple[str, ...], spare: tuple[str, ...] = (), more: str | None = None) -> Table:
    """A table whose columns are called A, B, C."""
    count = len(rows[0])
    headers = tuple("ABCDE"[:count])
    return Table(title="T", denominator="d", align="l" * count, headers=headers, rows=rows, spare=spare, more=more)


def longest(shown: Table, column: int) -> int:
    """The longest word of a column."""
    return max(len(word) for row in (shown.headers, *shown.rows) for word in row[column].split() or [""])


@given(ROWS, st.integers(1, 150))
def test_no_word_is_broken_and_the_page_is_wide_enough(rows, room):
    """Whatever the cells are, unless a word takes over half of the page, or the words do not fit beside each other."""
    shown, widths = fitted(table(*rows), room)
    least = [min(longest(shown, k), room // 2) for k in range(len(shown.headers))]
    if widths is None:
        assert sum(least) + GAP * (len(least) - 1) > room
        return
    assert sum(widths) + GAP * (len(widths) - 1) <= room
    assert all(width >= needed for width, needed in zip(widths, least, strict=True))


@given(ROWS)
def test_nothing_is_broken_where_there_is_room(rows):
    """Each column is as wide as its widest cell."""
    shown, widths = fitted(table(*rows), 1000)
    assert widths == tuple(max(len(row[k]) for row in (shown.headers, *shown.rows)) for k in range(len(widths)))


def test_a_number_keeps_its_unit():
    """Columns on the right are numbers; a column that can be spared goes before they break."""
    wide = replace(table(("aa aa", "12 ms", "b b"), spare=("C",)), align="lrl")
    assert fitted(wide, 12)[1] == (2, 5, 1)
    assert fitted(wide, 11)[0].headers == ("A", "B")
    assert fitted(replace(table(("12 ms", "34 ms", "56 ms")), align="rrr"), 13)[1] == (5, 2, 2)


def test_columns_that_can_be_spared_go_one_by_one():
    """In the order given, as many as needed; one that is not there is not told."""
    wide = table(("aaaaa", "bbbbb", "ccccc"), spare=("X", "B", "A"), more="more")
    assert fitted(wide, 19) == (wide, (5, 5, 5))
    shown, widths = fitted(wide, 18)
    assert (shown.headers, shown.rows, shown.align, widths) == (("A", "C"), (("aaaaa", "ccccc"),), "ll", (5, 5))
    assert shown.more == "more\nleft out, as the page is narrow: B"
    assert fitted(wide, 11)[0].more == "more\nleft out, as the page is narrow: B, A"


def test_what_does_not_fit_is_left_to_the_page():
    """With all that can be spared gone."""
    shown, widths = fitted(table(("aaaa bbbb", "cccc", "dddd"), spare=("C",)), 5)
    assert (shown.headers, widths) == (("A", "B"), None)


def test_the_rest_goes_to_who_needs_it():
    """A short column is not broken for a long one, and long ones share."""
    assert fitted(table(("aa bb", "cc " * 20, "dd " * 20)), 49)[1] == (5, 20, 20)
