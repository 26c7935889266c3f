"""Ranks whose processes have the same id, as in containers, in one file: nothing tells their events apart."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import distinct
from bubblescope.model.trace import Kernels, Launches

__all__ = ["namesakes"]

_LOOKED_AT = 1000
"""Kernels, evenly spread, of which it is asked whether their numbers come again."""

_MOST = 0.5
"""Share of the kernels whose numbers come again, where two processes have one id; elsewhere hardly any does."""


def namesakes(launches: Launches, kernels: Kernels) -> bool:
    """Whether the kernels and launches of one process on one device are those of several.

    Then most numbers come several times, of kernels as of launches, and each time at the same time. A profiler that
    records again and again counts on, or else one recording is over when the next begins; kernels of a graph share one
    launch; and what stands in a file twice has the same times.
    """
    known = np.flatnonzero(kernels.correlation >= 0)
    places = np.linspace(0, len(known) - 1, min(_LOOKED_AT, len(known))).astype(np.int64)
    looked = distinct(kernels.correlation[known[places]])
    if not len(looked) or np.isin(kernels.correlation, looked).sum() < (1 + _MOST) * len(looked):
        return False
    order = known[np.lexsort((kernels.start[known], kernels.correlation[known]))]
    numbers, first, count = np.unique(kernels.correlation[order], return_index=True, return_counts=True)
    calls = np.sort(launches.correlation)
    called = np.searchsorted(calls, numbers, "right") - np.searchsorted(calls, numbers, "left")
    again = (count > 1) & (called >= count)
    if count[again].sum() < _MOST * len(known):
        return False
    one, other = (kernels.start[order[first[again] + turn]] for turn in (0, 1))
    return bool(np.mean(one > other.min()) > _MOST and np.mean(one != other) > _MOST)
