"""Where each rank's time went, means over the used steps, and the longest gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from bubblescope.analysis.partition import Outside, Partition, Window, outside, partition, whole_step
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.stages import phase_of
from bubblescope.analysis.study import Study
from bubblescope.analysis.utilisation import Shares
from bubblescope.model import report

__all__ = ["rank_rows", "worst_bubbles"]

WORST = 5
"""How many of the longest gaps are named."""


def rank_rows(found: Study, shares: Mapping[int, Shares]) -> tuple[report.Rank, ...]:
    """The partition of every recorded rank, and its `shares` of the step where they are known."""
    by_rank: dict[int, list[PipelineStep]] = {}
    for step in found.steps:
        for rank in step.steps:
            by_rank.setdefault(rank, []).append(step)
    return tuple(
        _row(
            found,
            view,
            _in_pipeline(view, by_rank[rank]) if rank in by_rank else _alone(found, view),
            shares.get(rank, Shares(None, None)),
        )
        for rank, view in found.views.items()
    )


def _in_pipeline(view: RankView, steps: list[PipelineStep]) -> _Spent:
    spent = _Spent([], [], [], piped=True)
    for pipeline_step in steps:
        step = pipeline_step.steps[view.timeline.rank]
        window = pipeline_step.window_of(step.rank)
        part = partition(view.lanes, step, window, view.gaps[step.step])
        spent.parts.append(part)
        spent.outside.append(outside(view.lanes, [Window(step.start, window.start), Window(window.end, step.end)]))
        if pipeline_step.spanned:
            spent.bubbles.append(1 - (part.compute + part.in_stage_comm) / window.length)
    return spent


def _alone(found: Study, view: RankView) -> _Spent:
    """A rank without a pipeline: the window is the step."""
    numbers = found.used or [use.number for use in found.uses if use.left_out != "not-asked"]
    steps = [step for number, step in view.steps.items() if number in numbers] or list(view.steps.values())
    parts = [whole_step(view.lanes, Window(step.start, step.end), piped=found.piped) for step in steps]
    return _Spent(parts, [], [], piped=False)


@dataclass(frozen=True, slots=True)
class _Spent:
    """A rank's time, step by step; `bubbles` of those whose pipeline's window is known."""

    parts: list[Partition]
    outside: list[Outside]
    bubbles: list[float]
    piped: bool


def _row(found: Study, view: RankView, spent: _Spent, shares: Shares) -> report.Rank:
    """Means of the parts; the window is their sum, so that it still adds up to the nanosecond."""
    mean = {name: _mean([getattr(part, name) for part in spent.parts]) for name in _PARTS}
    split = all(part.split for part in spent.parts)
    return report.Rank(
        rank=view.timeline.rank,
        stages=found.job.placement.get(view.position, ()) if spent.piped and view.position is not None else (),
        pipeline=view.pipeline if spent.piped else None,
        window_ns=sum(mean.values()),
        compute_ns=mean["compute"],
        in_stage_comm_ns=mean["in_stage_comm"],
        dp_ns=mean["dp"],
        pp_ns=mean["pp_transfer"] + mean["pp_wait"],
        pp_transfer_ns=mean["pp_transfer"] if split else None,
        pp_wait_ns=mean["pp_wait"] if split else None,
        host_ns=mean["host"],
        other_ns=mean["other"],
        bubble=fmean(spent.bubbles) if spent.bubbles else None,
        busy=shares.busy,
        useful=shares.useful,
        outside=report.Outside(
            dp_ns=_mean([rest.dp for rest in spent.outside]),
            optimizer_ns=_mean([rest.optimizer for rest in spent.outside]),
            host_ns=_mean([rest.host for rest in spent.outside]),
            other_ns=_mean([rest.other for rest in spent.outside]),
        ),
    )


_PARTS = ("compute", "in_stage_comm", "dp", "pp_transfer", "pp_wait", "host", "other")


def _mean(values: list[int]) -> int:
    return round(fmean(values)) if values else 0


def worst_bubbles(found: Study, origin: int) -> tuple[report.WorstBubble, ...]:
    """The longest gaps before an action over all ranks and used steps, longest first."""
    return tuple(sorted(_gaps(found, origin), key=lambda gap: -gap.duration_ns)[:WORST])


def _gaps(found: Study, origin: int) -> Iterator[report.WorstBubble]:
    for pipeline_step in found.steps:
        for rank, step in pipeline_step.steps.items():
            gaps, order = found.views[rank].gaps[step.step], step.order
            length = gaps.end - gaps.start
            for at in np.argsort(-length)[:WORST]:
                if length[at] > 0:
                    yield report.WorstBubble(
                        rank=rank,
                        stage=order[at].stage,
                        step=step.step,
                        start_ns=int(gaps.start[at]) - origin,
                        duration_ns=int(length[at]),
                        before=str(order[at]),
                        phase=phase_of(step, pipeline_step.window_of(rank), int(gaps.start[at])),
                    )
