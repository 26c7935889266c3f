"""Who works longer than the others of the kind: paired comparisons over steps, or micro-batches where steps are few.

The logarithm of each member's time, less that of the others at the same time, is held against 0 with a paired t test.
Pairs are the steps where there are `ENOUGH`, else the micro-batches of all steps: then it is not tested whether the
difference lasts. The chances are corrected for the number of members compared (Holm). What counts is a chance below
`LEVEL`, and a difference of `LEAST`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from bubblescope.model.chance import t_tail
from bubblescope.model.columns import Floats, Times

__all__ = ["ENOUGH", "LEAST", "LEVEL", "Difference", "Pairs", "above", "apart", "pairs_of"]

LEVEL = 0.01
"""The chance of naming anyone at all where all take as long."""
LEAST = 0.01
"""A difference below this share does not matter, however sure it is."""
ENOUGH = 5
"""Steps from which on they are the pairs of the test."""
Pairs = Literal["steps", "micro-batches"]


class Difference(NamedTuple):
    """How much longer than the others a member takes, as the mean of logarithms, and how likely that is by chance."""

    mean: float
    chance: float


def pairs_of(steps: int) -> Pairs:
    """What is compared in pairs where so many steps were used."""
    return "steps" if steps >= ENOUGH else "micro-batches"


def above(times: Floats, *, against: Literal["median", "mean"]) -> list[Difference]:
    """Each member against the others.

    Args:
        times: by member and pair, above 0. A pair that lacks a member (NaN or 0) does not count.
        against: what of the others; the median is not moved by another slow one among them.
    """
    known = np.all(np.nan_to_num(times) > 0, axis=0)
    members, pairs = len(times), int(known.sum())
    if members < 2 or pairs < 2:
        return [Difference(0.0, 1.0)] * members
    differences = apart(times[:, known], against=against)
    mean, error = differences.mean(axis=1), differences.std(axis=1, ddof=1) / np.sqrt(pairs)
    return [Difference(m, _chance(m, e, pairs - 1)) for m, e in zip(mean.tolist(), error.tolist(), strict=True)]


def apart(times: Floats, *, against: Literal["median", "mean"]) -> Floats:
    """Logarithms of times above 0, by member and pair, less that of the others."""
    logs = np.log(times)
    differences: Floats = logs - (_median_of_others(logs) if against == "median" else _mean_of_others(times))
    return differences


def _chance(mean: float, error: float, freedom: int) -> float:
    if error:
        return t_tail(mean / error, freedom)
    return 0.0 if mean > 0 else 1.0


def _mean_of_others(times: Floats) -> Floats:
    logs: Floats = np.log((times.sum(axis=0) - times) / (len(times) - 1))
    return logs


def _median_of_others(logs: Floats) -> Floats:
    """The median of all other members at each member: the middle of the sorted column, with this one left out."""
    order = np.argsort(logs, axis=0, kind="stable")
    ordered = np.take_along_axis(logs, order, axis=0)
    place: Times = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(len(logs))[:, None], axis=0)
    middle = ((len(logs) - 2) // 2, (len(logs) - 1) // 2)
    low, high = (np.where(k < place, ordered[k], ordered[k + 1]) for k in middle)
    medians: Floats = (low + high) / 2
    return medians
