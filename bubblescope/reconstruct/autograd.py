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
from bubblescope.model.columns import Bools, Columns, Ints, Times, column, distinct, pairs
from bubblescope.model.spans import Spans, union_by_owner
from bubblescope.model.trace import Ops, RankTrace
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.turns import turns
from bubblescope.reconstruct.units import matching, outermost

__all__ = ["Blocks", "backward_roots", "backward_starts", "find_blocks", "forwards_of", "links"]

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
    if not np.any(partner >= 0):
        return Blocks.empty()
    call, own, again = _told_apart(backward, forward, partner, cuts)
    turned = turns(forward, cuts, own, np.where(np.isin(call, list(again)), NONE, call)) if len(cuts) else cuts
    if len(turned):
        cuts = np.sort(np.concatenate((cuts, turned)))
        call, own, again = _told_apart(backward, forward, partner, cuts)
    linked = partner >= 0
    segment = np.searchsorted(cuts, forward.start[partner[linked]])
    linked[linked] = _in_main_segment(call[linked], segment)
    forward = _widened(forward, trace)
    group, low, high = _forward_ranges(call[linked], forward, partner[linked])
    if len(cuts):
        high = _stretch(low, high, forward, distinct(np.concatenate((cuts, fences, backward.start))))
    return _assemble(backward, call, again, (group, low, high))


def _told_apart(backward: Ops, forward: Ops, partner: Ints, cuts: Times) -> tuple[Ints, Ints, set[int]]:
    """The number of each backward operator's call, its forward operator less shared ones, and the calls that are W."""
    segment = np.where(partner >= 0, np.searchsorted(cuts, forward.start[partner]), NONE)
    shared = _shared(partner, segment)
    own = np.where(shared, NONE, partner)
    ran = np.zeros(len(backward), np.int64)
    for thread in np.unique(backward.thread):
        mine = backward.thread == thread
        ran[mine] = np.searchsorted(np.sort(forward.start[forward.thread == thread]), backward.start[mine])
    call = _calls(backward, (cuts, ran), np.where(shared, NONE, segment), own)
    return call, own, _second_visits(call, own)


def forwards_of(trace: RankTrace, start: Times, end: Times, is_forward: Bools) -> Ints:
    """For each host range a number that a backward shares with its forward, or -1 where no operator leads to one.

    A backward may link to several forwards (a weight converted once for all): the one it links to most counts.
    """
    backward, forward, partner = links(trace)
    linked = partner >= 0
    if not linked.any():
        return np.full(len(start), NONE)
    source = owners(start, end, backward.start)[linked]
    target = owners(start, end, forward.start)[partner[linked]]
    good = (source >= 0) & (target >= 0) & ~is_forward[source] & is_forward[target]
    found = pairs(source[good], target[good])
    result = np.where(is_forward, np.arange(len(start)), NONE)
    most = np.lexsort((found.count, found.first))  # the last one written counts
    result[found.first[most]] = found.second[most]
    return result


def links(trace: RankTrace) -> tuple[Ops, Ops, Ints]:
    """Outermost backward and all forward operators in time order; for each backward one the row of its forward's."""
    backward = backward_roots(trace)
    forward = _forward_nodes(trace, backward)
    forward = forward.take(np.argsort(forward.start, kind="stable"))
    backward = backward.take(np.argsort(backward.start, kind="stable"))
    if not len(backward) or not len(forward):
        return backward, forward, np.full(len(backward), NONE)
    return backward, forward, _partners(backward, forward)


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
    times = pairs(partner[linked], run).first
    result = np.zeros(len(partner), bool)
    result[linked] = np.bincount(times)[partner[linked]] > 2 if len(times) else False
    return result


def _calls(backward: Ops, between: tuple[Times, Ints], segment: Ints, partner: Ints) -> Ints:
    """Number the backward calls: a new one where the thread changes, something lies between, or the numbers rise.

    What lies `between` are cuts, and forward operators of the same thread: the number that ran before each is given.

    Where there are cuts, what counts is not a rise but that it goes on in the forward of another segment, or
    comes to a node for the second time. Nodes without a number (gradient accumulation) go with the call they
    run in.
    """
    cuts, ran = between
    told = backward.sequence >= 0
    if len(cuts):
        told &= segment != NONE
    last = np.maximum.accumulate(np.where(told, np.arange(len(backward)), -1))
    previous = np.concatenate(([-1], last[:-1]))
    before = backward.sequence[previous] if not len(cuts) else segment[previous]
    onward = backward.sequence > before if not len(cuts) else segment != before
    moved = np.concatenate(([True], backward.thread[1:] != backward.thread[:-1]))
    passed = np.searchsorted(cuts, backward.start)
    cut = np.concatenate(([False], (passed[1:] != passed[:-1]) | (ran[1:] != ran[:-1])))
    stretch = np.cumsum(moved | cut)
    onward &= told & (previous >= 0) & (stretch[previous] == stretch)
    begins = onward | moved | cut
    return _once_each(begins, partner, told & (backward.sequence > backward.sequence[previous]))


def _once_each(begins: Bools, partner: Ints, rises: Bools) -> Ints:
    """Number calls so that none comes to a node twice: the next one begins where the numbers rose before it did."""
    rise = np.maximum.accumulate(np.where(rises, np.arange(len(rises)), 0))
    rows = np.flatnonzero(partner != NONE)
    rows = rows[np.diff(partner[rows], prepend=NONE) != 0]  # several operators in a row may be of one node
    while True:
        call = np.cumsum(begins) - 1
        visits = rows[np.lexsort((rows, partner[rows], call[rows]))]
        same = (call[visits][1:] == call[visits][:-1]) & (partner[visits][1:] == partner[visits][:-1])
        before, again = visits[:-1][same], visits[1:][same]
        if not len(again):
            break
        begins = begins.copy()
        begins[np.where(rise[again] > before, rise[again], again)] = True
    return np.cumsum(begins | _goes_on(call, partner)) - 1


def _goes_on(call: Ints, partner: Ints) -> Bools:
    """Where a call that goes through a forward for the second time goes on through another for the first time.

    That is a weight gradient with the input gradient of the stage before on the same rank right behind it: its
    numbers fall on. A node that only weight gradients come to is visited once, those of the other forward again.
    """
    rows = np.flatnonzero(partner != NONE)
    visits = rows[np.lexsort((rows, partner[rows]))]
    more = partner[visits][1:] == partner[visits][:-1]
    later, earlier = np.zeros(len(call), bool), np.zeros(len(call), bool)  # whether another call comes, or came, too
    later[visits[:-1][more]] = earlier[visits[1:][more]] = True
    last_again = np.full(int(call.max(initial=-1)) + 1, NONE)
    np.maximum.at(last_again, call[earlier], np.flatnonzero(earlier))
    tail = rows[(rows > last_again[call[rows]]) & (last_again[call[rows]] != NONE)]
    whole = np.ones(len(last_again), bool)
    np.logical_and.at(whole, call[tail], later[tail])
    result = np.zeros(len(call), bool)
    first = np.unique(call[tail], return_index=True)[1]
    result[tail[first][whole[call[tail[first]]]]] = True
    return result


def _in_main_segment(call: Ints, segment: Ints) -> Bools:
    """Which links lead where most of their call's links lead.

    A node made once and shared by micro-batches (a weight that autocast keeps converted) links every
    call to the first forward; the segments between sends and receives tell such links apart.
    """
    found = pairs(call, segment)
    best = np.lexsort((found.count, found.first))
    last = np.concatenate((found.first[best][1:] != found.first[best][:-1], [True]))
    main = np.zeros(len(best), bool)
    main[best[last]] = True
    result: Bools = main[found.index]
    return result


_Forwards = tuple[dict[int, int], Times, Times]
"""The link of each backward call, and start and end of the forward of each link."""


def _forward_ranges(call: Ints, forward: Ops, partner: Ints) -> _Forwards:
    """Join the forward ranges of calls that overlap: two calls into one forward are a split backward.

    Returns the link of each call, and start and end of each link's forward.
    """
    calls = distinct(call)
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


def _second_visits(call: Ints, partner: Ints) -> set[int]:
    """The calls that come to a node to which an earlier call came: one for the input's gradient, then the weights'."""
    rows = np.flatnonzero(partner != NONE)
    rows = rows[np.lexsort((call[rows], partner[rows]))]
    again = (partner[rows][1:] == partner[rows][:-1]) & (call[rows][1:] != call[rows][:-1])
    return set(call[rows][1:][again].tolist())


def _assemble(backward: Ops, call: Ints, again: set[int], forwards: _Forwards) -> Blocks:
    """One forward a link, one backward a call; two calls to the same nodes, or apart in time, are I, then W."""
    link_of, low, high = forwards
    number, start, end = union_by_owner(call, backward.start, backward.end)
    calls = distinct(number)
    first = np.searchsorted(number, calls, "left")
    last = np.searchsorted(number, calls, "right") - 1
    link = np.array([link_of.get(int(c), NONE) for c in calls], np.int64)
    begins, ends = start[first], end[last]
    kind, keep, ends = _kinds(link, begins, ends, low, np.isin(calls, list(again)))
    forward = Blocks(low, high, np.full(len(low), Kind.F), np.arange(len(low)))
    blocks = Blocks.concat((forward, Blocks(begins, ends, kind, link).take(keep)))
    return blocks.take(np.argsort(blocks.start, kind="stable"))


def _kinds(link: Ints, begins: Times, ends: Times, forward_starts: Times, again: Bools) -> tuple[Ints, Bools, Times]:
    """Kind of each call: B, or I and W where the second of a forward's calls comes `again`, or after another action.

    Other calls that follow each other directly are one action: the later ones are folded into the first.
    """
    kind = np.full(len(link), Kind.B, np.int64)
    keep = np.ones(len(link), bool)
    ends = ends.copy()
    others = np.sort(np.concatenate((begins, forward_starts)))
    latest: dict[int, tuple[int, int]] = {}  # for each link the row of its last action, and where its last call began
    for row in np.argsort(begins, kind="stable").tolist():
        mine, begin = int(link[row]), int(begins[row])
        action, before = latest.get(mine, (row, begin)) if mine != NONE else (row, begin)
        apart = np.searchsorted(others, begin) > np.searchsorted(others, before, "right")
        if apart or (action != row and again[row] and kind[action] != Kind.W):
            kind[action], kind[row] = (Kind.W if kind[action] == Kind.W else Kind.I), Kind.W
            action = row
        elif action != row:
            keep[row], ends[action] = False, max(ends[action], ends[row])
        latest[mine] = action, begin
    return kind, keep, ends
