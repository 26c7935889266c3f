"""What groups without a description are for, told by when they communicate and how.

Tensor, context and expert parallelism do the same in every forward and every backward, as what comes out
of one layer goes into the next: all-reduces, all-to-alls, rings, or gathers with scatters. A sharded replica
gathers its weights in forwards and scatters gradients in backwards. What only backwards ask for are
gradients, if a group is named: without one the norm of gradients behind the last backward looks alike.
What only forwards ask for may be the mean of a loss, and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.groups import Purpose, serves
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST

__all__ = ["USUAL", "asked", "with_purposes"]

USUAL = 0.9
"""Share of a rank's forwards in which what belongs to the stage's own computation is found."""

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
    action = asked(shared.units.host, ranges, borders)
    for mine in _groups(shared, open_[shared.row] & (action != NONE)):
        purpose = _purpose(shared, mine, action, ranges)
        if purpose is not None:
            shared = shared.told(mine, purpose)
    return shared


def asked(host: Times, ranges: Ranges, borders: Times) -> Ints:
    """The action in which each moment lies, or that it follows before the next border; NONE elsewhere."""
    row = np.searchsorted(ranges.start, host, "right") - 1
    same = np.searchsorted(borders, ranges.end[row]) == np.searchsorted(borders, host)
    return np.where((row >= 0) & (host != NO_HOST) & (same | (host <= ranges.end[row])), row, NONE)


def _groups(shared: Talk, asked: Bools) -> Iterator[Bools]:
    """Which rows are of one group that nobody describes.

    Calls that name no group are of one if they are the same operation on the same stream: NCCL's work for each
    group has its own in torch (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
    """
    keys = [(call.group, call.ranks) if call.group or call.ranks else (call.op, ()) for call in shared.calls]
    named = np.array([bool(call.group or call.ranks) for call in shared.calls], bool)
    lane = np.where(named[shared.row], NONE, shared.units.lane)
    pairs = {(keys[c], on) for c, on in zip(shared.row[asked].tolist(), lane[asked].tolist(), strict=True)}
    for key, on in sorted(pairs, key=repr):
        yield asked & np.array([k == key for k in keys], bool)[shared.row] & (lane == on)


def _purpose(shared: Talk, mine: Bools, action: Ints, ranges: Ranges) -> Purpose | None:
    """What the collectives of a group are for, as far as the actions that asked for them tell."""
    forward = ranges.kind == Kind.F
    backward = (ranges.kind == Kind.B) | (ranges.kind == Kind.I)
    in_forward = mine & forward[action]
    ops, others = ({shared.calls[c].op for c in shared.row[rows].tolist()} for rows in (in_forward, mine & ~in_forward))
    if not ops:
        named = all(shared.calls[c].group or shared.calls[c].ranks for c in shared.row[mine].tolist())
        return "dp" if named and others <= _OF_GRADIENTS else None
    if not _usual(action[in_forward], forward):
        return None
    both = ops & others if backward.any() else ops
    of_layers = bool(both & {"all_reduce", "all_to_all"}) or both >= {"all_gather", "reduce_scatter"}
    of_layers |= both == {"send_recv"} and bool(backward.any())
    if of_layers and _usual(action[mine & backward[action]], backward):
        return "ep" if ops == {"all_to_all"} else "cp" if ops == {"send_recv"} else "tp"
    return "dp" if not of_layers and "all_gather" in ops and "reduce_scatter" in others else None


def _usual(action: Ints, of_kind: Bools) -> bool:
    """Whether nearly all actions of a kind are among the given ones."""
    return len(np.unique(action)) >= USUAL * int(of_kind.sum())
