"""Ranks whose processes have the same id, as in containers, in one file: nothing tells their events apart."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Times
from bubblescope.model.trace import Kernels, Launches

__all__ = ["namesakes"]

_LOOKED_AT = 1000
"""Kernels, evenly spread, of which it is asked whether their numbers come again."""

_MOST = 0.5
"""Share of the kernels whose numbers come again, where two processes have one id; elsewhere hardly any does."""


def namesakes(launches: Launches, kernels: Kernels) -> bool:
    """Whether the kernels and launches of one process on one device are those of several.

    Then most numbers come twice, of launches as of kernels, and both times at the same time. A profiler that records
    again and again counts on, or else one recording is over when the next begins. What stands in a file twice has the
    same times.
    """
    known = np.flatnonzero(kernels.correlation >= 0)
    looked = kernels.correlation[known[np.linspace(0, len(known) - 1, min(_LOOKED_AT, len(known))).astype(np.int64)]]
    if not len(looked) or np.isin(kernels.correlation, looked).sum() < (1 + _MOST) * len(looked):
        return False
    ran, called = _turns(kernels.correlation, kernels.start), _turns(launches.correlation, launches.start)
    twice = np.intersect1d(ran[0], called[0])
    pairs = np.isin(ran[0], twice)
    if pairs.sum() * 2 < _MOST * len(known):
        return False
    first, second = ran[1][pairs], ran[2][pairs]
    return bool(np.mean(first > second.min()) > _MOST and np.mean(first != second) > _MOST)


def _turns(numbers: Times, moments: Times) -> tuple[Times, Times, Times]:
    """The numbers that come exactly twice, and when for the first and for the second time."""
    order = np.lexsort((moments, numbers))
    order = order[numbers[order] >= 0]
    ordered, at = numbers[order], moments[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.empty(0, np.int64)
    first = first[np.diff(np.append(first, len(ordered))) == 2]
    return ordered[first], at[first], at[first + 1]
