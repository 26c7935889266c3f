"""Pieces of another size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.forecast.cover import cover


@pytest.mark.parametrize(
    ("number", "size", "shares"),
    [
        (3, 1.0, [(3, 1.0)]),
        (0, 0.5, [(0, 0.5)]),
        (3, 0.5, [(1, 0.5)]),
        (1, 2.0, [(2, 1.0), (3, 1.0)]),
        (1, 1.5, [(1, 0.5), (2, 1.0)]),
    ],
)
def test_a_new_piece_covers_old_ones(number, size, shares):
    """By numbers and shares."""
    assert [piece for piece, _ in cover(number, size)] == [piece for piece, _ in shares]
    assert [share for _, share in cover(number, size)] == pytest.approx([share for _, share in shares])


@given(st.integers(1, 64), st.integers(1, 64))
def test_every_old_piece_is_covered_once(old, new):
    """However a line is cut, each of its old pieces is shared out to the last bit."""
    total = [0.0] * old
    for number in range(new):
        for piece, share in cover(number, old / new):
            assert share > 0
            total[piece] += share
    assert total == pytest.approx([1.0] * old)
