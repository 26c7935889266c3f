"""Straight lines for several clocks from the bounds between pairs of them, and how far the bounds let each line move.

Clock 0 is the one that the others are compared with: its line is 0. Moments and values are float64 nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

import numpy as np

from bubblescope.align.bounds import STEEPEST, Band, Floats, Side, agreeing, closed, equalized, loosened
from bubblescope.align.waited import Waits, likely
from bubblescope.model.columns import Bools, Columns, Ints, column

__all__ = ["TOLERANCE", "Edges", "Lines", "odd", "settle"]

TOLERANCE = 5_000
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

USUAL = 20e-6
"""By how much clocks usually drift apart, where nothing tells."""

ENOUGH = 5
"""Ends of as many links tell how far they scatter; fewer are taken to scatter by `TOLERANCE` at the least."""

AGREEING = 2
"""Ends of as many links have to agree before they bound a clock."""

JITTER = 500.0
"""Nanoseconds by which ends that coincide differ at the least."""

APART = 20e3
"""Nanoseconds by which ends that coincide may differ every time, one way: a rank of a ring may always be the last."""

ODD = 10.0
"""Standard deviations from the median at which ends do not belong together."""

FINEST = 1e-9
"""No slope is known better; 1 ns a second."""

Matrix = Floats
Bands = Mapping[tuple[int, int], Band]
Ranges = Mapping[tuple[int, int], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Edges(Columns):
    """Bounds: the line of clock `target` is at least `value` above that of `source` at the moment `at`.

    `lasted` is how long the interval took whose end makes the bound. Of pairs whose ends coincide: the line is about
    `value` above.
    """

    source: Ints = column(np.int32)
    target: Ints = column(np.int32)
    at: Floats = column(np.float64)
    value: Floats = column(np.float64)
    lasted: Floats = column(np.float64)

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
    """A line for each clock: its value at moment 0, its slope, and how far off any two may be within the recording.

    `error[i, j]` is how far the difference of lines i and j may be off, infinite where nothing bounds it on one side.
    `slack` is by how much the bounds contradict each
    other, `coincident` whether the ends of what ends together placed most pairs.
    """

    value: Floats
    slope: Floats
    error: Matrix
    slack: float
    coincident: bool


def settle(bounds: Edges, ends: Edges, start: Floats, half: float) -> Lines:
    """Lines for the clocks of one group, which bounds connect, over moments from -half to half.

    The slopes come first. With these the bounds are constants, the tightest ones are shortest paths, and the middle
    of the tightest ones violates none of them. `start` is where a clock stays that is bounded on one side only, or
    as near as it may be. Bounds that others contradict are set aside, the tightest first.
    """
    if not len(bounds):
        return Lines(value=np.zeros(1), slope=np.zeros(1), error=np.zeros((1, 1)), slack=0.0, coincident=False)
    bounds, ends = bounds.ordered(), ends.ordered()
    groups = dict(bounds.pairs())
    keep = np.ones(len(bounds), dtype=np.bool_)
    bands = _bands(bounds, groups, keep)
    for pair in [pair for pair, band in bands.items() if band.slack > TOLERANCE]:
        rows, back = groups[pair], groups[pair[::-1]]
        keep[rows], keep[back] = agreeing((bounds.at[rows], bounds.value[rows]), (bounds.at[back], -bounds.value[back]))
    bands = bands if np.all(keep) else _bands(bounds, groups, keep)
    counts = {pair: rows.stop - rows.start for pair, rows in groups.items()}
    waits = _waits(bounds, groups, bands, keep)
    system = _System(len(start), start, max(half, 1.0), ends, counts, waits)
    lines = system.solved(bands)
    return lines if lines.slack <= TOLERANCE else _relieved(bounds, groups, keep, system, bands)


def _relieved(
    bounds: Edges, groups: Mapping[tuple[int, int], slice], agree: Bools, system: _System, bands: Bands
) -> Lines:
    """The lines without the bounds that contradict each other over three clocks and more.

    Growing shares of the tightest bounds are set aside until the rest agrees; then whatever does not contradict the
    lines comes back.
    """
    keep, lines = agree, system.solved(bands)
    for share in TRIMS:
        keep = agree & _loose(bounds, groups, bands, share)
        bands = _bands(bounds, groups, keep)
        lines = system.solved(bands)
        if lines.slack <= TOLERANCE:
            break
    offset = lines.value[bounds.target] - lines.value[bounds.source]
    slope = lines.slope[bounds.target] - lines.slope[bounds.source]
    keep |= agree & (bounds.value <= offset + slope * bounds.at)
    return system.solved(_bands(bounds, groups, keep))


def _bands(bounds: Edges, groups: Mapping[tuple[int, int], slice], keep: Bools) -> dict[tuple[int, int], Band]:
    """The lines that each pair allows, lower clock first."""

    def points(pair: tuple[int, int]) -> tuple[Floats, Floats]:
        rows = groups.get(pair, slice(0, 0))
        return bounds.at[rows][keep[rows]], bounds.value[rows][keep[rows]]

    pairs = sorted({(min(pair), max(pair)) for pair in groups})
    found = {}
    for i, j in pairs:
        sides = points((i, j)), points((j, i))
        found[i, j] = Band.between(*(Side.of(*side) for side in sides)).judged(sides)
    return found


def _waits(
    bounds: Edges, groups: Mapping[tuple[int, int], slice], bands: Bands, keep: Bools
) -> dict[tuple[int, int], Waits]:
    """On which ways of each pair somebody waited, by the bounds that stay."""

    def levels(pair: tuple[int, int], slope: float) -> tuple[Floats, Floats]:
        rows = groups.get(pair, slice(0, 0))
        return (bounds.value[rows] - slope * bounds.at[rows])[keep[rows]], bounds.lasted[rows][keep[rows]]

    return {
        (i, j): Waits.of(levels((i, j), band.middle), levels((j, i), -band.middle)) for (i, j), band in bands.items()
    }


def _loose(bounds: Edges, groups: Mapping[tuple[int, int], slice], bands: Bands, share: float) -> Bools:
    """All rows but a share of the tightest of each pair, compared along its middle line."""
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
    waits: Mapping[tuple[int, int], Waits]

    def solved(self, bands: Bands) -> Lines:
        """The lines, and how far off they may be."""
        early, slack_early = loosened(self._reach(bands, late=False))
        late, slack_late = loosened(self._reach(bands, late=True))
        slope, ranges, slack = self._sloped(bands, early, late)
        ranges = {pair: (low - slack, high + slack) for pair, (low, high) in ranges.items()}
        near = self._coincident(ranges, slope)
        value = _middle(self._narrowed(ranges, dict(likely(ranges, self.waits, self.start)) | near), self.start)
        early, late = self._told(bands, near, early, late)
        first, last = value - slope * self.half, value + slope * self.half
        first, last = first - first[:, None], last - last[:, None]
        off = [early - first, first + early.T, late - last, last + late.T]
        return Lines(
            value=value,
            slope=slope,
            error=np.maximum.reduce([np.zeros((self.size, self.size)), *off]),
            slack=max(slack, slack_early, slack_late, *(band.slack for band in bands.values())),
            coincident=2 * len(near) >= len(bands),
        )

    def _matrix(self, ranges: Ranges) -> Matrix:
        most = np.full((self.size, self.size), np.inf)
        np.fill_diagonal(most, 0.0)
        for (i, j), (low, high) in ranges.items():
            most[i, j], most[j, i] = high, -low
        return most

    def _reach(self, bands: Bands, *, late: bool) -> Matrix:
        """The bounds of all differences at the beginning or the end of the recording."""
        moment = self.half if late else -self.half
        return self._matrix({pair: band.reach(moment, late=late) for pair, band in bands.items()})

    def _sloped(self, bands: Bands, early: Matrix, late: Matrix) -> tuple[Floats, Ranges, float]:
        """The slopes, what they leave of the bounds at moment 0, and by how much these contradict each other.

        Where the careful slopes contradict the bounds, by more than rounded times do, drift is there.
        """
        found = []
        for bold in (False, True):
            slope = self._slopes(bands, early, late, bold=bold)
            ranges = {(i, j): band.range(slope[j] - slope[i], 0.0) for (i, j), band in bands.items()}
            found.append((slope, ranges, loosened(self._matrix(ranges))[1]))
            if found[-1][2] <= TOLERANCE:
                break
        return min(found, key=itemgetter(2))

    def _slopes(self, bands: Bands, early: Matrix, late: Matrix, *, bold: bool) -> Floats:
        """The slope of each line: least squares over the pairs, within what the bounds at both ends allow."""
        rows = np.zeros((len(bands), self.size))
        wanted = np.zeros(len(bands))
        ends = dict(self.ends.pairs())
        for row, (pair, band) in enumerate(bands.items()):
            likely, spread = self._likely(pair, band, bold=bold)
            if pair in ends:
                together = _rise(self.ends.at[ends[pair]], self.ends.value[ends[pair]])
                likely, spread = min((likely, spread), together, key=itemgetter(1))
            rows[row, pair[1]], rows[row, pair[0]] = 1 / spread, -1 / spread
            wanted[row] = likely / spread
        slope = np.append(0.0, np.linalg.lstsq(rows[:, 1:], wanted, rcond=None)[0])
        room = np.array([-late[:, 0] - early[0], late[0] + early[:, 0]]) / (2 * self.half)
        inside: Floats = np.minimum(np.maximum(slope, room.min(axis=0)), room.max(axis=0))
        return inside

    def _likely(self, pair: tuple[int, int], band: Band, *, bold: bool) -> tuple[float, float]:
        """The slope of a pair by its bounds, and how much it may be wrong.

        The less is known, the nearer to none, but not to the edge of what the bounds allow; if bold, the middle.
        In a moment, drift is less than what rounded times can look like.
        """
        flat, steep = band.slopes
        counts = [self.counts[way] for way in (pair, pair[::-1]) if way in self.counts]
        little = min(counts) < FEW or 2 * self.half < SHORT_NS
        unsure = max(min(2 * STEEPEST if little else band.unsure, steep - flat), FINEST)
        if little and not bold:
            return 0.0, 2 * STEEPEST
        certain = 0.0 if little else 1 / (1 + (unsure / USUAL) ** 2)
        slope = band.middle * (1.0 if bold else certain)
        room = (steep - flat) / 4
        slope = min(max(slope, min(flat + room, band.middle)), max(steep - room, band.middle))
        return slope, 2 * STEEPEST if little else unsure

    def _coincident(self, ranges: Ranges, slope: Floats) -> dict[tuple[int, int], tuple[float, float]]:
        """Value at moment 0, and half the room around it, of pairs of which ends tell more than the bounds do."""
        found = {}
        for (i, j), rows in self.ends.pairs():
            level = self.ends.value[rows] - (slope[j] - slope[i]) * self.ends.at[rows]
            low, high = ranges[i, j]
            scatter = _scatter(level)
            if 6 * scatter < high - low:
                found[i, j] = min(max(float(np.median(level)), low), high), 5 * scatter / math.sqrt(len(level))
        return found

    def _told(
        self, bands: Bands, near: Collection[tuple[int, int]], early: Matrix, late: Matrix
    ) -> tuple[Matrix, Matrix]:
        """The bounds of all differences at both ends of the recording, with what ends that agree tell of them.

        Cause and effect alone leave a clock the whole length of a collective. But its kernels end within microseconds
        of each other, and so say more as soon as several agree. Those of a pair whose bounds contradict that do not.
        """
        bands = dict(bands)
        for pair, rows in self.ends.pairs():
            at, value = self.ends.at[rows], self.ends.value[rows]
            if pair in near and len(at) >= AGREEING:
                room = max(APART, 5 * _scatter(value - _rise(at, value)[0] * at))
                told = Band.between(
                    Side.of(*_with(bands[pair].below, at, value - room)),
                    Side.of(*_with(bands[pair].above, at, -value - room)),
                )
                bands[pair] = told if told.slack <= TOLERANCE else bands[pair]
        found = [loosened(self._reach(bands, late=late)) for late in (False, True)]
        if max(slack for _, slack in found) > TOLERANCE:
            return early, late
        return found[0][0], found[1][0]

    def _narrowed(self, ranges: Ranges, near: Mapping[tuple[int, int], tuple[float, float]]) -> Matrix:
        """The tightest bounds, those of pairs of which more is told brought as near to that as all of them allow."""
        for width in [2.0**power for power in range(16)] if near else []:
            narrow = dict(ranges)
            for pair, (value, room) in near.items():
                low, high = ranges[pair]
                narrow[pair] = (max(low, value - width * room), min(high, value + width * room))
            found = self._matrix(narrow)
            if np.min(np.diagonal(closed(found))) >= 0:
                return equalized(found)
        return equalized(self._matrix(ranges))


def _with(side: Side, at: Floats, value: Floats) -> tuple[Floats, Floats]:
    """The points of a side and more of them, in order of time."""
    at, value = np.append(side.at, at), np.append(side.value, value)
    order = np.lexsort((value, at))
    return at[order], value[order]


def odd(ends: Edges) -> Bools:
    """Rows whose ends lie much farther apart than those of most rows of the same pair: they do not belong together."""
    order = np.lexsort((ends.at, ends.target, ends.source))
    found = np.zeros(len(ends), dtype=np.bool_)
    for _, rows in ends.take(order).pairs():
        at, value = ends.at[order[rows]], ends.value[order[rows]]
        if len(at) >= ENOUGH:
            level = value - _rise(at, value)[0] * at
            found[order[rows]] = np.abs(level - np.median(level)) > ODD * _scatter(level)
    return found


def _scatter(level: Floats) -> float:
    """By how much values differ from their median: the standard deviation, if they are normal; their range, if few."""
    if len(level) < ENOUGH:
        return max(float(np.ptp(level)), TOLERANCE)
    return max(1.4826 * float(np.median(np.abs(level - np.median(level)))), JITTER)


def _rise(at: Floats, value: Floats) -> tuple[float, float]:
    """The slope of most points, and how much of it they leave open.

    The median slope from each point of the first half to its fellow in the second (Theil 1950, thinned out).
    """
    half, length = len(at) // 2, float(at[-1] - at[0])
    if len(at) < FEW or length < SHORT_NS:
        return 0.0, math.inf
    run = at[-half:] - at[:half]
    slope = float(np.median((value[-half:] - value[:half])[run > 0] / run[run > 0]))
    return slope, max(5 * _scatter(value - slope * at) / (length * math.sqrt(len(at))), FINEST)


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
