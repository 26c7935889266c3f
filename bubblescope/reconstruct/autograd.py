"""Actions from autograd's sequence numbers, where nobody wrote a label.

Every operator of a forward that creates a node of the graph carries the node's number, and the
backward operator carries it again. One backward call runs its nodes in falling order of their
numbers, so a rise begins the next call; the forward operators that a call links to are the
forward of its micro-batch.

Numbers are shared by operators that create no node (they show the number of the next one), so
that a backward operator belongs to the latest earlier forward operator of its number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.spans import Spans, union_by_owner
from bubblescope.model.trace import Ops, RankTrace
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import matching, outermost

__all__ = ["Blocks", "backward_roots", "backward_starts", "find_blocks"]

_BACKWARD = r"autograd::engine::evaluate_function: "
_NO_GRAPH = r"(c10d|_c10d_functional)::|record_param_comms$"


@dataclass(frozen=True, eq=False)
class Blocks(Columns):
    """Host ranges of actions in time order; a forward and its backward share `link`.

    `link` is -1 for a backward whose forward was not recorded.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    kind: Ints = column(np.int8)
    link: Ints = column(np.int64)


def find_blocks(trace: RankTrace, cuts: Times, fences: Times) -> Blocks:
    """The forwards and backwards of a rank.

    `cuts` are the host moments of pipeline sends and receives, sorted: no action reaches over one.
    Without them a drain that takes micro-batches in reverse would look like one long backward.
    `fences` are further moments that no forward reaches over: steps and optimizers begin there.
    """
    backward = backward_roots(trace)
    forward = _forward_nodes(trace, backward)
    if not len(backward) or not len(forward):
        return Blocks.empty()
    partner = _partners(backward, forward)
    forward = _widened(forward, trace)
    segment = np.where(partner >= 0, np.searchsorted(cuts, forward.start[partner]), NONE)
    call = _calls(backward, cuts, np.where(_shared(partner, segment), NONE, segment))
    linked = partner >= 0
    if not linked.any():
        return Blocks.empty()
    linked[linked] = _in_main_segment(call[linked], segment[linked])
    group, low, high = _forward_ranges(call[linked], forward, partner[linked])
    if len(cuts):
        high = _stretch(low, high, forward, np.unique(np.concatenate((cuts, fences, backward.start))))
    return _assemble(backward, call, group, low, high)


def backward_starts(trace: RankTrace) -> Times:
    """Host moments at which a backward operator starts, sorted."""
    return np.sort(backward_roots(trace).start)


def backward_roots(trace: RankTrace) -> Ops:
    """Outermost backward operators, by thread and time."""
    ops = trace.ops
    named = matching(trace.names, _BACKWARD)[ops.name]
    roots = ops.take(named | ((ops.forward_thread > 0) & (ops.sequence >= 0)))
    roots = roots.take(outermost(roots))
    return roots.take(np.lexsort((roots.start, roots.thread)))


def _forward_nodes(trace: RankTrace, backward: Ops) -> Ops:
    """Operators that may have created a node.

    What runs inside a backward operator is recomputation and belongs to the backward.
    """
    ops = trace.ops
    nodes = ops.take((ops.sequence >= 0) & (ops.forward_thread <= 0) & ~matching(trace.names, _NO_GRAPH)[ops.name])
    return nodes.take(_around(nodes, backward) < 0)


def _widened(nodes: Ops, trace: RankTrace) -> Ops:
    """The same operators, each as long as the outermost operator around it."""
    outer = trace.ops.take(outermost(trace.ops))
    around = _around(nodes, outer)
    held = around >= 0
    start, end = nodes.start.copy(), nodes.end.copy()
    start[held], end[held] = outer.start[around[held]], np.maximum(end[held], outer.end[around[held]])
    return nodes.replace(start=start, end=end)


def _around(rows: Ops, outer: Ops) -> Ints:
    """For each row the disjoint operator of `outer` on the same thread that holds its start, or NONE."""
    result = np.full(len(rows), NONE, np.int64)
    for thread in np.unique(rows.thread):
        mine, theirs = np.flatnonzero(rows.thread == thread), np.flatnonzero(outer.thread == thread)
        if len(theirs):
            theirs = theirs[np.argsort(outer.start[theirs], kind="stable")]
            at = np.searchsorted(outer.start[theirs], rows.start[mine], "right") - 1
            held = (at >= 0) & (rows.start[mine] < outer.end[theirs[at]])
            result[mine[held]] = theirs[at[held]]
    return result


def _partners(backward: Ops, forward: Ops) -> Ints:
    """For each backward operator the row of the latest earlier forward operator of its number, or NONE."""
    order = np.lexsort((forward.start, forward.sequence))
    sequence, start = forward.sequence[order], forward.start[order]
    wanted = np.lexsort((backward.start, backward.sequence))
    # Merge both sorted lists: the position of (number, time) among the forwards.
    both = np.lexsort(
        (
            np.concatenate((np.zeros(len(order)), np.ones(len(wanted)))),
            np.concatenate((start, backward.start[wanted])),
            np.concatenate((sequence, backward.sequence[wanted])),
        )
    )
    is_forward = both < len(order)
    before = np.cumsum(is_forward)[~is_forward] - 1
    same = (before >= 0) & (sequence[before] == backward.sequence[wanted]) & (backward.sequence[wanted] >= 0)
    result = np.full(len(backward), NONE, np.int64)
    result[wanted] = np.where(same, order[before], NONE)
    return result


def _shared(partner: Ints, segment: Ints) -> Bools:
    """Links to a node that calls of more than two forwards share: I and W of one forward come to it at two times."""
    linked = np.flatnonzero(partner >= 0)
    run = np.cumsum(np.diff(segment[linked], prepend=NONE) != 0)  # goes on while the links lead to one segment
    times = np.unique(np.stack((partner[linked], run)), axis=1)[0]
    result = np.zeros(len(partner), bool)
    result[linked] = np.bincount(times)[partner[linked]] > 2 if len(times) else False
    return result


def _calls(backward: Ops, cuts: Times, segment: Ints) -> Ints:
    """Number the backward calls: a new one where the thread changes, a cut lies between, or the numbers rise.

    Where there are cuts, what counts is not a rise but that it goes on in the forward of another segment.
    Nodes without a number (gradient accumulation) go with the call they run in.
    """
    told = backward.sequence >= 0
    if len(cuts):
        told &= segment != NONE
    last = np.maximum.accumulate(np.where(told, np.arange(len(backward)), -1))
    previous = np.concatenate(([-1], last[:-1]))
    before = backward.sequence[previous] if not len(cuts) else segment[previous]
    onward = backward.sequence > before if not len(cuts) else segment != before
    onward &= told & (previous >= 0)
    moved = np.concatenate(([True], backward.thread[1:] != backward.thread[:-1]))
    passed = np.searchsorted(cuts, backward.start)
    cut = np.concatenate(([False], passed[1:] != passed[:-1]))
    return np.cumsum(onward | moved | cut) - 1


def _in_main_segment(call: Ints, segment: Ints) -> Bools:
    """Which links lead where most of their call's links lead.

    A node made once and shared by micro-batches (a weight that autocast keeps converted) links every
    call to the first forward; the segments between sends and receives tell such links apart.
    """
    pairs, index, count = np.unique(np.stack((call, segment)), axis=1, return_inverse=True, return_counts=True)
    best = np.lexsort((count, pairs[0]))
    last = np.concatenate((pairs[0][best][1:] != pairs[0][best][:-1], [True]))
    main = np.zeros(pairs.shape[1], bool)
    main[best[last]] = True
    result: Bools = main[index.reshape(-1)]
    return result


def _forward_ranges(call: Ints, forward: Ops, partner: Ints) -> tuple[dict[int, int], Times, Times]:
    """Join the forward ranges of calls that overlap: two calls into one forward are a split backward.

    Returns the link of each call, and start and end of each link's forward.
    """
    calls = np.unique(call)
    index = np.searchsorted(calls, call)
    low = np.full(len(calls), np.iinfo(np.int64).max)
    high = np.full(len(calls), np.iinfo(np.int64).min)
    np.minimum.at(low, index, forward.start[partner])
    np.maximum.at(high, index, forward.end[partner])
    joined = Spans.of(low, np.maximum(high - 1, low + 1))  # ranges that only touch are two forwards
    link = np.searchsorted(joined.start, low, "right") - 1
    end = joined.end.copy()
    np.maximum.at(end, link, high)
    return dict(zip(calls.tolist(), link.tolist(), strict=True)), joined.start, end


def _stretch(low: Times, high: Times, forward: Ops, borders: Times) -> Times:
    """Ends of the forwards, each drawn out over what follows it before the next border: work that needs no gradient.

    Starts stay, as what precedes a forward may be the loading of its data. A stretch with more
    than one forward is left as it is, as nothing tells where one ends.
    """
    mine, every = np.searchsorted(borders, low, "right"), np.searchsorted(borders, forward.start, "right")
    alone = np.bincount(mine, minlength=len(borders) + 1)[mine] == 1
    last = np.full(len(borders) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, every, forward.end)
    result: Times = np.where(alone, np.maximum(high, last[mine]), high)
    return result


def _assemble(backward: Ops, call: Ints, link_of: dict[int, int], low: Times, high: Times) -> Blocks:
    """One forward a link, one backward a call; two calls apart in time are I, then W."""
    number, start, end = union_by_owner(call, backward.start, backward.end)
    calls = np.unique(number)
    first = np.searchsorted(number, calls, "left")
    last = np.searchsorted(number, calls, "right") - 1
    link = np.array([link_of.get(int(c), NONE) for c in calls], np.int64)
    begins, ends = start[first], end[last]
    kind, keep, ends = _kinds(link, begins, ends, low)
    forwards = Blocks(low, high, np.full(len(low), Kind.F), np.arange(len(low)))
    blocks = Blocks.concat((forwards, Blocks(begins, ends, kind, link).take(keep)))
    return blocks.take(np.argsort(blocks.start, kind="stable"))


def _kinds(link: Ints, begins: Times, ends: Times, forward_starts: Times) -> tuple[Ints, Bools, Times]:
    """Kind of each call: B, or I and W where another action runs between the two calls of a forward.

    Calls that follow each other directly are one action: the later ones are folded into the first.
    """
    kind = np.full(len(link), Kind.B, np.int64)
    keep = np.ones(len(link), bool)
    ends = ends.copy()
    others = np.sort(np.concatenate((begins, forward_starts)))
    latest: dict[int, tuple[int, int]] = {}  # for each link the row of its last action, and where its last call began
    for row in np.argsort(begins, kind="stable").tolist():
        mine, begin = int(link[row]), int(begins[row])
        action, before = latest.get(mine, (row, begin)) if mine != NONE else (row, begin)
        if np.searchsorted(others, begin) > np.searchsorted(others, before, "right"):
            kind[action], kind[row] = (Kind.W if kind[action] == Kind.W else Kind.I), Kind.W
            action = row
        elif action != row:
            keep[row], ends[action] = False, max(ends[action], ends[row])
        latest[mine] = action, begin
    return kind, keep, ends
