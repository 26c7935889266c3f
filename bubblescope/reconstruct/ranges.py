"""Host ranges and what was asked for inside them."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Ints, Times

__all__ = ["NONE", "owners"]

NONE = -1


def owners(start: Times, end: Times, host: Times) -> Ints:
    """For each moment of `host` (sorted) the row of the shortest range that holds it, or NONE.

    Ranges may nest and need not be sorted; the cost is that of the moments inside them. The moment
    at which a range ends is still its own, unless another begins there.
    """
    owner = np.full(len(host), NONE, np.int64)
    first = np.searchsorted(host, start, "left")
    begins = np.isin(end, start[end > start]) & (end > start)
    last = np.where(begins, np.searchsorted(host, end, "left"), np.searchsorted(host, end, "right"))
    rows = np.flatnonzero(first < last)
    rows = rows[np.argsort(first[rows], kind="stable")]
    if np.all(last[rows[:-1]] <= first[rows[1:]]):  # none reaches into another, as is usual where there are many
        held = last[rows] - first[rows]
        before = np.cumsum(held) - held
        owner[np.arange(held.sum()) + np.repeat(first[rows] - before, held)] = np.repeat(rows, held)
        return owner
    for row in np.argsort(start - end, kind="stable"):  # the longest first, so that inner ranges paint over it
        owner[first[row] : last[row]] = row
    return owner
