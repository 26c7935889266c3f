"""Strings of kernel names: which are alike, which are made of others, and where one turns into another.

Kernels of one layer vary a little (autotuned variants, an extra copy), so that two strings are alike
when they hold nearly the same names, whatever their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from bubblescope.model.columns import Floats, Ints, Times

__all__ = [
    "MOST_DISTINCT",
    "TOLERANCE",
    "alike",
    "border",
    "difference",
    "equal_parts",
    "grouped",
    "parse",
    "simple",
    "turn",
]

TOLERANCE = 0.1
"""Share of the kernels of a string in which one alike may differ."""

TIE = 1e-9

COMPARED = 32
"""With how many others a string is compared at most; the most frequent come first."""

MOST_DISTINCT = 500
"""Distinct strings of kernels, above which nothing recurs."""

BACKWARD_TO_FORWARD = 2
"""How much longer a backward takes than its forward, where nothing else tells them apart."""

LEAST_SHARE = 0.1
"""Share of the time of a forward and its backward that either takes at least."""


def alike(a: Ints, b: Ints) -> bool:
    """Whether two strings hold nearly the same names."""
    if len(a) == len(b) and np.array_equal(a, b):
        return True
    least = min(len(a), len(b))
    if abs(len(a) - len(b)) > TOLERANCE * least or not least:
        return False
    return difference(a, b) <= 2 * TOLERANCE * least


def difference(a: Ints, b: Ints) -> int:
    """How many names stand in one string and not in the other, counting each as often as it stands."""
    low = min(int(a.min()), int(b.min()))
    most = max(int(a.max()), int(b.max())) - low + 1
    return int(np.abs(np.bincount(a - low, minlength=most) - np.bincount(b - low, minlength=most)).sum())


def grouped(strings: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """The group of each string, and the most frequent string of each group; alike ones share a group."""
    exact: dict[bytes, list[int]] = {}
    for i, string in enumerate(strings):
        exact.setdefault(np.ascontiguousarray(string).tobytes(), []).append(i)
    leaders: list[Ints] = []
    by_length: dict[int, list[int]] = {}
    group = np.empty(len(strings), np.int64)
    for rows in sorted(exact.values(), key=lambda rows: -len(rows)):
        string = strings[rows[0]]
        reach = int(TOLERANCE * len(string)) + 1
        lengths = range(len(string) - reach, len(string) + reach + 1) if len(leaders) < MOST_DISTINCT else ()
        near = islice((g for n in lengths for g in by_length.get(n, ())), COMPARED)
        found = next((g for g in near if alike(leaders[g], string)), None)
        if found is None:
            found = len(leaders)
            leaders.append(string)
            by_length.setdefault(len(string), []).append(found)
        group[rows] = found
    return group, leaders


def simple(strings: Sequence[Ints]) -> list[Ints]:
    """The different strings, shortest first, without those that are made of others."""
    found = list[Ints]()
    for string in sorted(grouped(strings)[1], key=len):
        if parse(string, found) is None:
            found.append(string)
    return found


def parse(string: Ints, bases: Sequence[Ints]) -> list[tuple[int, int]] | None:
    """Cut a string into pieces, each alike one of the bases: (end, base) of each; None where it is not made of them.

    A rest shorter than a tenth of the last base goes with it.
    """
    at, found = 0, list[tuple[int, int]]()
    while at < len(string):
        fits = [
            (difference(string[at : at + len(base)], base), -len(base), k)
            for k, base in enumerate(bases)
            if alike(string[at : at + len(base)], base)
        ]
        if not fits:
            if found and len(string) - at <= max(1, TOLERANCE * len(bases[found[-1][1]])):
                found[-1] = (len(string), found[-1][1])
                return found
            return None
        _, _, k = min(fits)
        at = _end(string, at, bases[k], bases)
        found.append((at, k))
    return found


def _end(string: Ints, at: int, base: Ints, bases: Sequence[Ints]) -> int:
    """Where a piece that begins at `at` and is alike `base` ends: what follows begins as a base does."""
    end = min(at + len(base), len(string))
    slack = int(TOLERANCE * len(base))
    openings = {int(other[0]) for other in bases}
    for shift in sorted(range(-slack, slack + 1), key=abs):
        moved = end + shift
        begins = at < moved < len(string) and int(string[moved]) in openings
        better = shift == 0 or difference(string[at : max(moved, at + 1)], base) < difference(string[at:end], base)
        if (begins or moved == len(string)) and better:
            return moved
    return end


def equal_parts(string: Ints, count: int) -> list[int] | None:
    """Ends of `count` parts that are alike, or None."""
    if count < 2 or len(string) < count:
        return None
    ends = [round(len(string) * (k + 1) / count) for k in range(count)]
    parts = [string[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return ends if all(alike(parts[0], part) for part in parts[1:]) else None


def border(string: Ints) -> int:
    """Where a string of several layers has wholly different names before and after, or 0.

    Such a place lies in its middle half, and on both sides of it names recur.
    """
    n = len(string)
    if n < 4:
        return 0
    place = np.arange(n + 1)
    inner = (place >= n / 4) & (place <= 3 * n / 4)
    for at in np.flatnonzero((_apart(string) > 1 - TIE) & inner).tolist():
        if all(len(part) >= 2 * len(np.unique(part)) for part in (string[:at], string[at:])):
            return int(at)
    return 0


def turn(string: Ints, took: Times) -> int:
    """Where a forward turns into its backward: the names before and after differ most there.

    Of places that are as good the one is taken that gives the backward twice the time of the forward.
    """
    n = len(string)
    if n < 2:
        return n
    apart = _apart(string)[1:n]
    time = np.cumsum(took)
    share = time[:-1] / max(int(time[-1]), 1)
    inner = (share > LEAST_SHARE) & (share < 1 - LEAST_SHARE)
    if not inner.any():
        inner[:] = True
    best = np.flatnonzero(inner & (apart >= apart[inner].max() - TIE))
    return int(best[np.abs(share[best] - 1 / (1 + BACKWARD_TO_FORWARD)).argmin()]) + 1


def _apart(string: Ints) -> Floats:
    """For each place in a string, ends included, how different the names before and after it are.

    1: no name stands on both sides; 0: all names have equal shares of either side.
    """
    n = len(string)
    place = np.arange(n + 1)
    _, code = np.unique(string, return_inverse=True)
    result = np.zeros(n + 1)
    for c in range(int(code.max()) + 1):
        before = np.concatenate(([0], np.cumsum(code.reshape(-1) == c)))
        result += np.abs(before - before[-1] * place / n)
    result *= n / np.maximum(2 * place * (n - place), 1)
    return result
