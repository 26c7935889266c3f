"""What each layer took of an action: the units that were asked for inside its range.

A forward's are in the ranges themselves. A backward runs in C++, where nobody opens ranges: there the operator that
carries autograd's number of a forward operator is of that operator's layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.layer_names import read_layer
from bubblescope.model.spans import union_by_owner
from bubblescope.model.timeline import LayerWork
from bubblescope.model.trace import Annotations, RankTrace
from bubblescope.reconstruct.autograd import links
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.units import Units

__all__ = ["layer_work"]

_MOST_FAMILIES = 16
"""More names that number something are no layers of one model."""


@dataclass(frozen=True, eq=False)
class _Named(Columns):
    """Host ranges of layers: `family` in order of their names' first appearance, the number for either way, or -1."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    thread: Ints = column(np.int32)
    family: Ints = column(np.int32)
    forward: Ints = column(np.int32)
    backward: Ints = column(np.int32)


def layer_work(trace: RankTrace, ranges: Ranges, place: Ints, units: Units) -> LayerWork:
    """Nanoseconds of each layer in each action; empty where no range tells layers.

    Args:
        trace: the rank's events.
        ranges: host ranges of actions in time order.
        place: the action that each of them became, or NONE.
        units: the actions' own work and collectives.
    """
    rows = _outer(_named(trace), ranges)
    if not len(rows) or not len(units):
        return LayerWork.empty()
    units = units.in_host_order()
    action = owners(ranges.start, ranges.end, units.host)
    forward = np.append(ranges.kind == Kind.F, False)[action]
    numbers = _numbers(rows)
    row = _inside(rows, units.host, units.thread)
    told = np.where(forward, numbers[0][row], numbers[1][row])
    if np.any(~forward & (action != NONE) & (told == NONE)):
        told = np.where(forward | (told != NONE), told, _by_autograd(trace, rows, numbers[0], ranges, units))
    action = np.append(place, NONE)[action]
    return _summed(action, told, units)


def _named(trace: RankTrace) -> _Named:
    """All ranges that name a layer, in time order."""
    both = Annotations.concat((trace.annotations, trace.frames))
    known = {int(i): layer for i in np.unique(both.name) if (layer := read_layer(trace.names[i])) is not None}
    rows = both.take(np.isin(both.name, list(known)))
    rows = rows.take(np.lexsort((rows.end, rows.start)))
    told = [known[name] for name in rows.name.tolist()]
    families = {family: i for i, family in enumerate(dict.fromkeys(layer.family for layer in told))}
    if not 0 < len(families) <= _MOST_FAMILIES:
        return _Named.empty()
    ids = np.array([(families[layer.family], layer.forward, layer.backward) for layer in told], np.int64)
    return _Named(rows.start, rows.end, rows.thread, *ids.T)


def _outer(rows: _Named, ranges: Ranges) -> _Named:
    """The same without families of what holds layers (a stack of them) and of what is inside layers (experts).

    What holds layers of another family, and stands for only one in every action, is no layer.
    """
    families = np.unique(rows.family).tolist()
    if len(families) < 2:
        return rows
    most = {family: _most_at_once(rows.take(rows.family == family), ranges) for family in families}
    parts = {family: rows.take(rows.family == family) for family in families}
    holds = {(a, b) for a in families for b in families if a != b and _holds(parts[a], parts[b])}
    stacks = {a for a, b in holds if most[a] == 1 < most[b]}
    inner = {b for a, b in holds if a not in stacks and (b, a) not in holds}
    return rows.take(~np.isin(rows.family, list(stacks | inner)))


def _most_at_once(rows: _Named, ranges: Ranges) -> int:
    """How many numbers stand in the action that has most."""
    action = owners(ranges.start, ranges.end, rows.start)
    number = np.where(rows.forward >= 0, rows.forward, rows.backward)
    pairs = np.unique(np.stack((action, number))[:, action != NONE], axis=1)
    return int(np.bincount(pairs[0]).max(initial=0)) if pairs.size else 0


def _holds(outer: _Named, inner: _Named) -> bool:
    """Whether a range of one family begins inside one of the other and ends there."""
    row = _inside(outer, inner.start, inner.thread)
    inside = row != NONE
    return bool(np.any(inner.end[inside] <= outer.end[row[inside]]))


def _numbers(rows: _Named) -> tuple[Ints, Ints]:
    """Each range's layer for forwards and for backwards, counted over all families; one more row maps NONE to NONE."""
    most = int(max(rows.forward.max(), rows.backward.max())) + 1
    keys = [np.where(n >= 0, rows.family * most + n, NONE) for n in (rows.forward, rows.backward)]
    known = np.unique(np.concatenate(keys))
    known = known[known != NONE]
    forward, backward = (np.append(np.where(key >= 0, np.searchsorted(known, key), NONE), NONE) for key in keys)
    return forward, backward


def _inside(rows: _Named, host: Times, thread: Ints) -> Ints:
    """The innermost range of its thread that holds each moment (sorted), or NONE."""
    result = np.full(len(host), NONE, np.int64)
    for t in np.unique(rows.thread):
        mine, theirs = np.flatnonzero(thread == t), np.flatnonzero(rows.thread == t)
        row = owners(rows.start[theirs], rows.end[theirs], host[mine])
        result[mine] = np.append(theirs, NONE)[row]
    return result


def _by_autograd(trace: RankTrace, rows: _Named, number: Ints, ranges: Ranges, units: Units) -> Ints:
    """The layer of the forward operator that leads to each unit's backward operator, or NONE.

    What has no number of its own (the accumulation of a gradient) or lies in no backward operator (a collective
    behind it) goes with the operator before it in the same action.
    """
    backward, forward, partner = links(trace)
    linked = partner != NONE
    if not linked.any():
        return np.full(len(units), NONE)
    order = np.argsort(forward.start, kind="stable")
    layer = np.full(len(forward) + 1, NONE)
    layer[order] = number[_inside(rows, forward.start[order], forward.thread[order])]
    around, caller = (owners(ranges.start, ranges.end, host) for host in (backward.start, units.host))
    root = np.full(len(units), NONE, np.int64)
    for t in np.unique(backward.thread):
        mine, theirs = np.flatnonzero(units.thread == t), np.flatnonzero(backward.thread == t)
        at = np.searchsorted(backward.start[theirs], units.host[mine], "right") - 1
        held = (at >= 0) & (around[theirs[at]] == caller[mine])
        root[mine[held]] = theirs[at[held]]
    told = _carried(layer[partner], linked, around)
    return np.append(told, NONE)[root]


def _carried(layer: Ints, told: Bools, action: Ints) -> Ints:
    """The layers of operators in time order; one that is not told is that of the last one told in the same action."""
    last = np.maximum.accumulate(np.where(told, np.arange(len(told)), NONE))
    result: Ints = np.where((last != NONE) & (action[last] == action), layer[last], NONE)
    return result


def _summed(action: Ints, layer: Ints, units: Units) -> LayerWork:
    """The union of each action's and layer's units; what runs at the same time counts once."""
    mine = (action >= 0) & (layer >= 0)
    layers = int(layer.max(initial=0)) + 1
    key, start, end = union_by_owner(action[mine] * layers + layer[mine], units.start[mine], units.end[mine])
    keys, first = np.unique(key, return_index=True)
    length = np.add.reduceat(end - start, first) if len(key) else np.empty(0, np.int64)
    return LayerWork(keys // layers, keys % layers, length)
