"""How far one clock may be from another over time: the straight lines above all lower bounds and below all upper ones.

A line is the difference of two clocks, `value at 0 + slope * moment`. Moments and values are float64 nanoseconds
counted from a moment and a difference near by, so that nothing is lost; slopes are without unit, at most `STEEPEST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["STEEPEST", "Band", "Floats", "Side", "agreeing", "closed", "equalized", "loosened", "wobble"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Points = tuple[Floats, Floats]
"""Moments and values."""


STEEPEST = 100e-6
"""No two clocks drift apart faster. Quartz is good to 20 to 50 ppm; a time service steers what is left."""


@dataclass(frozen=True, slots=True)
class Side:
    """Lower bounds of a difference that can matter: the upper hull of the points, in order of time."""

    at: Floats
    value: Floats

    @classmethod
    def of(cls, at: Floats, value: Floats) -> Side:
        """The hull of points that are in order of time."""
        return cls(*_hull(*_undominated(at, value)))

    def top(self, slope: Any, at: float = 0.0) -> Any:
        """The lowest value at the moment `at` of a line of this slope; minus infinity where nothing bounds it."""
        if not len(self.at):
            return np.full_like(slope, -np.inf, dtype=np.float64)
        return np.max(self.value - np.multiply.outer(slope, self.at - at), axis=-1)

    def bends(self) -> Floats:
        """Slopes at which the point that bounds the line changes."""
        return np.diff(self.value) / np.diff(self.at)

    def turned(self) -> Side:
        """The points with values of the opposite sign: upper bounds, as lower bounds of what lies the other way."""
        return Side(self.at, -self.value)


def _undominated(at: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Points that bound some line that is flat enough: no other point is higher by the steepest way between them."""
    for _ in range(2):
        rising = value + STEEPEST * at
        keep = np.append(True, rising[1:] > np.maximum.accumulate(rising)[:-1]) if len(at) else slice(None)
        at, value = -at[keep][::-1], value[keep][::-1]
    return at, value


def _hull(at: Floats, value: Floats) -> tuple[Floats, Floats]:
    """The upper hull from left to right (Andrew's monotone chain, 1979)."""
    kept: list[tuple[float, float]] = []
    for x, y in zip(at.tolist(), value.tolist(), strict=True):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):
                break
            kept.pop()
        kept.append((x, y))
    points = np.array(kept, dtype=np.float64).reshape(-1, 2)
    return points[:, 0], points[:, 1]


@dataclass(frozen=True, slots=True)
class Band:
    """All lines from `below` (lower bounds) to `above` (upper bounds, turned: lower bounds of the opposite line).

    `slopes` are those of the flattest and the steepest such line; `middle` is the slope of the line that keeps
    farthest from all bounds, wrong by `unsure` perhaps. Where no line fits, all bounds give way by `slack`, the least
    that lets one fit.
    """

    below: Side
    above: Side
    slopes: tuple[float, float]
    middle: float
    slack: float
    unsure: float = 2 * STEEPEST

    @classmethod
    def between(cls, below: Side, above: Side) -> Band:
        """The lines between two sides, either of which may be empty."""
        if not (len(below.at) and len(above.at)):
            return cls(below, above, (-STEEPEST, STEEPEST), _along(below, above), 0.0)
        bends = np.concatenate([below.bends(), -above.bends()])
        slopes = np.unique(np.append(bends[np.abs(bends) < STEEPEST], [-STEEPEST, STEEPEST]))
        # How much the sides overlap along a slope: convex, and straight from one bend to the next.
        overlap = below.top(slopes) + above.top(-slopes)
        best = int(np.argmin(overlap))
        slack = max(0.0, float(overlap[best]) / 2)
        fits = np.flatnonzero(overlap - 2 * slack <= 0)
        fits = fits if len(fits) else np.array([best])
        first, last = int(fits[0]), int(fits[-1])
        ends = (
            _crossing(slopes, overlap - 2 * slack, first, first - 1),
            _crossing(slopes, overlap - 2 * slack, last, last + 1),
        )
        return cls(below, above, ends, float(slopes[best]), slack)

    def bounded(self) -> bool:
        """Whether there are bounds on both sides."""
        return len(self.below.at) > 0 and len(self.above.at) > 0

    def judged(self, sides: tuple[Points, Points]) -> Band:
        """The same lines, with what all points, not only those of the hulls, tell of the middle slope."""
        return replace(self, unsure=min(wobble(sides, self.middle), 2 * STEEPEST))

    def range(self, slope: float, at: float) -> tuple[float, float]:
        """Lowest and highest value at the moment `at` of the lines of one slope."""
        low, high = float(self.below.top(slope, at)), -float(self.above.top(-slope, at))
        return low - self.slack, high + self.slack

    def reach(self, at: float, *, late: bool) -> tuple[float, float]:
        """Lowest and highest value of any line at a moment before all bounds, or after them if `late`."""
        flat, steep = self.slopes
        low, high = (flat, steep) if late else (steep, flat)
        return self.range(low, at)[0], self.range(high, at)[1]


def _along(below: Side, above: Side) -> float:
    """The slope along the points of a single side: of the edge over their middle (Moon, Skelly, Towsley 1999)."""
    side = below if len(below.at) else above
    if len(side.at) < 2:
        return 0.0
    edge = min(int(np.searchsorted(side.at, (side.at[0] + side.at[-1]) / 2)), len(side.at) - 1)
    slope = float(side.bends()[max(edge - 1, 0)])
    return float(np.clip(slope if side is below else -slope, -STEEPEST, STEEPEST))


def _crossing(slopes: Floats, overlap: Floats, inside: int, outside: int) -> float:
    """The slope between two neighbours at which the overlap becomes 0."""
    if not 0 <= outside < len(slopes) or overlap[outside] <= 0:
        return float(slopes[inside])
    part = overlap[inside] / (overlap[inside] - overlap[outside])
    return float(slopes[inside] + part * (slopes[outside] - slopes[inside]))


def wobble(sides: Sequence[Points], slope: float) -> float:
    """By how much the slope of bounds may be wrong, if the least that a message takes is always the same.

    Then the tightest bounds of each quarter of the time lie on one line. Infinite where a quarter has no bound: waits
    come and go with the phases of a step, and what looks like drift may be that. `sides` are lower bounds in order of
    time: those of the line, and those of the opposite line; either may be missing, or both.
    """
    known = [(sign, at, value) for sign, (at, value) in zip((1, -1), sides, strict=True) if len(at)]
    if not known:
        return float("inf")
    first, last = min(at[0] for _, at, _ in known), max(at[-1] for _, at, _ in known)
    if first == last:
        return float("inf")
    worst = 0.0
    for sign, at, value in known:
        level = value - sign * slope * at
        limits = np.searchsorted(at, np.linspace(first, last, 5)[1:4])
        if min(limits[0], *np.diff(limits), len(at) - limits[-1]) == 0:
            return float("inf")
        worst = max(worst, float(np.ptp(np.maximum.reduceat(level, [0, *limits]))))
    return worst / float(last - first)


def agreeing(below: Points, above: Points) -> tuple[Bools, Bools]:
    """Which lower and upper bounds stay if as few as possible go, so that a line fits the rest.

    Of several slopes with as few the one that leaves most room. Slopes are tried on a grid that becomes finer around
    the best. Where some bounds are wrong, others may be that happen to contradict none: on either side as many of the
    tightest go as had to.
    """
    slopes, step = np.linspace(-STEEPEST, STEEPEST, 41), STEEPEST / 20
    for _ in range(3):
        low, high = (np.sort(value - np.multiply.outer(slopes, at), axis=1) for at, value in (below, above))
        low = low[:, ::-1]
        # With k lower bounds gone, the next is the lowest place of the line; upper bounds below it have to go.
        gone = np.array([np.searchsorted(up, down) + np.arange(len(down)) for down, up in zip(low, high, strict=True)])
        first, rows = gone.argmin(axis=1), np.arange(len(slopes))
        total = gone[rows, first]
        other = np.minimum(total - first, high.shape[1] - 1)
        best = int(np.lexsort((low[rows, first] - high[rows, other], total))[0])
        slope, more = float(slopes[best]), int(total[best])
        floor = low[best, min(first[best] + more, low.shape[1] - 1)]
        ceiling = high[best, min(other[best] + more, high.shape[1] - 1)]
        slopes, step = slope + step * np.linspace(-1, 1, 21), step / 10
    return below[1] - slope * below[0] <= floor, above[1] - slope * above[0] >= ceiling


def closed(most: Floats) -> Floats:
    """The tightest upper bounds of all differences, from `most[i, j]` of the value of j less that of i.

    Shortest paths (Floyd 1962, Warshall 1962). A negative number on the diagonal: the bounds contradict each other,
    and the rest means nothing.
    """
    most = most.copy()
    for k in range(len(most)):
        np.minimum(most, most[:, k, None] + most[None, k, :], out=most)
        if np.min(np.diagonal(most)) < 0:  # going on would double the numbers again and again
            break
    return most


def loosened(most: Floats) -> tuple[Floats, float]:
    """The tightest bounds, and by how much all had to give way, the least that leaves no contradiction."""
    found = closed(most)
    worst = float(np.min(np.diagonal(found)))
    if worst >= 0:
        return found, 0.0
    low, high = 0.0, -worst
    off = ~np.eye(len(most), dtype=bool)
    while np.min(np.diagonal(closed(most + high * off))) < 0:  # there are worse cycles than the first one found
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) / 2
        feasible = np.min(np.diagonal(closed(most + middle * off))) >= 0
        low, high = (low, middle) if feasible else (middle, high)
    return closed(most + high * off), high


def equalized(most: Floats) -> Floats:
    """The tightest bounds if all are drawn tighter by as much as they can be, the same everywhere.

    Whatever goes from one clock to another takes some time, which the bounds do not know. Where a loop of bounds leaves
    room, that is the time of all its messages; to take it from each of them keeps a clock that is one hop away one way
    round and many the other from being put in the middle.
    """
    found = closed(most)
    inner = np.isfinite(found) & np.isfinite(found.T) & np.isfinite(most) & ~np.eye(len(most), dtype=bool)
    if not np.any(inner):
        return found
    back = np.where(inner, most + most.T, np.inf)
    low, high = 0.0, min(float(np.min(back)) / 2, float(np.max(most[inner])))
    trial = high
    while high - low > 1:
        tried = closed(most - trial * inner)
        if np.min(np.diagonal(tried)) >= 0:
            found, low = tried, trial
        else:
            high = trial
        trial = (low + high) / 2
    return found
