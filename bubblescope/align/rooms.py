"""Whether what bounds two clocks leaves room: whether any straight line between them contradicts none of the bounds."""

from __future__ import annotations

import numpy as np

from bubblescope.align.bounds import Band, Points, Side
from bubblescope.align.clocks import TOLERANCE, Links
from bubblescope.model.columns import Bools, Times

__all__ = ["believed", "gap"]


def gap(below: Points, above: Points) -> float:
    """Nanoseconds by which all bounds of a difference would have to give way for a line to fit; 0 where one does.

    `below` are moments and values that the line stays above, `above` those that it stays below; in any order.
    """
    at, value = above
    return Band.between(_side(below), _side((at, -value))).slack


def _side(points: Points) -> Side:
    at, value = points
    order = np.lexsort((value, at))
    return Side.of(at[order], value[order])


def believed(told: Links, more: Links) -> Bools:
    """Which of more links may be so: those of two ranks stand or fall together, by what is told of the two.

    They have to bound the clocks both ways, with what is told: what bounds one way only, nothing could contradict, and
    a guess that is wrong would move a clock by as much as it is.
    """
    keep = np.ones(len(more), bool)
    low, high = np.minimum(more.first, more.second), np.maximum(more.first, more.second)
    for one, other in np.unique(np.stack([low, high], axis=1), axis=0).tolist():
        rows = (low == one) & (high == other)
        known = told.take(_of(told, one, other))
        both = Links.concat((known, more.take(rows)))
        keep[rows] = _two_sided(both) and (not len(known) or _gap(both, one) <= max(TOLERANCE, _gap(known, one)))
    return keep


def _two_sided(links: Links) -> bool:
    """Whether links of two ranks bound their clocks both ways."""
    return bool(np.any(links.both)) or len(np.unique(links.first)) > 1


def _of(links: Links, one: int, other: int) -> Bools:
    """Which links are of two ranks."""
    mine: Bools = ((links.first == one) & (links.second == other)) | ((links.first == other) & (links.second == one))
    return mine


def _gap(links: Links, one: int) -> float:
    """By how much the links of two ranks contradict each other; the line is what to add to the clock of the other."""
    ahead = links.first == one
    begun, over = (np.where(ahead, a, b) for a, b in _sides(links))
    asked, gone = (np.where(ahead, b, a) for a, b in _sides(links))
    begun, over, asked, gone = begun - begun[0], over - begun[0], asked - asked[0], gone - asked[0]
    low, high = ahead | links.both, ~ahead | links.both
    below, above = (begun - gone).astype(np.float64), (over - asked).astype(np.float64)
    return gap((((begun + gone) / 2)[low], below[low]), (((over + asked) / 2)[high], above[high]))


def _sides(links: Links) -> tuple[tuple[Times, Times], tuple[Times, Times]]:
    """Starts, and ends, of both intervals."""
    return (links.start_first, links.start_second), (links.end_first, links.end_second)
