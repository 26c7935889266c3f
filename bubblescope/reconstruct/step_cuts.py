"""Where steps begin by what their actions show: by names that come again, optimizers before them, and evaluations."""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times, distinct
from bubblescope.model.unbacked import apart, codes, unbacked
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE

__all__ = ["behind", "evaluations_apart", "recurrences", "starts_after", "torn", "unshared"]

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
    lies in another step, by its link or by its name. An evaluation before or behind the training of a step repeats
    names, and is not asked.
    """
    evaluated = _evaluated(ranges, step)
    ranges, step = ranges.take(~evaluated), step[~evaluated]
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


def _evaluated(ranges: Ranges, step: Ints) -> Bools:
    """Forwards of named micro-batches that make an evaluation before or behind the training of their step."""
    result = np.zeros(len(ranges), bool)
    named = ranges.microbatch != NONE
    code = codes(ranges.stage, ranges.chunk, ranges.microbatch, ranges.slice)
    for number in distinct(step[named & (step != NONE) & (ranges.kind != Kind.F)]).tolist():
        rows = np.flatnonzero(named & (step == number))
        extra = unbacked(code[rows], ranges.kind[rows], ranges.start[rows])
        if extra is not None and extra.any() and apart(ranges.start[rows], extra):
            result[rows[extra]] = True
    return result


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
