"""One clock for all ranks: what to add to each rank's clock, and how far off that may be."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bubblescope.align.consensus import TOLERANCE, Edges, Lines, odd, settle
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.job import ClockFit
from bubblescope.model.timeline import RankTimeline

__all__ = ["RESOLUTION", "TOLERANCE", "Links", "fit"]

RESOLUTION = 1_000
"""Nanoseconds that clocks of two hosts may always differ by: some files hold whole microseconds."""


@dataclass(frozen=True, eq=False)
class Links(Columns):
    """Pairs of intervals on two ranks that bound each other, nanoseconds on each rank's own clock.

    In truth the second does not end before the first starts: a receive and its send. Where `both`, neither does the
    first end before the second starts: the send waited for its receive, or the two are one collective. Where
    `together`, they end at nearly the same moment.
    """

    first: Ints = column(np.int32)
    second: Ints = column(np.int32)
    start_first: Times = column(np.int64)
    end_first: Times = column(np.int64)
    start_second: Times = column(np.int64)
    end_second: Times = column(np.int64)
    both: Bools = column(np.bool_)
    together: Bools = column(np.bool_)


def fit(timelines: Mapping[int, RankTimeline], links: Links) -> ClockFit:
    """Put all ranks on the clock of the lowest one.

    Links place the clocks that they connect. The others stay as recorded if they count from the epoch; clocks that
    count from anywhere else are taken to have begun to record together, and the method is `none` if any of them is
    linked to none that counts from the epoch. Links of ranks without a timeline are left aside.
    """
    clocks = _clocks(timelines)
    links = links.take((clocks.of(links.first) >= 0) & (clocks.of(links.second) >= 0))
    crossing = links.take(clocks.of(links.first) != clocks.of(links.second))
    groups = _groups(clocks, crossing)
    return _assembled(clocks, links, [_placed(timelines, clocks, crossing, group) for group in groups])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clocks:
    """The clocks of a job in order of their lowest ranks.

    `number` is the clock that each of the `ranks` shows, `start` the nanoseconds to add to each clock to begin with,
    `absolute` whether it counts from the epoch.
    """

    ranks: Ints
    number: Ints
    start: Times
    absolute: Bools

    def of(self, ranks: Ints) -> Ints:
        """The clock of each rank; -1 of ranks that were not recorded."""
        place = np.searchsorted(self.ranks, ranks)
        known = np.append(self.ranks, -1)[place] == ranks
        return np.where(known, np.append(self.number, -1)[place], -1)


def _clocks(timelines: Mapping[int, RankTimeline]) -> _Clocks:
    """Ranks that name one clock share it; the others have one each."""
    ranks = sorted(timelines)
    names: dict[object, int] = {}
    for rank in ranks:
        names.setdefault(timelines[rank].identity.clock or rank, len(names))
    number = np.array([names[timelines[rank].identity.clock or rank] for rank in ranks], dtype=np.int64)
    begin = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(begin, number, [_begin(timelines[rank]) for rank in ranks])
    leads = np.unique(number, return_index=True)[1]
    absolute = np.array([timelines[rank].absolute for rank in ranks], dtype=np.bool_)[leads]
    if np.any(absolute):
        begin[absolute] = begin[absolute].min()
    return _Clocks(
        ranks=np.array(ranks, dtype=np.int64),
        number=number,
        start=begin[:1] - begin,
        absolute=absolute,
    )


def _begin(timeline: RankTimeline) -> int:
    return int(timeline.steps.start.min()) if len(timeline.steps) else 0


@dataclass(frozen=True, eq=False)
class _Bounds(Columns):
    """Bounds of two clocks: at the moment `at`, `target` has to be set forward by `value` more than `source`.

    `lasted` is how long the interval took whose end is the effect.
    """

    source: Ints = column(np.int32)
    target: Ints = column(np.int32)
    at: Times = column(np.int64)
    value: Times = column(np.int64)
    lasted: Times = column(np.int64)


def _bounds(clocks: _Clocks, links: Links, add: Times) -> _Bounds:
    """What links say of clocks to each of which something is added."""
    first, second = clocks.of(links.first), clocks.of(links.second)
    sent, received = links.start_first + add[first], links.end_second + add[second]
    asked, gone = links.start_second + add[second], links.end_first + add[first]
    forth = _Bounds(
        first, second, sent + (received - sent) // 2, sent - received, links.end_second - links.start_second
    )
    back = _Bounds(second, first, asked + (gone - asked) // 2, asked - gone, links.end_first - links.start_first)
    return _Bounds.concat([forth, back.take(links.both)])


@dataclass(frozen=True, slots=True)
class _Group:
    """Clocks that links connect, the lowest first, and the nanoseconds to add to each so that none is far off."""

    clocks: list[int]
    near: Times


def _groups(clocks: _Clocks, links: Links) -> list[_Group]:
    """Clocks that links connect, put near each other by the tightest bounds along a tree, in whole nanoseconds.

    So what comes after, in floating point, is the same however far off a clock was recorded. Pairs that are bounded
    on both sides come first, as they bring the clocks nearer.
    """
    least = _tightest(_bounds(clocks, links, clocks.start))
    beside: dict[int, set[int]] = {}
    for i, j in least:
        beside.setdefault(i, set()).add(j)
        beside.setdefault(j, set()).add(i)
    seen: set[int] = set()
    groups = []
    for lead in range(len(clocks.start)):
        if lead not in seen:
            groups.append(_grown(lead, least, beside, clocks.start))
            seen.update(groups[-1].clocks)
    return groups


def _tightest(bounds: _Bounds) -> dict[tuple[int, int], int]:
    """The greatest value of each pair of clocks, by source and target."""
    if not len(bounds):
        return {}
    bounds = bounds.take(np.lexsort((bounds.target, bounds.source)))
    changes = (np.diff(bounds.source) != 0) | (np.diff(bounds.target) != 0)
    first = np.append(0, np.flatnonzero(changes) + 1)
    pairs = zip(bounds.source[first].tolist(), bounds.target[first].tolist(), strict=True)
    return dict(zip(pairs, np.maximum.reduceat(bounds.value, first).tolist(), strict=True))


def _grown(lead: int, least: Mapping[tuple[int, int], int], beside: Mapping[int, set[int]], start: Times) -> _Group:
    """The group of a clock, from neighbour to neighbour."""
    near = {lead: 0}
    frontier = [_step(least, lead, other) for other in beside.get(lead, ())]
    heapq.heapify(frontier)
    while frontier:
        _, last, clock = heapq.heappop(frontier)
        if clock in near:
            continue
        forth, back = least.get((last, clock)), least.get((clock, last))
        if forth is None or back is None:
            near[clock] = near[last] + (forth if forth is not None else -(back or 0))
        else:
            near[clock] = near[last] + (forth - back) // 2
        for other in beside[clock]:
            heapq.heappush(frontier, _step(least, clock, other))
    order = sorted(near)
    return _Group(order, start[order] + np.array([near[clock] for clock in order], dtype=np.int64))


def _step(least: Mapping[tuple[int, int], int], clock: int, other: int) -> tuple[bool, int, int]:
    """A way to go on, two-sided ones first."""
    return ((clock, other) not in least or (other, clock) not in least, clock, other)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A group with its lines, at moments that count from `middle` on the clock of its lowest."""

    group: _Group
    middle: int
    lines: Lines
    method: str


def _placed(timelines: Mapping[int, RankTimeline], clocks: _Clocks, links: Links, group: _Group) -> _Placed:
    """The lines of the clocks of a group over the steps of its ranks."""
    member = np.full(len(clocks.start), -1)
    member[group.clocks] = np.arange(len(group.clocks))
    near = np.zeros(len(clocks.start), dtype=np.int64)
    near[group.clocks] = group.near
    links = links.take(member[clocks.of(links.first)] >= 0)
    at = _bounds(clocks, links, near).at
    first, last = (int(at.min()), int(at.max())) if len(at) else (0, 0)
    middle = first + (last - first) // 2
    still = all(timelines[rank].restarts for rank in clocks.ranks[member[clocks.number] >= 0].tolist())
    ends = _edges(_ends(clocks, links, near), member, middle, still=still)
    wrong = np.zeros(len(links), dtype=np.bool_)
    wrong[links.together] = odd(ends)
    extent = [first, last]
    for rank, clock in zip(clocks.ranks.tolist(), clocks.number.tolist(), strict=True):
        steps = timelines[rank].steps
        if member[clock] >= 0 and len(steps):
            extent += [int(steps.start.min() + near[clock]), int(steps.end.max() + near[clock])]
    lines = settle(
        _edges(_bounds(clocks, links.take(~wrong), near), member, middle, still=still),
        ends.take(~wrong[links.together]),
        start=(clocks.start - near)[group.clocks].astype(np.float64),
        half=0.0 if still else float(max(middle - min(extent), max(extent) - middle)),
    )
    deciding = links.take(links.together) if lines.coincident else links
    collective = np.count_nonzero(deciding.both & deciding.together)
    return _Placed(group, middle, lines, "collectives" if 2 * collective > len(deciding) else "p2p")


def _edges(bounds: _Bounds, member: Ints, middle: int, *, still: bool) -> Edges:
    """The bounds by the places of their clocks in the group, at moments that count from its middle.

    Clocks that begin anew with each step do not drift apart: for these all moments are one (`still`).
    """
    at = np.zeros_like(bounds.at) if still else bounds.at - middle
    moments, *values = (of.astype(np.float64) for of in (at, bounds.value, bounds.lasted))
    return Edges(member[bounds.source], member[bounds.target], moments, *values)


def _ends(clocks: _Clocks, links: Links, near: Times) -> _Bounds:
    """By how much the higher clock of a pair has to be set forward for what ends together to do so."""
    links = links.take(links.together)
    first, second = clocks.of(links.first), clocks.of(links.second)
    one, other = links.end_first + near[first], links.end_second + near[second]
    swap = first > second
    value = np.where(swap, other - one, one - other)
    lasted = links.end_second - links.start_second
    return _Bounds(np.minimum(first, second), np.maximum(first, second), one + (other - one) // 2, value, lasted)


def _assembled(clocks: _Clocks, links: Links, placed: list[_Placed]) -> ClockFit:
    """The fit in the words of the job: all offsets at the middle of the group of the lowest rank."""
    origin = placed[0].middle if placed else 0
    count = len(clocks.start)
    offset, slope = np.zeros(count, dtype=np.int64), np.zeros(count)
    error = np.full((count, count), np.inf)
    np.fill_diagonal(error, 0.0)
    lowest = np.unique(clocks.number, return_index=True)[1]
    tied = np.zeros(count, dtype=np.int64)
    for found in placed:
        own, lines = found.group.clocks, found.lines
        value = (lines.value + lines.slope * float(origin - found.middle)) / (1 + lines.slope)
        offset[own] = found.group.near + np.rint(value).astype(np.int64)
        slope[own] = lines.slope
        tied[own] = clocks.ranks[lowest[own[0]]]
        error[np.ix_(own, own)] = np.maximum(np.ceil(lines.error), RESOLUTION * ~np.eye(len(own), dtype=bool))
    linked = [clock for found in placed if len(found.group.clocks) > 1 for clock in found.group.clocks]
    worst = float(np.max(error[0, linked])) if linked else 0.0 if count <= 1 else math.inf
    of = dict(zip(clocks.ranks.tolist(), clocks.number.tolist(), strict=True))
    fitted = ClockFit(
        method=_method(clocks, placed),
        offsets={rank: int(offset[clock]) for rank, clock in of.items()},
        drift_ppm={rank: float(slope[clock]) * 1e6 for rank, clock in of.items()},
        origin=origin,
        error=int(worst) if math.isfinite(worst) else None,
        clocks=of,
        errors=error,
        tied={rank: int(tied[clock]) for rank, clock in of.items()},
    )
    return replace(fitted, violations=_violations(fitted, links))


def _method(clocks: _Clocks, placed: list[_Placed]) -> str:
    """What placed the clocks; `none` if some of them cannot be compared at all."""
    if len(placed) > 1 and not all(np.any(clocks.absolute[found.group.clocks]) for found in placed):
        return "none"
    methods = {found.method for found in placed if len(found.group.clocks) > 1}
    return max(methods, default="recorded")


def _violations(fitted: ClockFit, links: Links) -> int:
    """Links whose effect comes before its cause by more than the tolerance."""
    late = np.zeros(len(links), dtype=np.int64)
    sides = []
    for ranks, start, end in (
        (links.first, links.start_first, links.end_first),
        (links.second, links.start_second, links.end_second),
    ):
        moved = np.stack([start, end])
        for rank in np.unique(ranks).tolist():
            rows = ranks == rank
            moved[:, rows] = fitted.corrected(rank, moved[:, rows])
        sides.append(moved)
    (start_first, end_first), (start_second, end_second) = sides
    late = start_first - end_second
    late[links.both] = np.maximum(late, start_second - end_first)[links.both]
    return int(np.count_nonzero(late > TOLERANCE))
