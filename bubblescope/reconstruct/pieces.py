"""Passes: runs of ranges that together hold the pieces of one forward, of one backward, or of both overlapped."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.ranges import NONE

__all__ = ["Passes", "passes"]


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Host ranges of passes, in time order and disjoint."""

    start: Times
    end: Times

    def of(self, moments: Times, before: Bools) -> Ints:
        """The pass of each moment, or NONE.

        What lies between two passes belongs to the earlier one, or to the later one where `before` says so.
        """
        row = np.searchsorted(self.start, moments, "right") - 1
        inside = (row >= 0) & (moments < np.append(self.end, 0)[row])
        row = np.where(~inside & before, row + 1, row)
        result: Ints = np.where(row < len(self.start), row, NONE)
        return result


def passes(trace: RankTrace, around: str) -> Passes:
    """The passes of a trace: each range that matches, or each run of numbered ones.

    A forward counts its layers up and a backward counts them down, and both begin with the pass; where
    either does not go on from the range before, another pass begins.
    """
    matches = {int(i): re.fullmatch(around, trace.names[i], re.ASCII) for i in np.unique(trace.annotations.name)}
    known = {name: match.groupdict() for name, match in matches.items() if match is not None}
    rows = trace.annotations.take(np.isin(trace.annotations.name, list(known)))
    rows = rows.take(np.lexsort((rows.end, rows.start)))
    begins = []
    before = -1, -1
    for name in rows.name.tolist():
        forward, backward = now = _numbers(known[name])
        rises, falls = 0 <= before[0] < forward, 0 <= backward < before[1]
        goes_on = max(now) >= 0 and (rises or forward < 0) and (falls or backward < 0)
        begins.append(not goes_on)
        before = now
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows)) - 1 if len(first) else first
    return Passes(rows.start[first], rows.end[last])


def _numbers(groups: dict[str, str | None]) -> tuple[int, int]:
    """The numbers of the forward's and the backward's layer, -1 where there is none."""
    backward = groups.get("backward") or groups.get("backward_alone")
    return int(groups.get("forward") or -1), int(backward or -1)
