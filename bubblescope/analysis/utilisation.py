"""How busy ranks look, and how busy they are: shares of the step in which anything ran, and in which it was useful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bubblescope.analysis.partition import Window
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.step_times import staggered
from bubblescope.analysis.steps import RankStep
from bubblescope.analysis.study import Study
from bubblescope.model.spans import Spans

__all__ = ["Shares", "utilisation"]


class Shares(NamedTuple):
    """Of a rank's used steps; None where nothing tells it.

    `busy` is None where no kernels were recorded: what ran on a host tells nothing of a GPU. `useful` is None on a
    rank of a pipeline of which no action could be told.
    """

    busy: float | None
    useful: float | None


def utilisation(found: Study, times: Mapping[int, int]) -> dict[int, Shares]:
    """The shares of every rank that has a used step, over all of these together; `times` are the step times."""
    late = {number: staggered(found, number) for number in times}
    seen = {
        rank: [_extent(view, n, time, late=late[n]) for n, time in times.items() if n in view.steps]
        for rank, view in found.views.items()
    }
    return {rank: _shares(found.views[rank], extents) for rank, extents in seen.items() if extents}


_Extent = tuple[RankStep, Window]  # a step, and from when to when it takes on its rank


def _extent(view: RankView, number: int, time: int, *, late: bool) -> _Extent:
    """Until the rank begins the next step, else for a step time; a rank that begins late was at it from before that."""
    step = view.steps[number]
    end = step.start + (view.until_next(number) or time)
    return step, Window(min(step.start, end - time) if late else step.start, end)


def _shares(view: RankView, extents: Sequence[_Extent]) -> Shares:
    whole = sum(window.length for _, window in extents)
    if not whole:
        return Shares(None, None)
    return Shares(
        _within(_ran(view), extents) / whole if view.timeline.on_gpu else None,
        _useful(view, extents, whole),
    )


def _ran(view: RankView) -> Spans:
    """All that ran on the rank, kernels that wait for a peer and copies included."""
    calls = view.timeline.collectives
    return Spans.join((view.lanes.busy, view.lanes.messages, view.lanes.copies, Spans.of(calls.start, calls.end)))


def _useful(view: RankView, extents: Sequence[_Extent], whole: int) -> float | None:
    """Compute and in-stage collectives of the actions; without a pipeline all compute, as in the parts of a rank."""
    if view.pipeline is None:
        return _within(Spans.join((view.lanes.busy, view.lanes.in_stage)), extents) / whole
    if not all(len(step.rows) for step, _ in extents):
        return None
    return sum(step.useful.clip(window.start, window.end).total for step, window in extents) / whole


def _within(spans: Spans, extents: Sequence[_Extent]) -> int:
    return sum(spans.clip(window.start, window.end).total for _, window in extents)
