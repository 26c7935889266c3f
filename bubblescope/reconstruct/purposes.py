"""What groups without a description are for, told by when they communicate and how.

Tensor, context and expert parallelism communicate in every forward, and what comes out of one layer goes
into the next: all-reduces, reduce-scatters, all-to-alls. A sharded replica gathers its weights in every
forward and scatters gradients in the backward, so that an all-gather alone says nothing of the stage.
What only backwards ask for are gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.groups import Purpose, serves
from bubblescope.reconstruct.actions import Ranges
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST

__all__ = ["with_purposes"]

USUAL = 0.9
"""Share of a rank's forwards in which what belongs to the stage's own computation is found."""

_OF_LAYERS = frozenset({"all_reduce", "reduce_scatter", "all_to_all"})
_OF_GRADIENTS = frozenset({"all_reduce", "reduce_scatter"})


def with_purposes(shared: Talk, ranges: Ranges, borders: Times) -> Talk:
    """Collectives with the purpose of their group where it shows.

    Args:
        shared: collectives, in host order.
        ranges: host ranges of actions, in time order.
        borders: host moments that no action reaches over, sorted; up to one, what follows an action is its own.
    """
    open_ = np.array([serves(call) is None for call in shared.calls], bool)
    if not len(ranges) or not np.any(open_[shared.row]):
        return shared
    action = _asked(shared.units.host, ranges, borders)
    number = {call: i for i, call in enumerate(shared.calls)}
    row = shared.row.copy()
    for mine in _groups(shared, open_[shared.row] & (action != NONE)):
        purpose = _purpose(shared, mine, action, ranges)
        if purpose is not None:
            said = [replace(shared.calls[c], purpose=purpose) for c in shared.row[mine].tolist()]
            row[mine] = [number.setdefault(call, len(number)) for call in said]
    return replace(shared, calls=tuple(number), row=row)


def _asked(host: Times, ranges: Ranges, borders: Times) -> Ints:
    """The action in which each moment lies, or that it follows before the next border; NONE elsewhere."""
    row = np.searchsorted(ranges.start, host, "right") - 1
    same = np.searchsorted(borders, ranges.end[row]) == np.searchsorted(borders, host)
    return np.where((row >= 0) & (host != NO_HOST) & (same | (host <= ranges.end[row])), row, NONE)


def _groups(shared: Talk, asked: Bools) -> Iterator[Bools]:
    """Which rows are of one group that nobody describes; of calls that name no group those of one operation."""
    keys = [(call.group, call.ranks) if call.group or call.ranks else (call.op, ()) for call in shared.calls]
    for key in sorted({keys[c] for c in np.unique(shared.row[asked]).tolist()}, key=repr):
        yield asked & np.array([k == key for k in keys], bool)[shared.row]


def _purpose(shared: Talk, mine: Bools, action: Ints, ranges: Ranges) -> Purpose | None:
    """What the collectives of a group are for, as far as the actions that asked for them tell."""
    forward = ranges.kind == Kind.F
    in_forward = mine & forward[action]
    ops, others = ({shared.calls[c].op for c in shared.row[rows].tolist()} for rows in (in_forward, mine & ~in_forward))
    if not ops:
        return "dp" if others <= _OF_GRADIENTS else None
    if len(np.unique(action[in_forward])) < USUAL * int(forward.sum()):
        return None
    if ops & _OF_LAYERS:
        return "ep" if ops == {"all_to_all"} else "tp"
    return "dp" if ops == {"all_gather"} and "reduce_scatter" in others else None
