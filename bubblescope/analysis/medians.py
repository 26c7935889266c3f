"""Medians of many groups at once, and how surely they are known without any assumption on the values.

At least n - 2k of 2^n ways for n values to lie about their median leave it between the k-th smallest and the k-th
largest: the number that lie below is binomial with p = 1/2, whatever the distribution (David and Nagaraja, Order
Statistics, 3rd edition, section 7.1).
"""

from __future__ import annotations

from functools import cache
from math import ceil, log, log2

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Floats, Ints

__all__ = ["Sorted", "needed"]


class Sorted:
    """Values sorted within their groups, which are numbered from 0.

    Attributes:
        order: rows of the values, group by group, the smallest first.
        first: where each group begins in `order`, and the end of the last.
        values: the values in that order.
    """

    def __init__(self, group: Ints, values: npt.ArrayLike, groups: int) -> None:
        given = np.asarray(values, np.float64)
        self.order = np.lexsort((given, group))
        self.values: Floats = given[self.order]
        self.first = np.searchsorted(group[self.order], np.arange(groups + 1))

    @property
    def count(self) -> Ints:
        """How many values each group has."""
        return np.diff(self.first)

    def median(self) -> Floats:
        """The median of each group, NaN of one without values."""
        count, first = self.count, self.first[:-1]
        full = count > 0
        result = np.full(len(count), np.nan)
        low, high = (first + (count - 1) // 2)[full], (first + count // 2)[full]
        result[full] = (self.values[low] + self.values[high]) / 2
        return result

    def limits(self, tail: float) -> tuple[Floats, Floats]:
        """Between which values each median lies, but for a chance of `tail` on either side; infinite for too few."""
        count, first = self.count, self.first
        rank = np.array([_rank(n, tail) for n in count.tolist()], np.int64)
        told = rank >= 0
        low, high = np.full(len(count), -np.inf), np.full(len(count), np.inf)
        low[told] = self.values[first[:-1][told] + rank[told]]
        high[told] = self.values[first[1:][told] - 1 - rank[told]]
        return low, high


def needed(tail: float) -> int:
    """The fewest values that limit a median with a chance of `tail` on either side: 2^-n is not above it."""
    return max(1, ceil(-log2(tail)))


@cache
def _rank(count: int, tail: float) -> int:
    """How many values can be left out at one end: the most of which the median lies inside with that chance; or -1."""
    taken = np.arange(count // 2)
    logs = -count * log(2) + np.concatenate(([0.0], np.cumsum(np.log((count - taken) / (taken + 1)))))
    return int(np.searchsorted(np.cumsum(np.exp(logs)), tail, "right")) - 1
