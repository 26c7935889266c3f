"""Tails of distributions against values from tables and sums."""

from __future__ import annotations

from math import comb, inf, nan

import pytest

from bubblescope.model.chance import binomial_tail, f_tail, holm, t_limit, t_tail


@pytest.mark.parametrize(
    ("t", "freedom", "tail"), [(12.706, 1, 0.025), (2.228, 10, 0.025), (4.773, 5, 0.0025), (1.96, 1e9, 0.025)]
)
def test_student(t, freedom, tail):
    """As tables of Student's t have it; the two sides add up to 1."""
    assert t_tail(t, freedom) == pytest.approx(tail, rel=1e-3)
    assert t_tail(-t, freedom) == pytest.approx(1 - tail, rel=1e-3)
    assert t_limit(tail, freedom) == pytest.approx(t, rel=1e-3)


@pytest.mark.parametrize(
    ("ratio", "upper", "lower", "tail"), [(3.326, 5, 10, 0.05), (10.05, 10, 5, 0.01), (1, 4, 4, 0.5)]
)
def test_fisher(ratio, upper, lower, tail):
    """As tables of F have it."""
    assert f_tail(ratio, upper, lower) == pytest.approx(tail, rel=2e-3)


@pytest.mark.parametrize(("hits", "tries", "share"), [(0, 5, 0.5), (1, 1, 0.5), (3, 10, 0.3), (9, 10, 0.2)])
def test_binomial(hits, tries, share):
    """The sum of the terms."""
    terms = [comb(tries, k) * share**k * (1 - share) ** (tries - k) for k in range(hits, tries + 1)]
    assert binomial_tail(hits, tries, share) == pytest.approx(sum(terms))


def test_nothing_known_is_no_evidence():
    """Without degrees of freedom, or with no number, everything is chance; an infinite ratio is none."""
    assert t_tail(5, 0) == t_tail(nan, 3) == f_tail(nan, 2, 2) == f_tail(5, 0, 3) == 1
    assert t_tail(inf, 3) == f_tail(inf, 2, 2) == 0


def test_holm():
    """The smallest counts as often as there are chances, the next once less, and none less than one before it."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
