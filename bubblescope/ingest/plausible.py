"""Times that cannot be: events that lie or last beyond all others, kernels out of their turn, events written twice.

None of them may define a step, a window or a duration. The rules say what no recording can hold rather than what one
usually holds, and where a rule would hit many events it is the rule that is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bubblescope.ingest.copies import copies
from bubblescope.ingest.queues import turns
from bubblescope.ingest.serial import Overruns, overruns
from bubblescope.model.columns import Bools, Times, distinct
from bubblescope.model.trace import Annotations, Doubts, Kernels, Launches, Ops, RankTrace

__all__ = ["plausible"]

HOUR = 3_600_000_000_000
"""ns. No event lasts as long: watchdogs end a collective after 10 or 30 minutes. What lies farther than that from all
else is another session of the profiler, or damage."""

_FEW = 100
_PART = 0.01
"""Fewer events than either, of those of the largest session, are no session: one holds steps."""


_OPS, _ANNOTATIONS, _LAUNCHES, _KERNELS, _FRAMES = range(5)


class _Blocks(NamedTuple):
    """The blocks of a trace."""

    ops: Ops
    annotations: Annotations
    launches: Launches
    kernels: Kernels
    frames: Annotations

    def without(self, gone: list[Bools]) -> _Blocks:
        """The blocks without some rows."""
        parts: Any = zip(self, gone, strict=True)
        return _Blocks(*(block.take(~rows) if rows.any() else block for block, rows in parts))

    def ended(self, ends: list[Times], rows: list[Bools]) -> _Blocks:
        """The blocks with other ends of some rows."""
        parts: Any = zip(self, ends, rows, strict=True)
        return _Blocks(
            *(block.replace(end=np.where(at, end, block.end)) if at.any() else block for block, end, at in parts)
        )


def plausible(trace: RankTrace, unplaced: int) -> RankTrace:
    """The trace without what cannot be, and what was done about it.

    What cannot have been where it is is left out, a kernel with its launch. What cannot last as long as it does keeps
    its place: a range ends with all else, a kernel where the next one of its stream begins; anything else becomes as
    short as nothing, like what ends before it begins.

    Args:
        trace: a rank's events as the file gives them.
        unplaced: events that were left out by the reader, for they have no usable time.
    """
    blocks = _Blocks(trace.ops, trace.annotations, trace.launches, trace.kernels, trace.frames)
    again = [*map(copies, blocks[:_FRAMES]), np.zeros(len(blocks.frames), np.bool_)]
    blocks = blocks.without(again)
    away = _away(blocks)
    blocks, lost = _left_out(blocks, away)
    turned = turns(blocks.kernels, blocks.launches)
    astray = [np.zeros(len(block), np.bool_) for block in blocks]
    astray[_KERNELS][turned.misplaced] = True
    blocks, early = _left_out(blocks, astray)
    backwards = [block.end < block.start for block in blocks]
    blocks = blocks.ended([block.start for block in blocks], backwards)
    over = overruns(blocks.kernels, trace.names)
    blocks = blocks._replace(kernels=_cut(blocks.kernels, over))
    long = _endless(blocks)
    blocks = blocks.ended(_ends(blocks, long), long)
    shortened = [a | b for a, b in zip(backwards, long, strict=True)]
    count = _count(shortened)
    shortened[_KERNELS][np.concatenate((over.rows, over.doubtful))] = True
    late = _shortened(blocks, shortened)
    doubts = Doubts(
        unplaced=unplaced,
        misplaced=_count(away) + _count(astray),
        shortened=count,
        overran=len(over.rows),
        overran_ns=over.longest,
        overlapping=over.overlapping,
        doubled=_count(again),
        ahead=turned.ahead,
        moments=distinct(np.concatenate((lost, early, turned.jumps, *late))),
    )
    return replace(trace, doubts=doubts, **blocks._asdict())


def _cut(kernels: Kernels, over: Overruns) -> Kernels:
    """The kernels, those that overran cut."""
    if not len(over.rows):
        return kernels
    end = kernels.end.copy()
    end[over.rows] = over.end
    return kernels.replace(end=end)


def _away(blocks: _Blocks) -> list[Bools]:
    """Which events lie more than an hour from all else and are too few, or all at one instant, to be a session.

    If that were most of the kernels, they and the host are counted by clocks that know nothing of each other.
    """
    starts = [block.start for block in blocks]
    none = [np.zeros(len(start), np.bool_) for start in starts]
    least, most = _range(starts)
    if most - least <= HOUR:
        return none
    moments = np.sort(np.concatenate(starts))
    first = np.flatnonzero(np.append(True, _between(moments[:-1], moments[1:]) > HOUR))
    count = np.diff(np.append(first, len(moments)))
    lasting = _between(moments[first], moments[np.append(first[1:], len(moments)) - 1])
    few = (count < _FEW) & (count < _PART * count.max()) | (lasting == 0) & (count < count.max())
    found = [few[np.searchsorted(moments[first], start, "right") - 1] for start in starts]
    if 2 * int(found[_KERNELS].sum()) > len(found[_KERNELS]):
        found[_KERNELS] = none[_KERNELS]
    return found


def _left_out(blocks: _Blocks, gone: list[Bools]) -> tuple[_Blocks, Times]:
    """The blocks without some events, nor the launches of kernels among these; and when the work of both may have been.

    A launch that stayed would look like one whose kernel the profiler lost.
    """
    if not _count(gone):
        return blocks, np.empty(0, np.int64)
    kept, out = blocks.without(gone), blocks.without([~rows for rows in gone])
    void = _launched(kept.launches, out.kernels)
    orphans = np.isin(kept.kernels.correlation, out.launches.correlation[out.launches.correlation >= 0])
    moments = np.concatenate((kept.launches.start[void], kept.kernels.start[orphans], out.kernels.start))
    void &= ~_launched(kept.launches, kept.kernels)
    return kept._replace(launches=kept.launches.take(~void)), moments


def _launched(launches: Launches, kernels: Kernels) -> Bools:
    """Which launches are those of some of the kernels."""
    rows: Bools = np.isin(launches.correlation, kernels.correlation[kernels.correlation >= 0])
    return rows


def _endless(blocks: _Blocks) -> list[Bools]:
    """Which events last longer than an hour, and longer than all that the file recorded, idle hours aside."""
    lengths = [_between(block.start, block.end) for block in blocks]
    if max(int(length.max(initial=0)) for length in lengths) <= HOUR:
        return [np.zeros(len(length), np.bool_) for length in lengths]
    moments = np.sort(np.concatenate([block.start for block in blocks]))
    idle = _between(moments[:-1], moments[1:])
    recorded = max(HOUR, int(idle[idle <= HOUR].sum()))
    return [length > recorded for length in lengths]


def _ends(blocks: _Blocks, long: list[Bools]) -> list[Times]:
    """Ends for what is too long: those of ranges are not known, but for that no range outlasts the recording."""
    parts: Any = zip(blocks, long, strict=True)
    ends = [block.end[~rows] for block, rows in parts]
    last = max((int(end.max()) for end in ends if len(end)), default=0)
    return [np.maximum(block.start, last) if isinstance(block, Annotations) else block.start for block in blocks]


def _shortened(blocks: _Blocks, wrong: list[Bools]) -> list[Times]:
    """When the host asked for work whose length is wrong, and when ranges began that were cut."""
    kernels, launches = blocks.kernels, blocks.launches
    work = kernels.take(wrong[_KERNELS])
    asked = launches.start[np.isin(launches.correlation, work.correlation[work.correlation >= 0])]
    dated = work.start[~np.isin(work.correlation, launches.correlation)]
    of_host = [] if len(kernels) else [blocks.ops.start[wrong[_OPS]]]  # beside a GPU, operators are no work
    return [asked, dated, blocks.annotations.start[wrong[_ANNOTATIONS]], *of_host]


def _count(masks: list[Bools]) -> int:
    return sum(int(mask.sum()) for mask in masks)


def _range(starts: list[Times]) -> tuple[int, int]:
    some = [start for start in starts if len(start)]
    return min((int(s.min()) for s in some), default=0), max((int(s.max()) for s in some), default=0)


def _between(start: Times, end: Times) -> npt.NDArray[np.uint64]:
    """Lengths that may not fit int64: a file can hold any time."""
    return end.view(np.uint64) - start.view(np.uint64)
