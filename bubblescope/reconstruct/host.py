"""Host ranges that are actions: as somebody named them, or as numbers, frames and kernels tell them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.autograd import Blocks, forwards_of
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.ranges import NONE, owners

__all__ = ["Ranges", "completed", "drawn_out", "from_blocks", "from_labels", "lacking", "linked", "number"]


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
