"""Sets of time: sorted, disjoint, half-open intervals, and the arithmetic of them.

Overlapping kernels must count once. Everything that measures time therefore goes through a
union first, and a sum only then; both are linear after one sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Bools, Times, distinct

__all__ = ["Spans", "lengths_by_layer", "union_by_owner"]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Disjoint intervals [start, end) in nanoseconds, sorted; touching ones are joined."""

    start: Times
    end: Times

    @classmethod
    def of(cls, start: npt.ArrayLike, end: npt.ArrayLike) -> Spans:
        """The union of any intervals; empty ones vanish."""
        _, starts, ends = union_by_owner(np.zeros(np.size(start), np.int64), np.asarray(start), np.asarray(end))
        return cls(starts, ends)

    @classmethod
    def empty(cls) -> Spans:
        """No time at all."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def join(cls, parts: Iterable[Spans]) -> Spans:
        """The union of several sets."""
        parts = list(parts)
        if not parts:
            return cls.empty()
        return cls.of(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Nanoseconds covered."""
        return int(np.sum(self.end - self.start))

    def clip(self, lo: int, hi: int) -> Spans:
        """What lies in [lo, hi); nothing where hi is not above lo."""
        if hi <= lo:
            return Spans.empty()
        first, last = np.searchsorted(self.end, lo, "right"), np.searchsorted(self.start, hi, "left")
        start, end = self.start[first:last].clip(lo, hi), self.end[first:last].clip(lo, hi)
        return Spans(start, end)

    def gaps(self, lo: int, hi: int) -> Spans:
        """What of [lo, hi) is not covered."""
        inside = self.clip(lo, hi)
        edges_lo = np.concatenate(([lo], inside.end))
        edges_hi = np.concatenate((inside.start, [max(lo, hi)]))
        keep = edges_hi > edges_lo
        return Spans(edges_lo[keep], edges_hi[keep])

    def covers(self, points: Times) -> Bools:
        """For each point, whether the instant that begins there is covered."""
        at = np.searchsorted(self.start, points, "right") - 1
        covered: Bools = (at >= 0) & (points < self.end[at]) if len(self) else np.zeros(len(points), bool)
        return covered

    def within(self, start: Times, end: Times) -> Times:
        """For each stretch [start, end) the nanoseconds of it that are covered."""
        total = np.concatenate(([0], np.cumsum(self.end - self.start)))
        begun = [np.searchsorted(self.start, points, "right") for points in (start, end)]
        ends = np.concatenate(([np.iinfo(np.int64).min], self.end))  # of none, which nothing reaches
        until = [total[at] - (ends[at].clip(points) - points) for at, points in zip(begun, (start, end), strict=True)]
        covered: Times = until[1] - until[0]
        return covered

    def minus(self, other: Spans) -> Spans:
        """What is covered here and not there."""
        return self._where(other, covered_there=False)

    def common(self, other: Spans) -> Spans:
        """What is covered in both."""
        return self._where(other, covered_there=True)

    def _where(self, other: Spans, *, covered_there: bool) -> Spans:
        points = distinct(np.concatenate((self.start, self.end, other.start, other.end)))
        keep = self.covers(points) & (other.covers(points) == covered_there)
        index = np.flatnonzero(keep)
        return Spans.of(points[index], points[np.minimum(index + 1, len(points) - 1)])

    def moved(self, move: Callable[[Times], Times]) -> Spans:
        """The same set on another clock; `move` turns moments of this one into moments of that, in their order."""
        return Spans.of(move(self.start), move(self.end))

    def self_check(self) -> None:
        """Raise ValueError unless sorted, disjoint and without empty intervals."""
        if np.any(self.end <= self.start) or np.any(self.start[1:] <= self.end[:-1]):
            raise ValueError("intervals overlap, touch, or are empty")


def union_by_owner(owner: npt.NDArray[Any], start: Times, end: Times) -> tuple[npt.NDArray[Any], Times, Times]:
    """The union of each owner's intervals: (owner, start, end), sorted by owner and start."""
    keep = end > start
    owner, start, end = owner[keep], start[keep].astype(np.int64), end[keep].astype(np.int64)
    if not len(owner):
        return owner, start, end
    order = np.lexsort((start, owner))
    owner, start, end = owner[order], start[order], end[order]
    new_owner = np.concatenate(([True], owner[1:] != owner[:-1]))
    # A running maximum must not leak into the next owner: lift every owner above the one before.
    group = np.cumsum(new_owner) - 1
    low = int(start.min())
    span = int(end.max()) - low + 1
    if (int(group[-1]) + 1) * span < 2**62:
        reach = np.maximum.accumulate(end - low + group * span) - group * span + low
    else:  # so long a trace with so many owners that lifting would overflow
        reach = np.concatenate([np.maximum.accumulate(part) for part in np.split(end, np.flatnonzero(new_owner)[1:])])
    first = new_owner.copy()
    first[1:] |= start[1:] > reach[:-1]
    begin = np.flatnonzero(first)
    last = np.concatenate((begin[1:], [len(owner)])) - 1
    return owner[begin], start[begin], reach[last]


def lengths_by_layer(layers: Sequence[Spans], lo: int, hi: int) -> list[int]:
    """Split [lo, hi) among layers, the first that covers an instant taking it.

    Returns a length for each layer and, last, what no layer covers: they add up to hi - lo exactly.
    """
    layers = [layer.clip(lo, hi) for layer in layers]
    edges = [np.array([lo, hi], np.int64)]
    points = distinct(np.concatenate([*edges, *(x for layer in layers for x in (layer.start, layer.end))]))
    widths, at = np.diff(points), points[:-1]
    free = np.ones(len(at), bool)
    lengths = []
    for layer in layers:
        mine = free & layer.covers(at)
        lengths.append(int(widths[mine].sum()))
        free &= ~mine
    return [*lengths, int(widths[free].sum())]
