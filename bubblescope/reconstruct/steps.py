"""Where one optimizer step ends and the next begins, on the host and on the GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.timeline import Steps
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST, Units, matching

__all__ = [
    "Marks",
    "cut",
    "extent",
    "find",
    "holding",
    "marked",
    "marked_steps",
    "numbered",
    "occupied",
    "optimizer_ends",
    "repeated",
    "rows_at",
    "rows_of",
]

# torch/profiler/profiler.py; sail-sg/zero-bubble-pipeline-parallelism, which names the rank, then the iteration.
_STEPS = (r"ProfilerStep#(\d{1,18})$", r"iter_\d{1,9}_(\d{1,18})$")
_OPTIMIZER = r"Optimizer(\.step#|$)"


@dataclass(frozen=True, eq=False)
class Marks(Columns):
    """Host ranges of the steps, in time order and disjoint."""

    number: Times = column(np.int64)
    start: Times = column(np.int64)
    end: Times = column(np.int64)


def marked(trace: RankTrace) -> bool:
    """Whether the profiler or the framework marked any step."""
    return any(np.any(matching(trace.names, mark)[trace.annotations.name]) for mark in _STEPS)


def find(
    trace: RankTrace,
    units: Units,
    recurrences: Times,
    begun: Times,
    tear: Callable[[Marks], bool] = lambda _: False,
) -> Marks:
    """Steps as the profiler or the framework marked them, else cut where something comes again, else all as one.

    Marks that cut through the pipeline still number the steps: they may be a little late on all ranks,
    and only some have work in that moment.

    Args:
        trace: the rank's trace.
        units: all that ran.
        recurrences: host moments at which a named action comes again; without any, the ends of the
            optimizer's calls cut instead.
        begun: host moments at which actions begin; a label stands before the first launch in it.
        tear: whether marks cut through the pipeline, so that something else must tell the steps.
    """
    marked = marked_steps(trace)
    if len(marked) and not tear(marked):
        return marked
    known = _asked(units)
    if not len(known):
        return Marks.empty()
    cuts = recurrences if len(recurrences) else optimizer_ends(trace, begun)
    end = int(known.max()) + 1 if trace.on_gpu else int(units.end.max())
    pieces = _split_at(cuts, min([int(known.min()), *begun[:1].tolist()]), end)
    active = np.isin(np.arange(len(pieces)), rows_at(pieces, begun))  # before and after them lie the recording's ends
    return _numbered_by(marked, pieces.take(active) if active.any() else pieces, begun)


def _marks_of(trace: RankTrace, mark: str) -> Marks:
    """The annotations of steps as they stand, in time order."""
    rows = trace.annotations.take(matching(trace.names, mark)[trace.annotations.name])
    rows = rows.take(np.argsort(rows.start, kind="stable"))
    numbers = [int(re.match(mark, trace.names[name])[1]) for name in rows.name]  # type: ignore[index]
    marks = Marks(np.array(numbers, np.int64), rows.start, rows.end)
    return marks.take(~_inside(marks))


def marked_steps(trace: RankTrace) -> Marks:
    """The steps as the profiler or the framework marked them; empty where neither did."""
    return next((found for mark in _STEPS if len(found := _marked_steps(trace, mark))), Marks.empty())


def _marked_steps(trace: RankTrace, mark: str) -> Marks:
    marks = _marks_of(trace, mark)
    first = np.sort(np.unique(marks.number, return_index=True)[1])
    # A step lasts until the next begins, so that what runs between two annotations is not lost. If the mark of the next
    # is missing, or what comes is a step once more, it lasts as long as its own.
    follows = np.append(marks.number[1:] == marks.number[:-1] + 1, False)[: len(marks)]
    end = np.where(follows, np.append(marks.start[1:], marks.end[-1:]), marks.end)
    return marks.replace(end=end).take(first)


def repeated(trace: RankTrace) -> tuple[Finding, ...]:
    """A word on steps that are marked more than once: files of two runs, or of two cycles, that were joined."""
    for mark in _STEPS:
        marks = _marks_of(trace, mark)
        numbers, counts = np.unique(marks.number, return_counts=True)
        if len(marks):
            again = numbers[counts > 1].tolist()
            break
    else:
        again = []
    if not again:
        return ()
    some = ", ".join(map(str, again[:8])) + (", ..." if len(again) > 8 else "")
    message = (
        f"steps that come more than once in the file, of which only the first counts: {len(again)} of {len(numbers)} "
        f"({some}); it holds two runs, or the profiler began to count anew"
    )
    return (Finding("repeated-steps", "warning", message, trace.source.path),)


def _inside(marks: Marks) -> Bools:
    """Which marks begin within one of the same number, just before them."""
    same = (marks.number[1:] == marks.number[:-1]) & (marks.start[1:] < marks.end[:-1])
    return np.append(False, same)[: len(marks)]


def optimizer_ends(trace: RankTrace, begun: Times) -> Times:
    """Ends of the optimizer's calls; several optimizers called in a row end one step.

    `begun` are the moments at which actions begin, sorted: calls without any between them are in a row. Without actions
    those are that are much closer than others.
    """
    ends = np.sort(trace.annotations.end[matching(trace.names, _OPTIMIZER)[trace.annotations.name]])
    if len(ends) < 2:
        return ends
    passed, between = np.diff(np.searchsorted(begun, ends)), np.diff(ends)
    last: Bools = passed > 0 if passed.any() else between > between.max() / 2
    result: Times = ends[np.append(last, True)]
    return result


def _split_at(cuts: Times, start: int, end: int) -> Marks:
    """[start, end) cut at the given moments; steps are numbered from 0."""
    edges = np.unique(np.concatenate(([start], cuts[(cuts > start) & (cuts < end)], [end])))
    return Marks(np.arange(len(edges) - 1), edges[:-1], edges[1:])


def numbered(trace: RankTrace, pieces: Marks) -> Marks:
    """Steps that something else than the marks of a trace told, with the numbers of these."""
    marks = marked_steps(trace)
    if len(marks) == len(pieces):
        return pieces.replace(number=marks.number)  # however far the host ran ahead
    return _numbered_by(marks, pieces, pieces.start) if len(pieces) else pieces


def _numbered_by(marked: Marks, pieces: Marks, begun: Times) -> Marks:
    """Pieces counted on from the mark that most of the first one lies in; left as they are without marks.

    Where several marks share a piece, that one may differ between ranks, and the first of all counts. `begun` are the
    host moments at which actions begin.
    """
    if not len(marked):
        return pieces
    if 3 * len(pieces) <= 2 * occupied(marked, begun):
        return pieces.replace(number=np.arange(len(pieces)) + marked.number[0])
    shared = np.minimum(marked.end, pieces.end[0]) - np.maximum(marked.start, pieces.start[0])
    return pieces.replace(number=np.arange(len(pieces)) + marked.number[shared.argmax()])


def rows_of(marks: Marks, units: Units) -> Ints:
    """The row of the step in which the host asked for each unit (NONE: before the first or after the last).

    Work without a launch is dated by its own start: the stream runs behind the host, never ahead of it.
    """
    return rows_at(marks, _asked(units))


def _asked(units: Units) -> Times:
    return np.where(units.host == NO_HOST, units.start, units.host)


def rows_at(marks: Marks, moment: Times) -> Ints:
    """The row of the step that holds each host moment, or NONE."""
    if not len(marks):
        return np.full(len(moment), NONE)
    row = np.searchsorted(marks.start, moment, "right") - 1
    return np.where((row >= 0) & (moment <= marks.end[row]), row, NONE)


def occupied(marks: Marks, moments: Times) -> int:
    """How many steps hold some of these host moments."""
    return len(holding(marks, moments))


def holding(marks: Marks, moments: Times) -> tuple[int, ...]:
    """The numbers of the steps that hold some of these host moments."""
    rows = np.unique(rows_at(marks, moments))
    return tuple(marks.number[rows[rows >= 0]].tolist())


def cut(count: int, unfinished: Ints) -> Bools:
    """Which of so many steps asked for an action that the recording does not hold whole: those of `unfinished` ones."""
    return np.isin(np.arange(count), unfinished)


def extent(marks: Marks, *ran: Units, on_gpu: bool) -> Steps:
    """When each step ran: on a host the marks themselves; on a GPU from its first unit of any sort to the next step's.

    The last one, and one that no other follows at once, ends when both the GPU and the host were done with it.
    """
    if not on_gpu or not len(marks):
        return Steps(marks.start, marks.end, marks.number)
    units = Units.concat(ran)
    step = rows_of(marks, units)
    first = np.full(len(marks), np.iinfo(np.int64).max)
    last = np.full(len(marks), np.iinfo(np.int64).min)
    inside = step >= 0
    np.minimum.at(first, step[inside], units.start[inside])
    np.maximum.at(last, step[inside], units.end[inside])
    empty = last < first
    start = np.where(empty, marks.start, first)
    end = np.maximum(np.where(empty, marks.end, last), marks.end)
    follows = marks.start[1:] <= marks.end[:-1]
    end[:-1] = np.maximum(np.where(follows, start[1:], np.minimum(start[1:], end[:-1])), start[:-1])
    return Steps(start, np.maximum(end, start), marks.number)
