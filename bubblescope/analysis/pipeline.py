"""One pipeline in one step: its window, its orders and durations, its bubble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from bubblescope.align.layout import ASSUMED
from bubblescope.analysis.partition import Window
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.job import ClockFit, Job

__all__ = ["PipelineStep", "pipeline_steps"]


@dataclass(frozen=True, eq=False)
class PipelineStep:
    """The recorded ranks of a pipeline in one step; `steps` and `position` by rank.

    `doubt` is by how many nanoseconds the clocks may be wrong about the window's length; None where nothing
    bounds it. `seen` is whether each of its stages was recorded, `spanned` whether the window is that of all of them.
    `longest` is how long the window can be at most by the steps of the recorded ranks; None where these tell nothing.
    """

    pipeline: int
    step: int
    window: Window
    doubt: int | None
    steps: Mapping[int, RankStep]
    position: Mapping[int, int]
    seen: bool
    spanned: bool
    longest: int | None

    @property
    def useful(self) -> dict[int, int]:
        """Useful nanoseconds of each rank."""
        return {rank: step.useful.total for rank, step in self.steps.items()}

    @property
    def useful_by_position(self) -> dict[int, float]:
        """Useful nanoseconds of each position: the mean over its recorded tensor-parallel ranks."""
        lengths: dict[int, list[int]] = {}
        for rank, useful in self.useful.items():
            lengths.setdefault(self.position[rank], []).append(useful)
        return {position: fmean(useful) for position, useful in lengths.items()}

    def window_of(self, rank: int) -> Window:
        """The window on a rank's own clock: moved, if that clock disagrees, so that it holds the rank's actions."""
        span = _span(self.steps[rank])
        return self.window.around(span.start, span.end)

    @property
    def bubble(self) -> float:
        """1 - mean useful / window over the positions (D1), however many ranks of each were recorded."""
        return 1 - fmean(self.useful_by_position.values()) / self.window.length

    @property
    def window_bounds(self) -> tuple[int, int | None]:
        """The shortest and the longest window that clocks and unseen ranks leave open, in nanoseconds.

        It is no shorter than what one rank did. Where ranks are unseen that may hold an end of it, or nothing bounds
        the clocks, it may be as long as the step; None where no recorded rank tells how long that is.
        """
        own = max(_span(step).length for step in self.steps.values())
        shortest = own if self.doubt is None else max(self.window.length - self.doubt, own)
        known = self.window.length + (self.doubt or 0)
        if self.spanned and self.doubt is not None:
            return shortest, known
        return shortest, None if self.longest is None else max(known, self.longest)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest bubble that the clocks leave open."""
        useful = fmean(self.useful_by_position.values())
        shortest, longest = self.window_bounds
        return 1 - useful / shortest, 1.0 if longest is None else 1 - useful / longest

    @property
    def span_bubble(self) -> float:
        """The same over the longest rank's own span (D3; Zero Bubble, arXiv 2401.10241, section 5.3)."""
        return 1 - fmean(self.useful_by_position.values()) / max(_span(s).length for s in self.steps.values())

    @property
    def orders(self) -> dict[int, Order]:
        """The order of each position; its first rank speaks for the tensor-parallel others."""
        return {self.position[rank]: self.steps[rank].order for rank in sorted(self.steps, reverse=True)}

    @cached_property
    def replayed(self) -> Mapping[int, Order]:
        """The orders with the input gradients of stage 0, which take no time and leave no trace.

        Where other stages split their backwards, each stands before its weight gradient: nobody waits for it.
        """
        orders = self.orders
        split = any(action.kind == Kind.I for order in orders.values() for action in order)
        return {at: _with_inputs(order) for at, order in orders.items()} if split else orders

    @property
    def together(self) -> frozenset[Action]:
        """The actions that ran as one block with the one that follows them."""
        return frozenset[Action]().union(*(step.together for step in self.steps.values()))

    @cached_property
    def durations(self) -> Mapping[Action, float]:
        """Useful nanoseconds of every action that is replayed, the mean over the ranks that share it."""
        total: dict[Action, list[int]] = {action: [] for order in self.replayed.values() for action in order}
        for step in self.steps.values():
            for action, length in zip(step.order, step.durations.tolist(), strict=True):
                total.setdefault(action, []).append(length)
        return {action: sum(lengths) / len(lengths) if lengths else 0.0 for action, lengths in total.items()}


def _with_inputs(order: Order) -> Order:
    inputs = {action for action in order if action.kind == Kind.I}
    lacking = {w for w in order if (w.stage, w.kind) == (0, Kind.W) and w._replace(kind=Kind.I) not in inputs}
    return (
        tuple(a for w in order for a in ((w._replace(kind=Kind.I), w) if w in lacking else (w,))) if lacking else order
    )


def pipeline_steps(job: Job, views: Mapping[int, RankView], number: int) -> list[PipelineStep]:
    """The pipelines of a job in the step of that number; one in which nothing took any time is none."""
    result = []
    for pipeline, positions in enumerate(job.plan.pipelines):
        here = {r: v.steps[number] for r, v in views.items() if v.pipeline == pipeline and number in v.steps}
        here = {rank: step for rank, step in here.items() if len(step.rows)}
        if here:
            position = {rank: at for at, ranks in enumerate(positions) for rank in ranks if rank in here}
            seen = job.plan.sized and len(set(position.values())) == len(positions)
            placed = seen or (job.plan.source != ASSUMED and not any(map(_by_kernels, map(views.__getitem__, here))))
            owned = _owned(here) if placed and _one_way(job) else None
            window, doubt = (owned, 0) if owned is not None else _joined(here, job.clock)
            spanned = seen or owned is not None
            bounds = [step.end - step.start for step in here.values()] if seen else list(_step_bounds(views, here))
            longest = max(bounds, default=None)
            result.append(PipelineStep(pipeline, number, window, doubt, here, position, seen, spanned, longest))
    return [step for step in result if step.window.length and any(step.useful.values())]


def _by_kernels(view: RankView) -> bool:
    """Whether kernels alone tell a rank's actions, so that weight gradients may hide among its backwards."""
    return view.timeline.reconstruction == "kernels"


def _step_bounds(views: Mapping[int, RankView], steps: Mapping[int, RankStep]) -> Iterator[int]:
    """How long a step lasts on each rank that tells it.

    A profiler's step goes on until the next one begins, and the last one until all is done. What somebody's own code
    writes of a rank ends with its own actions, unless more is written behind them: so there the next step tells, or
    else how far apart the rank's other steps are.
    """
    for rank, step in steps.items():
        view = views[rank]
        if view.timeline.reconstruction != "table":
            yield step.end - step.start
        elif not view.timeline.restarts:
            following = view.until_next(step.step) or max(filter(None, map(view.until_next, view.steps)), default=None)
            behind = step.end - step.start if step.end > _span(step).end else None
            yield from [ns for ns in (following, behind) if ns is not None][:1]


def _one_way(job: Job) -> bool:
    """Whether micro-batches enter the pipeline at one end alone: at two, each has a first and a last action."""
    return sum(0 in stages for stages in job.placement.values()) <= 1


def _owned(steps: Mapping[int, RankStep]) -> Window | None:
    """From the first action's start to the last action's end, if one rank has both.

    Every action follows the first forward of stage 0, and every backward precedes the last backward of
    stage 0: where no weight gradient trails behind, a rank of stage 0 has both ends on its own clock,
    and the window does not depend on how the clocks are aligned. Of several the longest counts.
    """
    if any(np.any(step.actions.kind == Kind.W) for step in steps.values()):
        return None
    spans = {rank: _span(step) for rank, step in steps.items()}
    owning = [spans[rank] for rank, step in steps.items() if _has_both_ends(step)]
    window = max(owning, key=lambda span: span.length, default=None)
    longest = max(span.length for span in spans.values())
    return window if window is not None and window.length == longest else None


def _joined(steps: Mapping[int, RankStep], clock: ClockFit) -> tuple[Window, int | None]:
    """From the first action's start to the last action's end, and by how much the clocks may be wrong about it."""
    spans = {rank: _span(step) for rank, step in steps.items()}
    first = min(spans, key=lambda rank: spans[rank].start)
    last = max(spans, key=lambda rank: spans[rank].end)
    return Window(spans[first].start, spans[last].end), clock.between(first, last)


def _span(step: RankStep) -> Window:
    """From a rank's first action to its last."""
    return Window(int(step.actions.start.min()), int(step.actions.end.max()))


def _has_both_ends(step: RankStep) -> bool:
    """Whether the rank runs the first and the last action of the pipeline: forwards and backwards of stage 0."""
    kinds = step.actions.kind[step.actions.stage == 0]
    return bool(np.any(kinds == Kind.F) and np.any(kinds == Kind.B))
