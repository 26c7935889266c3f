"""Straight lines for several clocks from the bounds between pairs of them, and how far the bounds let each line move.

Clock 0 is the one that the others are compared with: its line is 0. Moments and values are float64 nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubblescope.align.bounds import Band, Floats, Side, closed, loosened
from bubblescope.model.columns import Bools, Columns, Ints, column

__all__ = ["Edges", "Lines", "settle"]

TOLERANCE = 5_000.0
"""Nanoseconds by which bounds may contradict each other before some of them are doubted.

Some files hold whole microseconds, and profilers know the time of a GPU to a few of them.
"""

TRIMS = (0.01, 0.01, 0.02, 0.02, 0.04, 0.04, 0.08, 0.08)
"""Shares of the tightest bounds that are set aside, one after the other, until the rest agrees.

Each share twice: the slope along which bounds are compared is better the second time.
"""

SHORT_NS = 1e9
FEW = 10
"""Where a pair of clocks was seen for less or has fewer bounds, no drift is assumed unless the bounds ask for one."""

ENOUGH = 5
"""Ends of as many pairs tell how far they scatter."""

JITTER = 500.0
"""Nanoseconds by which ends that coincide differ at the least."""

FINEST = 1e-9
"""No slope is known better; 1 ns a second."""

Matrix = Floats
Bands = Mapping[tuple[int, int], Band]


@dataclass(frozen=True, eq=False)
class Edges(Columns):
    """Bounds: the line of clock `target` is at least `value` above that of `source` at the moment `at`.

    Of pairs whose ends coincide: it is about `value` above.
    """

    source: Ints = column(np.int32)
    target: Ints = column(np.int32)
    at: Floats = column(np.float64)
    value: Floats = column(np.float64)

    def ordered(self) -> Edges:
        """The same rows by source, target and moment."""
        return self.take(np.lexsort((self.at, self.target, self.source)))

    def pairs(self) -> Iterator[tuple[tuple[int, int], slice]]:
        """(source, target) and the rows of each, of rows that are `ordered`."""
        changes = np.flatnonzero(np.diff(self.source) | np.diff(self.target)) + 1
        limits = [0, *changes.tolist(), len(self)] if len(self) else []
        for first, end in pairwise(limits):
            yield (int(self.source[first]), int(self.target[first])), slice(first, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A line for each clock: its value at moment 0, its slope, and how far off it may be within the recording.

    The error is infinite where nothing bounds a clock on one side. `coincident` is whether the ends of what ends
    together placed most pairs.
    """

    value: Floats
    slope: Floats
    error: Floats
    coincident: bool


def settle(bounds: Edges, ends: Edges, start: Floats, half: float) -> Lines:
    """Lines for the clocks of one group, which bounds connect, over moments from -half to half.

    The slopes come first. With these the bounds are constants, the tightest ones are shortest paths, and the middle
    of the tightest ones violates none of them. `start` is where a clock stays that is bounded on one side only, or
    as near as it may be. Bounds that others contradict are set aside, the tightest first.
    """
    bounds, ends = bounds.ordered(), ends.ordered()
    groups = dict(bounds.pairs())
    system = _System(len(start), start, half, ends, {pair: rows.stop - rows.start for pair, rows in groups.items()})
    keep = np.ones(len(bounds), dtype=np.bool_)
    bands = _bands(bounds, groups, keep)
    slack = system.slack(bands)
    if slack <= TOLERANCE:
        return system.solved(bands)
    doubted: set[tuple[int, int]] = set()
    for share in TRIMS:
        wrong = {pair for pair, band in bands.items() if band.slack > TOLERANCE}
        doubted |= wrong or (set(bands) if not doubted or slack > TOLERANCE else set())
        keep = _trimmed(bounds, groups, {pair: bands[pair] for pair in doubted}, share)
        bands = _bands(bounds, groups, keep)
        slack = system.slack(bands)
        if slack <= TOLERANCE:
            break
    trimmed = system.solved(bands)
    offset = trimmed.value[bounds.target] - trimmed.value[bounds.source]
    slope = trimmed.slope[bounds.target] - trimmed.slope[bounds.source]
    keep |= bounds.value <= offset + slope * bounds.at
    return system.solved(_bands(bounds, groups, keep))


def _bands(bounds: Edges, groups: Mapping[tuple[int, int], slice], keep: Bools) -> dict[tuple[int, int], Band]:
    """The lines that each pair allows, lower clock first."""

    def side(pair: tuple[int, int]) -> Side:
        rows = groups.get(pair, slice(0, 0))
        kept = keep[rows]
        return Side.of(bounds.at[rows][kept], bounds.value[rows][kept])

    pairs = sorted({(min(pair), max(pair)) for pair in groups})
    return {(i, j): Band.between(side((i, j)), side((j, i))) for i, j in pairs}


def _trimmed(bounds: Edges, groups: Mapping[tuple[int, int], slice], bands: Bands, share: float) -> Bools:
    """All rows but a share of the tightest of the given pairs, compared along the middle line of each."""
    keep = np.ones(len(bounds), dtype=np.bool_)
    for (i, j), band in bands.items():
        for pair, slope in (((i, j), band.middle), ((j, i), -band.middle)):
            if pair in groups:
                rows = groups[pair]
                level = bounds.value[rows] - slope * bounds.at[rows]
                count = math.ceil(share * len(level))
                keep[rows.start + np.argpartition(level, -count)[-count:]] = False
    return keep


@dataclass(frozen=True, slots=True)
class _System:
    """What does not change as bounds are set aside."""

    size: int
    start: Floats
    half: float
    ends: Edges
    counts: Mapping[tuple[int, int], int]

    def slack(self, bands: Bands) -> float:
        """By how much the bounds contradict each other."""
        own = max((band.slack for band in bands.values()), default=0.0)
        return max(own, *(loosened(self._reach(bands, late=late))[1] for late in (False, True)))

    def solved(self, bands: Bands) -> Lines:
        """The lines, and how far off they may be."""
        early, late = (loosened(self._reach(bands, late=late))[0] for late in (False, True))
        together = {
            pair: found
            for pair, rows in self.ends.pairs()
            if (found := _Coincidence.of(self.ends.at[rows], self.ends.value[rows], bands[pair]))
        }
        slope = self._slopes(bands, together, early, late)
        ranges = {(i, j): band.range(slope[j] - slope[i], 0.0) for (i, j), band in bands.items()}
        slack = loosened(self._matrix(ranges))[1]
        ranges = {pair: (low - slack, high + slack) for pair, (low, high) in ranges.items()}
        value = _middle(self._narrowed(ranges, together, slope), self.start)
        first, last = value - slope * self.half, value + slope * self.half
        off = [early[0] - first, first + early[:, 0], late[0] - last, last + late[:, 0]]
        return Lines(
            value=value,
            slope=slope,
            error=np.max([np.zeros(self.size), *off], axis=0),
            coincident=2 * len(together) >= len(bands),
        )

    def _matrix(self, ranges: Mapping[tuple[int, int], tuple[float, float]]) -> Matrix:
        most = np.full((self.size, self.size), np.inf)
        np.fill_diagonal(most, 0.0)
        for (i, j), (low, high) in ranges.items():
            most[i, j], most[j, i] = high, -low
        return most

    def _reach(self, bands: Bands, *, late: bool) -> Matrix:
        """The bounds of all differences at the beginning or the end of the recording."""
        moment = self.half if late else -self.half
        return self._matrix({pair: band.reach(moment, late=late) for pair, band in bands.items()})

    def _slopes(
        self, bands: Bands, together: Mapping[tuple[int, int], _Coincidence], early: Matrix, late: Matrix
    ) -> Floats:
        """The slope of each line: least squares over the pairs, within what the bounds at both ends allow."""
        rows = np.zeros((len(bands), self.size))
        wanted = np.zeros(len(bands))
        for row, (pair, band) in enumerate(bands.items()):
            likely, spread = together[pair].slopes() if pair in together else self._likely(pair, band)
            rows[row, pair[1]], rows[row, pair[0]] = 1 / spread, -1 / spread
            wanted[row] = likely / spread
        slope = np.append(0.0, np.linalg.lstsq(rows[:, 1:], wanted, rcond=None)[0])
        least = (-late[:, 0] - early[0]) / (2 * self.half)
        most = (late[0] + early[:, 0]) / (2 * self.half)
        return np.minimum(np.maximum(slope, np.minimum(least, most)), np.maximum(least, most))

    def _likely(self, pair: tuple[int, int], band: Band) -> tuple[float, float]:
        """The slope of a pair by its bounds, and how much of it they leave open."""
        flat, steep = band.slopes
        few = sum(self.counts.get(way, 0) for way in (pair, pair[::-1])) < FEW
        likely = min(max(0.0, flat), steep) if few or 2 * self.half < SHORT_NS else band.middle
        return likely, max(steep - flat, FINEST)

    def _narrowed(
        self,
        ranges: Mapping[tuple[int, int], tuple[float, float]],
        together: Mapping[tuple[int, int], _Coincidence],
        slope: Floats,
    ) -> Matrix:
        """The tightest bounds, those of pairs whose ends coincide brought as near to that as all of them allow."""
        widths = [2.0**power for power in range(16)] if together else []
        for width in widths:
            near = dict(ranges)
            for (i, j), pair in together.items():
                low, high = ranges[i, j]
                likely = min(max(pair.level(slope[j] - slope[i]), low), high)
                near[i, j] = (max(low, likely - width * pair.width), min(high, likely + width * pair.width))
            found = closed(self._matrix(near))
            if np.min(np.diagonal(found)) >= 0:
                return found
        return loosened(self._matrix(ranges))[0]


@dataclass(frozen=True, slots=True)
class _Coincidence:
    """A pair of clocks by the ends of what ends together.

    `value` and `slope` of its line at `moment`, the `width` within which the value is known and the `spread` of the
    slope.
    """

    moment: float
    value: float
    slope: float
    width: float
    spread: float

    @classmethod
    def of(cls, at: Floats, value: Floats, band: Band) -> _Coincidence | None:
        """The line through most of the points; None where they tell less than the bounds do."""
        length = float(at[-1] - at[0])
        if len(at) < ENOUGH:
            return None
        slope = _rise(at, value) if length >= SHORT_NS and len(at) >= FEW else 0.0
        slope = min(max(slope, band.slopes[0]), band.slopes[1])
        level = value - slope * at
        middle = float(np.median(level))
        scatter = max(1.4826 * float(np.median(np.abs(level - middle))), JITTER)
        low, high = band.range(slope, 0.0)
        if 6 * scatter >= high - low:
            return None
        moment = float(np.mean(at))
        root = math.sqrt(len(at))
        spread = 5 * scatter / (max(length, 1.0) * root)
        return cls(moment, middle + slope * moment, slope, 5 * scatter / root, max(spread, FINEST))

    def slopes(self) -> tuple[float, float]:
        """The slope, and how much of it stays open."""
        return self.slope, self.spread

    def level(self, slope: float) -> float:
        """The value at moment 0 of a line of another slope through the same points."""
        return self.value - slope * self.moment


def _rise(at: Floats, value: Floats) -> float:
    """The median slope from each point of the first half to its fellow in the second (Theil 1950, thinned out)."""
    half = len(at) // 2
    run = at[-half:] - at[:half]
    rise = (value[-half:] - value[:half])[run > 0] / run[run > 0]
    return float(np.median(rise)) if len(rise) else 0.0


def _middle(most: Matrix, start: Floats) -> Floats:
    """Values in the middle of the tightest bounds of all differences, which violate none of them.

    Both the upper and the lower ends of what is possible satisfy every bound, and so does their mean. Clocks that
    are bounded on one side only stay at `start`, with those that are bound to them, or as near as they may.
    """
    value = np.full(len(most), np.nan)
    for lead in range(len(most)):
        if not np.isnan(value[lead]):
            continue
        group = np.flatnonzero(np.isfinite(most[lead]) & np.isfinite(most[:, lead]))
        own = (most[lead, group] - most[group, lead]) / 2
        set_ = np.flatnonzero(~np.isnan(value))
        high = np.min(value[set_, None] + most[np.ix_(set_, group)] - own, initial=np.inf)
        low = np.max(value[set_] - most[np.ix_(group, set_)] - own[:, None], initial=-np.inf)
        value[group] = own + (min(max(start[lead], low), high) if lead else 0.0)
    return value
