"""Where a rank's time went: every instant of its window gets exactly one name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from bubblescope.analysis.gaps import Gaps
from bubblescope.analysis.lanes import Lanes
from bubblescope.analysis.steps import RankStep
from bubblescope.model.spans import Spans, lengths_by_layer

__all__ = ["Outside", "Partition", "Window", "outside", "partition", "whole_step"]


@dataclass(frozen=True, slots=True)
class Window:
    """[start, end) on the job's clock."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.end - self.start

    def around(self, first: int, last: int) -> Window:
        """The window moved, not stretched, so that it holds [first, last) as far as its length allows.

        Clocks that disagree a little must not cut a rank's own actions off.
        """
        shift = min(0, first - self.start) or max(0, last - self.end)
        return Window(self.start + shift, self.end + shift)


@dataclass(frozen=True, slots=True)
class Partition:
    """Nanoseconds of a window; `split` says whether transfer and wait are known apart."""

    compute: int
    in_stage_comm: int
    dp: int
    pp_transfer: int
    pp_wait: int
    host: int
    other: int
    split: bool

    @property
    def window(self) -> int:
        """The parts together: the length of the window, to the nanosecond."""
        return sum(getattr(self, f.name) for f in fields(self) if f.name != "split")


@dataclass(frozen=True, slots=True)
class Outside:
    """Nanoseconds of a step that lie outside the window."""

    dp: int
    optimizer: int
    host: int
    other: int


def partition(lanes: Lanes, step: RankStep, window: Window, gaps: Gaps) -> Partition:
    """Split the pipeline window of a rank, as docs/definitions.md orders it."""
    layers = (
        step.compute,
        step.in_stage,
        lanes.dp,
        _waits(step, window, gaps),
        Spans.of(gaps.ready, gaps.arrived),
        Spans.of(gaps.arrived, gaps.end),
        lanes.elsewhere,
    )
    compute, comm, dp, wait, transfer, host, other, rest = lengths_by_layer(layers, window.start, window.end)
    # What is left lies inside actions: the stream ran dry, because the host was late.
    return Partition(compute, comm, dp, transfer, wait, host + rest, other, bool(np.all(gaps.split)))


def _waits(step: RankStep, window: Window, gaps: Gaps) -> Spans:
    """Until both sides of an awaited transfer were there; before the first action and after the last one."""
    first = int(step.actions.start.min(initial=window.end))
    last = int(step.actions.end.max(initial=window.start))
    edges = ([window.start, min(last, window.end)], [max(first, window.start), window.end])
    return Spans.join((Spans.of(gaps.start, gaps.ready), Spans.of(*map(np.array, edges))))


def whole_step(lanes: Lanes, window: Window, *, piped: bool) -> Partition:
    """Split a step of a rank whose actions are unknown: all compute counts, whatever asked for it.

    In a pipeline exposed messages are `pp_wait` with `split` false, as nothing tells what of them is
    transfer; without one they are as `other` as any communication that nobody explains. So are copies.
    """
    layers = (lanes.busy, lanes.in_stage, lanes.dp, lanes.unexplained, lanes.messages, lanes.copies)
    compute, comm, dp, unexplained, messages, copies, rest = lengths_by_layer(layers, window.start, window.end)
    other = unexplained + copies
    if not piped:
        return Partition(compute, comm, dp, 0, 0, rest, other + messages, split=True)
    return Partition(compute, comm, dp, 0, messages, rest, other, split=not messages)


def outside(lanes: Lanes, windows: Iterable[Window]) -> Outside:
    """Split what of a step lies outside the pipeline window: before it and after it."""
    moving = Spans.join((lanes.in_stage, lanes.unexplained, lanes.copies))
    layers = (lanes.optimizer, lanes.compute, lanes.dp, moving)
    sums = np.zeros(5, np.int64)
    for window in windows:
        if window.length > 0:
            sums += lengths_by_layer(layers, window.start, window.end)
    optimizer, compute, dp, moved, rest = map(int, sums)
    return Outside(dp=dp, optimizer=optimizer, host=rest, other=compute + moved)
