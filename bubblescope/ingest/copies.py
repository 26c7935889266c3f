"""Events that a file holds twice, word for word: files joined to one, or rows written again."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Bools
from bubblescope.model.trace import Annotations, Kernels, Launches, Ops

__all__ = ["copies"]

_SEVERAL = 0.01
_FEWEST = 3
"""Operators are copies if they are more than this share and more than so many: in whole microseconds, one that calls
another of its name looks the same."""


def copies(block: Ops | Annotations | Launches | Kernels) -> Bools:
    """Which rows repeat an earlier one in all columns. What has no length, or could be two, is no copy.

    Kernels and launches are told from each other by their correlation; without it two alike may have run.
    """
    again = np.zeros(len(block), np.bool_)
    named = block.correlation >= 0 if isinstance(block, Kernels | Launches) else np.ones(len(block), np.bool_)
    rows = np.flatnonzero((block.end > block.start) & named)
    rows = _sharing(block.start, rows)
    columns = [getattr(block, field.name) for field in dataclasses.fields(block)]
    for column in columns[1:3]:  # end and name leave few to sort by all
        if len(rows):
            rows = rows[_shared(column[rows])]
    if not len(rows):
        return again
    rows = rows[np.lexsort([column[rows] for column in columns])]  # stable: the first of those alike comes first
    alike = np.ones(len(rows) - 1, np.bool_)
    for column in columns:
        alike &= column[rows[1:]] == column[rows[:-1]]
    again[rows[1:]] = alike
    if isinstance(block, Ops) and again.sum() <= max(_FEWEST, _SEVERAL * len(block)):
        again[:] = False
    return again


def _sharing(start: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Those rows whose start is another's, too."""
    return rows[_shared(start[rows])] if len(rows) else rows


def _shared(values: npt.NDArray[Any]) -> Bools:
    """Which values come more than once."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(values), np.bool_)
    shared[order] = np.append(False, same) | np.append(same, False)
    return shared
