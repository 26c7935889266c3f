"""From host ranges to actions: what was asked for inside a range is the action, and ran when its units ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.spans import union_by_owner
from bubblescope.model.timeline import Actions, Work
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.autograd import Blocks, forwards_of
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.ranges import NONE, owners
from bubblescope.reconstruct.units import Units

__all__ = [
    "Ranges",
    "begun",
    "build",
    "completed",
    "drawn_out",
    "evaluations_apart",
    "extent",
    "finished",
    "from_blocks",
    "from_labels",
    "lacking",
    "linked",
    "number",
    "recurrences",
    "starts_after",
    "torn",
    "unshared",
]


@dataclass(frozen=True, eq=False)
class Ranges(Columns):
    """Host ranges that are actions, in time order; `link` joins a backward to its forward.

    Ranges of one `block` and one kind are pieces of one action. One is `open` where no more than its operators tell it:
    what the stage asks for behind the last of them may be its own.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)
    block: Ints = column(np.int32)
    link: Ints = column(np.int64)
    chunk: Ints = column(np.int32, absent=-1)
    open: Ints = column(np.int8, absent=0)


def from_labels(labels: Labels, turns: Times) -> Ranges:
    """Ranges that somebody named; one that names a forward and a backward is parted where the backward starts.

    `turns` are the moments at which backward operators start, sorted. Without any inside such a range
    nothing tells the two apart, and each gets half of it.
    """
    start, end = labels.start.copy(), labels.end.copy()
    one = (labels.block[:-1] == labels.block[1:]) & (start[:-1] == start[1:]) & (end[:-1] == end[1:])
    first = np.flatnonzero((labels.block[:-1] >= 0) & one)
    turn = np.append(turns, np.iinfo(np.int64).max)[np.searchsorted(turns, start[first])]
    end[first] = start[first + 1] = np.where(turn < end[first], turn, (start[first] + end[first]) // 2)
    link = np.full(len(labels), NONE)
    ids = (labels.kind, labels.stage, labels.microbatch, labels.slice, labels.block)
    return Ranges(start, end, *ids, link, labels.chunk)


def from_blocks(blocks: Blocks) -> Ranges:
    """Ranges that autograd told; stage and micro-batch are counted later."""
    unknown = np.full(len(blocks), NONE)
    told = Ranges(blocks.start, blocks.end, blocks.kind, unknown, unknown, unknown, unknown, blocks.link)
    return told.replace(open=np.ones(len(told)))


def drawn_out(ranges: Ranges, shared: Times, borders: Times) -> Ranges:
    """The ranges, each open one lasting until the stage's own collectives after it were asked for.

    A tensor-parallel layer ends with a collective that no operator of the graph surrounds. `shared`
    are the host moments of such collectives, `borders` those of messages, steps and optimizers, which
    nothing is drawn over; both sorted.
    """
    if not len(ranges):
        return ranges
    row = np.searchsorted(ranges.start, shared, "right") - 1
    drawn = (row >= 0) & (ranges.open[row] > 0)
    shared, row = shared[drawn], row[drawn]
    before = np.searchsorted(borders, ranges.end[row]) == np.searchsorted(borders, shared)
    end = ranges.end.copy()
    np.maximum.at(end, row[before], shared[before])
    return ranges.replace(end=end)


def lacking(ranges: Ranges) -> bool:
    """Whether no range is a forward, or none a backward of any kind."""
    forward = ranges.kind == Kind.F
    return bool(not forward.any() or forward.all())


def completed(ranges: Ranges, more: Ranges) -> Ranges:
    """The ranges with the forwards of others if none of them is one, and likewise the backwards.

    What begins inside a range that is there already is a part of it. Where links would mix they are dropped.
    """
    forward, others = ranges.kind == Kind.F, more.kind == Kind.F
    wanted = np.where(others, not forward.any(), forward.all())
    inside = owners(ranges.start, ranges.end - 1, more.start) != NONE
    added = more.take(wanted & ~inside)
    if len(ranges) and len(added):
        added = added.replace(link=np.full(len(added), NONE))
    both = Ranges.concat((ranges, added))
    return both.take(np.lexsort((both.end, both.start)))


def linked(ranges: Ranges, trace: RankTrace) -> Ranges:
    """The ranges with a link wherever autograd's numbers lead from a backward without ids to a forward."""
    wanting = (ranges.kind != Kind.F) & (ranges.microbatch == NONE)
    if not wanting.any() or np.any(ranges.link != NONE):
        return ranges
    return ranges.replace(link=forwards_of(trace, ranges.start, ranges.end, ranges.kind == Kind.F))


_Key = tuple[int, int, int, int, int]  # kind, stage, micro-batch, slice, chunk


def unshared(ranges: Ranges) -> Ranges:
    """The ranges without their micro-batches where chunks share the names, as where only `Forward 0` is written.

    Each chunk's forward of a micro-batch comes before any of its backwards, and there are as many of these: so its name
    comes again within a step, and tells neither where steps begin nor which action it is. The forwards of an evaluation
    have no backwards that would make up for them. It takes half of the names, as events may be lost.
    """
    run: dict[tuple[int, ...], tuple[int, int]] = {}  # forwards of a name, and backwards behind them
    shared = set[tuple[int, ...]]()
    for kind, *ids in _keys(ranges):
        name = tuple(ids)
        if kind == Kind.W or ids[1] == NONE:
            continue
        forwards, backwards = run.get(name, (0, 0))
        if kind == Kind.F:
            run[name] = 1 if backwards else forwards + 1, 0
            continue
        run[name] = forwards, backwards + 1
        if 2 <= backwards + 1 <= forwards:
            shared.add(name)
    if not shared or 2 * len(shared) < len(run):
        return ranges
    return ranges.replace(microbatch=np.full(len(ranges), NONE))


def torn(ranges: Ranges, step: Ints) -> bool:
    """Whether the steps cut through the pipeline, in at least half of them.

    Then a step holds an action twice, or a backward before its own forward, or one whose forward
    lies in another step, by its link or by its name.
    """
    held: dict[int, set[_Key]] = {}
    forward_in: dict[int, int] = {}
    named_in: dict[_Key, int] = {}
    bad: set[int] = set()
    for s, key, link in zip(step.tolist(), _keys(ranges), ranges.link.tolist(), strict=True):
        mine = held.setdefault(s, set())
        late = key[0] == Kind.F and any((kind, *key[1:]) in mine for kind in (Kind.B, Kind.I, Kind.W))
        if key[0] == Kind.F:
            named_in[key] = s
            if link != NONE:
                forward_in[link] = s
        elsewhere = key[0] != Kind.F and key[2] != NONE and named_in.get((int(Kind.F), *key[1:]), s) != s
        if elsewhere or (key[2] != NONE and (key in mine or late)) or forward_in.get(link, s) != s:
            bad.add(s)
        mine.add(key)
    return len(bad - {NONE}) * 2 >= len(held.keys() - {NONE}) > 0 and bool(bad - {NONE})


def recurrences(ranges: Ranges) -> Times:
    """Host moments at which a new step begins, by what the actions are called.

    A named action that comes again begins one, and so does the first forward of micro-batch 0, on the
    rank's first stage, if a piece of an earlier step precedes it. An action whose name has no
    micro-batch comes again with each of them, which says nothing.
    """
    ranges = ranges.take(ranges.microbatch != NONE)
    keys = _keys(ranges)
    opening = min((key for key in keys if key[0] == Kind.F and key[2] == 0), default=None)
    seen: set[_Key] = set()
    cuts, begun = [], False
    for key, start in zip(keys, ranges.start.tolist(), strict=True):
        first = not begun and key == opening
        if key in seen or (first and seen):
            cuts.append(start)
            seen.clear()
        begun |= first
        seen.add(key)
    return np.array(cuts, np.int64)


def starts_after(ranges: Ranges, optimizer: Times) -> Times:
    """Host moments at which the first action behind an optimizer begins; `optimizer` are its units' moments, sorted."""
    passed = np.searchsorted(optimizer, ranges.start)
    result: Times = ranges.start[np.flatnonzero(np.diff(passed, prepend=0) > 0)]
    return result


def evaluations_apart(ranges: Ranges, cuts: Times) -> Times:
    """The moments at which steps begin, and those behind an evaluation that runs between an optimizer and a step.

    Such a step begins with more forwards than it has backwards for, and without them it is as large as another one that
    has as many of both. `cuts` are sorted.
    """
    step = np.searchsorted(cuts, ranges.start, "right")
    forward = ranges.kind == Kind.F
    forwards = np.bincount(step[forward], minlength=len(cuts) + 1)
    backwards = np.bincount(step[~forward & (ranges.kind != Kind.W)], minlength=len(cuts) + 1)
    whole = np.unique(forwards[forwards == backwards])
    found = list[int]()
    for k in np.flatnonzero((forwards > backwards) & (backwards > 0) & np.isin(backwards, whole)).tolist():
        first, more = int(np.searchsorted(step, k)), int(forwards[k] - backwards[k])
        if forward[first : first + more].all():
            found.append(int(ranges.start[first + more]))
    return np.sort(np.concatenate((cuts, np.array(found, np.int64))))


def behind(optimizer: Times, cuts: Times, begun: Times) -> Times:
    """Moments at which steps begin, moved back to just behind the optimizer where it ran before the first action.

    A receive for that action is posted between the two, and is of the step that it is for. `optimizer` are the host
    moments of its units, `begun` those at which actions begin; all are sorted.
    """
    if not len(optimizer):
        return cuts
    last = optimizer[np.maximum(np.searchsorted(optimizer, cuts) - 1, 0)]
    before = np.concatenate(([np.iinfo(np.int64).min], begun))[np.searchsorted(begun, cuts)]
    return np.where((last < cuts) & (last >= before), last + 1, cuts)


def _keys(ranges: Ranges) -> list[_Key]:
    columns = (ranges.kind, ranges.stage, ranges.microbatch, ranges.slice, ranges.chunk)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def number(ranges: Ranges, step: Ints) -> Ranges:
    """Count micro-batches that no label tells: by step, stage, chunk and kind in time order.

    A backward takes the ids of the forward it is linked to, as far as they are known and its own are not.
    """
    names = ("stage", "chunk", "microbatch", "slice")
    ids = [list(row) for row in zip(*(getattr(ranges, name).tolist() for name in names), strict=True)]
    counts: dict[tuple[int, ...], int] = {}
    forward: dict[int, list[int]] = {}
    begun: dict[tuple[int, int], list[int]] = {}  # ids of the first piece of an action
    links_told = bool(np.any(ranges.link != NONE))
    rows = zip(ids, *(c.tolist() for c in (step, ranges.kind, ranges.link, ranges.block)), strict=True)
    for mine, at, kind, link, block in rows:
        piece = begun.setdefault((block, kind), mine) if block != NONE else mine
        source = piece if piece is not mine else forward.get(link) if kind != Kind.F else None
        if source is not None:
            mine[:] = [own if own != NONE else told for own, told in zip(mine, source, strict=True)]
        elif mine[2] == NONE and (kind == Kind.F or not links_told):
            key = (at, kind, mine[0], mine[1])
            mine[2] = counts[key] = counts.get(key, -1) + 1
        if kind == Kind.F and link != NONE:
            forward[link] = mine
    columns = dict(zip(names, np.array(ids, np.int64).reshape(-1, len(names)).T, strict=True))
    return ranges.replace(**columns)


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
