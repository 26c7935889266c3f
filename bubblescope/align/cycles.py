"""Recordings of one process as one rank: a profiler that records again and again writes a file each time.

`torch.profiler.schedule(repeat=...)` and `nsys profile --capture-range-end=repeat` do so. Recordings of one process
that do not overlap are the rank's earlier and later steps, unless they tell of different ranks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from bubblescope.model.columns import Columns, Ints
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Actions, Collectives, LayerWork, Messages, RankTimeline, Steps, Work
from bubblescope.model.trace import Doubts, Finding

__all__ = ["recorded_again"]

C = TypeVar("C", bound=Columns)
Recorder = tuple[object, ...]


def recorded_again(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    """The timelines with those of one process joined, in the order of the first of each.

    Steps whose numbers come again count on, on all ranks of the job alike, as far as clocks tell which recordings were
    made together.
    """
    groups: dict[Recorder, list[RankTimeline]] = {}
    for place, timeline in enumerate(timelines):
        groups.setdefault(_recorder(timeline) or (place,), []).append(timeline)
    cycles = [sorted(found, key=_start) for found in groups.values()]
    cycles = [part for found in cycles for part in ([found] if _apart(found) else [[one] for one in found])]
    if max(map(len, cycles), default=1) == 1:
        return list(timelines)
    turns = _turns(cycles)
    shifts = _shifts(cycles, turns)
    return [
        _joined([_counted_on(timeline, shifts[turn]) for timeline, turn in zip(found, at, strict=True)])
        for found, at in zip(cycles, turns, strict=True)
    ]


def _recorder(timeline: RankTimeline) -> Recorder | None:
    """Who recorded: the process on its host, and the rank that it tells; None where the process cannot be known.

    A number of a process is one on one host only, and moments are compared on one clock, as that of one file. A number
    in the name of a file may be that of a step (`trace_10.json`), so that on one host the process is believed.
    """
    who = timeline.identity
    if who.process is None or timeline.restarts or not len(timeline.steps):
        return None
    silent = who.rank_source in {"order", None} or (who.rank_source == "filename" and who.host is not None)
    return (
        who.host or ("" if timeline.absolute else timeline.source.path),
        who.process,
        who.device,
        -1 if silent else timeline.rank,
        who.world_size,
        who.devices,
        timeline.on_gpu,
    )


def _start(timeline: RankTimeline) -> int:
    return int(timeline.steps.start.min()) if len(timeline.steps) else 0


def _end(timeline: RankTimeline) -> int:
    return int(timeline.steps.end.max()) if len(timeline.steps) else 0


def _apart(recordings: Sequence[RankTimeline]) -> bool:
    """Whether each of them begins behind the end of the one before."""
    return all(_end(one) <= _start(other) for one, other in pairwise(recordings))


def _turns(cycles: Sequence[Sequence[RankTimeline]]) -> list[list[int]]:
    """For each rank the cycle of each of its recordings: those that overlap are of one, or else they are counted."""
    spans = [(_start(timeline), _end(timeline)) for found in cycles for timeline in found]
    together = Spans.of(np.array([start for start, _ in spans]), np.array([end for _, end in spans]))
    turns = [[int(np.searchsorted(together.start, _start(t), "right")) - 1 for t in found] for found in cycles]
    if all(len(set(at)) == len(at) for at in turns):
        return turns
    return [list(range(len(found))) for found in cycles]


def _shifts(cycles: Sequence[Sequence[RankTimeline]], turns: Sequence[Sequence[int]]) -> dict[int, int]:
    """What is added to the numbers of the steps of each cycle, so that none comes again on the rank that had it."""
    shifts: dict[int, int] = {}
    for turn in sorted({turn for at in turns for turn in at}):
        again = [0]
        for found, at in zip(cycles, turns, strict=True):
            numbers = {one: set(timeline.steps.number.tolist()) for one, timeline in zip(at, found, strict=True)}
            before = {number + shifts[one] for one, told in numbers.items() if one < turn for number in told}
            here = numbers.get(turn, set())
            if here & before:
                again.append(max(before) + 1 - min(here))
        shifts[turn] = max(again)
    return shifts


def _counted_on(timeline: RankTimeline, by: int) -> RankTimeline:
    """The timeline with other numbers of its steps."""
    return dataclasses.replace(
        timeline,
        steps=timeline.steps.replace(number=timeline.steps.number + by),
        doubted=tuple(number + by for number in timeline.doubted),
    )


def _joined(recordings: Sequence[RankTimeline]) -> RankTimeline:
    """The recordings of one process as one timeline."""
    joined, *later = recordings
    for timeline in later:
        joined = _with(joined, timeline)
    ranks = {timeline.rank for timeline in recordings}
    if later:
        joined = dataclasses.replace(joined, findings=(*joined.findings, _noted(recordings)))
    if len(ranks) == 1:
        return joined
    return dataclasses.replace(
        joined, rank=-1, identity=dataclasses.replace(joined.identity, rank=None, rank_source=None)
    )


def _noted(recordings: Sequence[RankTimeline]) -> Finding:
    """That several recordings are one rank's, and of which files."""
    paths = dict.fromkeys(timeline.source.path for timeline in recordings)
    files = "" if len(paths) == 1 else f" (files {', '.join(Path(path).name for path in paths)})"
    message = (
        f"{len(recordings)} recordings of one process{files} are one rank; the time between them is part of no step"
    )
    return Finding("several-recordings", "info", message, recordings[0].source.path)


def _with(one: RankTimeline, other: RankTimeline) -> RankTimeline:
    """The timeline with a later recording behind it: rows that point at others point at the same as before."""
    steps, actions, calls = len(one.steps), len(one.actions), len(one.calls)
    blocks, kernels = (int(column.max(initial=-1)) + 1 for column in (one.actions.block, one.messages.kernel))
    messages = _behind(other.messages, step=steps, call=calls, kernel=kernels, after=actions)
    collectives = _behind(other.collectives, action=actions, step=steps, call=calls)
    files = {source.path: source for source in (one.source, *one.later, other.source, *other.later)}
    return dataclasses.replace(
        one,
        steps=Steps.concat((one.steps, other.steps)),
        actions=Actions.concat((one.actions, _behind(other.actions, step=steps, block=blocks))),
        work=Work.concat((one.work, _behind(other.work, action=actions))),
        layers=LayerWork.concat((one.layers, _behind(other.layers, action=actions))),
        messages=Messages.concat((one.messages, messages)),
        collectives=Collectives.concat((one.collectives, collectives)),
        calls=(*one.calls, *other.calls),
        optimizer=Spans.join((one.optimizer, other.optimizer)),
        reconstruction=one.reconstruction or other.reconstruction,
        kernels=one.kernels + other.kernels,
        launched=one.launched + other.launched,
        resumed=(*one.resumed, int(other.steps.number.min()), *other.resumed),
        later=tuple(files.values())[1:],
        doubts=_both(one.doubts, other.doubts),
        doubted=(*one.doubted, *other.doubted),
        findings=tuple(dict.fromkeys((*one.findings, *other.findings))),
    )


def _behind(rows: C, **by: int) -> C:
    """Rows whose columns of these names count on from as many rows before them; -1 points at nothing still."""
    return rows.replace(**{name: _moved(getattr(rows, name), count) for name, count in by.items()})


def _moved(column: Ints, by: int) -> Ints:
    return np.where(column >= 0, column + by, column)


def _both(one: Doubts, other: Doubts) -> Doubts:
    counts = {
        field.name: getattr(one, field.name) + getattr(other, field.name)
        for field in dataclasses.fields(Doubts)
        if field.name not in {"moments", "overran_ns"}
    }
    longest = max(one.overran_ns, other.overran_ns)
    return Doubts(**counts, overran_ns=longest, moments=np.concatenate((one.moments, other.moments)))
