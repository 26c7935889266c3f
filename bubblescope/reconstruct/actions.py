"""From host ranges to actions: what was asked for inside a range is the action, and ran when its units ran."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Ints, Times
from bubblescope.model.spans import union_by_owner
from bubblescope.model.timeline import Actions, Work
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.units import Units

__all__ = ["begun", "build", "extent", "finished"]


def build(ranges: Ranges, step: Ints, work: Units, shared: Units) -> tuple[Actions, Work, Ints, Ints]:
    """Attribute units to actions.

    Args:
        ranges: host ranges of actions in time order.
        step: row of the step of each range; ranges outside every step (NONE) are left out.
        work: units in host order.
        shared: collectives in host order.

    Returns:
        The actions that have work, in order of its start; all work with the action that owns it; the
        action that asked for each collective; and the action that each range became, if it had work.
    """
    whole = _first_pieces(ranges)
    owner = whole[owners(ranges.start, ranges.end, work.host)]
    begun = np.full(len(ranges), np.iinfo(np.int64).max)
    ended = np.full(len(ranges), np.iinfo(np.int64).min)
    mine = owner >= 0
    np.minimum.at(begun, owner[mine], work.start[mine])
    np.maximum.at(ended, owner[mine], work.end[mine])
    alive = np.flatnonzero((ended > begun) & (step >= 0))
    order = alive[np.lexsort((ended[alive], begun[alive]))]
    place = np.full(len(ranges) + 1, NONE)  # one more row, so that NONE maps to NONE
    place[order] = np.arange(len(order))
    kept = ranges.take(order)
    ids = (kept.kind, kept.stage, kept.microbatch, kept.slice, kept.block, kept.chunk)
    actions = Actions(begun[order], ended[order], step[order], *ids)
    asked = place[whole[owners(ranges.start, ranges.end, shared.host)]]
    action, start, end = union_by_owner(place[owner], work.start, work.end)
    return actions, Work(start, end, action), asked, place[whole[:-1]]


def extent(ranges: Ranges, work: Units) -> tuple[Times, Times]:
    """The host moments of the first and of the last work that was asked for inside each range.

    Where there is none the first is later than the last. `work` is in host order.
    """
    row = owners(ranges.start, ranges.end, work.host)
    first, last = np.full(len(ranges), np.iinfo(np.int64).max), np.full(len(ranges), np.iinfo(np.int64).min)
    np.minimum.at(first, row[row >= 0], work.host[row >= 0])
    np.maximum.at(last, row[row >= 0], work.host[row >= 0])
    return first, last


def begun(ranges: Ranges, work: Units) -> Times:
    """The host moment at which the first work of each range was asked for; where there is none, the range's start."""
    first, last = extent(ranges, work)
    return np.where(first <= last, first, ranges.start)


def finished(ranges: Ranges, step: Ints, cut_off: Times) -> Ints:
    """The steps of ranges, NONE for actions that asked for something at the sorted moments `cut_off`, which never ran.

    What is left of them is no measure of their time; without them their step counts as incomplete.
    """
    first = np.searchsorted(cut_off, ranges.start)
    whole = _first_pieces(ranges)
    broken = whole[:-1][np.searchsorted(cut_off, ranges.end, "right") > first]
    return np.where(np.isin(whole[:-1], broken), NONE, step)


def _first_pieces(ranges: Ranges) -> Ints:
    """For each range the first piece of its action, which mostly is itself; one more row maps NONE to NONE."""
    first = np.append(np.arange(len(ranges)), NONE)
    pieces = np.flatnonzero(ranges.block != NONE)
    if len(pieces):
        keys = np.stack((ranges.block[pieces], ranges.kind[pieces].astype(np.int32)))
        _, begin, index = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        first[pieces] = pieces[begin[index.reshape(-1)]]
    return first
