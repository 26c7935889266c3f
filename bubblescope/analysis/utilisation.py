"""How busy ranks look, and how busy they are: shares of the step in which anything ran, and in which it was useful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bubblescope.analysis.ranks import RankView
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
    seen = {rank: {n: _end(view, n, times[n]) for n in times if n in view.steps} for rank, view in found.views.items()}
    return {rank: _shares(found.views[rank], ends) for rank, ends in seen.items() if ends}


def _end(view: RankView, number: int, time: int) -> int:
    """When a step ends on a rank: when its next one begins there, else a step time after its start."""
    return view.steps[number].start + (view.until_next(number) or time)


def _shares(view: RankView, ends: Mapping[int, int]) -> Shares:
    whole = sum(end - view.steps[number].start for number, end in ends.items())
    if not whole:
        return Shares(None, None)
    return Shares(
        _within(_ran(view), view, ends) / whole if view.timeline.on_gpu else None,
        _useful(view, ends, whole),
    )


def _ran(view: RankView) -> Spans:
    """All that ran on the rank, kernels that wait for a peer and copies included."""
    calls = view.timeline.collectives
    return Spans.join((view.lanes.busy, view.lanes.messages, view.lanes.copies, Spans.of(calls.start, calls.end)))


def _useful(view: RankView, ends: Mapping[int, int], whole: int) -> float | None:
    """Compute and in-stage collectives of the actions; without a pipeline all compute, as in the parts of a rank."""
    if view.pipeline is None:
        return _within(Spans.join((view.lanes.busy, view.lanes.in_stage)), view, ends) / whole
    steps = [view.steps[number] for number in ends]
    if not all(len(step.rows) for step in steps):
        return None
    return sum(step.useful.clip(step.start, ends[step.step]).total for step in steps) / whole


def _within(spans: Spans, view: RankView, ends: Mapping[int, int]) -> int:
    return sum(spans.clip(view.steps[number].start, end).total for number, end in ends.items())
