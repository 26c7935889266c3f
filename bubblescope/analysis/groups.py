"""Columns by group: what rows have in common, and the medians of those that do."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Floats, Ints

__all__ = ["median_by", "numbered"]


def numbered(*keys: Ints) -> Ints:
    """A number from 0 for each different combination of keys, at each row."""
    number = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        different, place = np.unique(key, return_inverse=True)
        # Numbers are made dense again after each key, so that products of their ranges never overflow.
        number = np.unique(number * max(len(different), 1) + place, return_inverse=True)[1]
    return number


def median_by(values: Floats, group: Ints, *, low: bool = False) -> Floats:
    """The median of its group at each value, the lower one of an even number if so asked."""
    order = np.lexsort((values, group))
    counts = np.bincount(group)
    first = np.cumsum(counts) - counts
    some = np.flatnonzero(counts)
    medians = np.zeros(len(counts))
    ordered = values[order]
    lower = ordered[first[some] + (counts[some] - 1) // 2]
    medians[some] = lower if low else (lower + ordered[first[some] + counts[some] // 2]) / 2
    at: Floats = medians[group]
    return at
