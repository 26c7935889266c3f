"""A measured run that can be replayed with something changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TypeVar

import numpy as np

from bubblescope.analysis.apart import sound
from bubblescope.analysis.means import means
from bubblescope.analysis.partition import Window, outside
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.step_times import step_times
from bubblescope.analysis.study import Study
from bubblescope.errors import UndecidedError, UsageError
from bubblescope.forecast.cut import Model, known
from bubblescope.forecast.measured import Measured, measured
from bubblescope.forecast.memory import memory
from bubblescope.forecast.partition import Counts
from bubblescope.forecast.recast import Plan, Recast
from bubblescope.forecast.target import Target, aimed, target
from bubblescope.forecast.words import assumptions, title
from bubblescope.model.actions import Kind, Order
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options
from bubblescope.model.whatif import Forecast, Run
from bubblescope.schedules.replay import Deadlock
from bubblescope.schedules.trial import standstill

__all__ = ["LIMIT", "Forecaster"]

LIMIT = 0.05
"""Share of a step by which its replay may miss it, and still carry a forecast (arXiv 2505.05713, section 6)."""

_NONE = Changes()

Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class Forecaster:
    """A study whose steps can be replayed; `runs` are the steps of each pipeline, `model` its layers if they are known.

    Raises UndecidedError where they cannot: see `of`.
    """

    found: Study
    runs: tuple[Measured, ...]
    model: Model | None = None

    @classmethod
    def of(cls, found: Study, options: Options, *, most_actions: int | None = None) -> Forecaster:
        """Make ready for replays.

        Args:
            found: the study.
            options: what the user states; the layers of the stages count.
            most_actions: replay fewer steps, evenly chosen, where all of them have more actions; at least one is.

        Raises:
            UndecidedError: the run has no pipeline, or a stage was not recorded, or no step is complete, or its
                actions wait for each other.
            UsageError: the layers that are stated do not fit the stages.
        """
        if not found.piped or found.schedule is None:
            raise UndecidedError("nothing can be replayed: no pipeline was found")
        if found.variation is None:
            together = sound(found.steps) or not found.steps
            lacks = "no complete step with every stage" if together else "no step in which all ranks run together"
            raise UndecidedError(
                f"nothing can be replayed: {lacks}",
                hint="bubblescope analyze tells what is missing",
            )
        try:
            runs = measured(found, _chosen(found.whole, most_actions))
        except Deadlock as deadlock:
            raise UndecidedError(f"the order cannot be replayed: {standstill(deadlock)}") from deadlock
        return cls(found, runs, known(found, options.layers))

    @property
    def steps(self) -> int:
        """How many steps are replayed."""
        return len(self._times)

    @cached_property
    def measured(self) -> Run:
        """The run as it was: means over the steps."""
        by_step = _grouped((step.step, step) for run in self.runs for step in run.steps)
        windows = [fmean(step.window.length for step in steps) for steps in by_step.values()]
        return replace(
            self.replayed,
            step_ns=round(fmean(self._times.values())),
            window_ns=round(fmean(windows)),
            bubble=fmean(fmean(step.bubble for step in steps) for steps in by_step.values()),
            span=fmean(fmean(step.span_bubble for step in steps) for steps in by_step.values()),
        )

    @cached_property
    def replayed(self) -> Run:
        """The unmodified run, replayed."""
        return self._run(_NONE, self.now, self._unmodified)

    @cached_property
    def error(self) -> float:
        """By how much the replay misses the run: a share of the steps, or of the windows, whichever is more.

        Means of the misses, either way, over the steps and over the pipelines of each step.
        """
        lengths = self._unmodified
        steps = self._step_lengths(_NONE, lengths)
        windows = [step.window.length for run in self.runs for step in run.steps]
        return max(
            fmean(abs(steps[number] - took) / took for number, took in self._times.items()),
            fmean(abs(one.window - took) / took for one, took in zip(lengths, windows, strict=True)),
        )

    @cached_property
    def _unmodified(self) -> list[_Length]:
        return list(self._lengths(_NONE, self.now))

    @cached_property
    def now(self) -> Target:
        """The run as it is."""
        return aimed(self.found)

    def forecast(self, changes: Changes) -> Forecast:
        """The run with changes; what is impossible comes back with the reason as its `problem`."""
        try:
            to = target(self.found, changes)
            to = replace(to, layers=self._layers(changes, to))
            run = self._run(changes, to, list(self._lengths(changes, to)))
        except UsageError as error:
            return _impossible(changes, error.message)
        except Deadlock as deadlock:
            return _impossible(changes, f"it comes to a stand: {standstill(deadlock)}")
        gain = 1 - run.step_ns / self.replayed.step_ns * self.now.data / to.data
        splits = any(action.kind == Kind.W for measured_run in self.runs for action in measured_run.column)
        return Forecast(
            change=str(changes),
            title=title(changes, self.now, to),
            run=run,
            gain=gain,
            gain_ns=round(gain * self.replayed.step_ns),
            assumptions=(
                *assumptions(changes, self.now, to, splits=splits, replicas=len(self.runs)),
                *self._of_messages(changes, to),
            ),
            layers=to.layers,
        )

    def _of_messages(self, changes: Changes, to: Target) -> Iterator[str]:
        """What is taken for granted of what the traces tell of messages."""
        if "dp" in changes.without and not any(self._exposed.values()):
            yield "the traces tell of no reduction of gradients outside the pipeline"
        if any(run.fused for run in self.runs) and to.orders is not None and to.family is self.now.family:
            yield "messages that share a kernel wait for each other as long as they did"

    def _layers(self, changes: Changes, to: Target) -> Counts | None:
        """How many layers each stage has then; None where they stay where they are, or nothing is known of them."""
        if "imbalance" in changes.without:  # then stages are equal, whatever their layers
            if changes.layers is not None:
                raise UsageError("without=imbalance makes all stages equal: no layers need to move")
            return None
        if self.model is None:
            if changes.layers is not None:
                raise UsageError("the traces show no layers; state how many each stage has: --layers")
            return None
        if changes.layers is None and to.stages == self.now.stages:
            return None
        return self.model.wanted(changes, to, to.orders or self.runs[0].orders)

    def _lengths(self, changes: Changes, to: Target) -> Iterator[_Length]:
        """Each pipeline in each step, replayed."""
        even = self._even if changes.even else {}
        plans = self._as_measured if to.orders is None and to.layers is None and changes.recompute is None else {}
        moved = self.model.shares(to.layers) if self.model is not None and to.layers is not None else None
        recasts: dict[Plan, Recast] = {}
        for run in self.runs:
            for row, step in enumerate(run.steps):
                orders = to.orders or step.replayed
                key = run.pipeline, frozenset(orders.items())
                if key not in plans:
                    plans[key] = Plan(
                        run=run,
                        now=self.now,
                        to=to,
                        orders=orders,
                        together=to.together if to.orders is not None else step.together,
                        recompute=changes.recompute,
                        moved=moved,
                    )
                plan = plans[key]
                recast = recasts.setdefault(plan, Recast(plan=plan, changes=changes, even=even))
                yield _length(recast, row, step.step)

    @cached_property
    def _as_measured(self) -> dict[tuple[int, frozenset[tuple[int, Order]]], Plan]:
        """Plans of the run as it was measured, by pipeline and orders: most questions ask for other times only."""
        return {}

    def _run(self, changes: Changes, to: Target, lengths: Sequence[_Length]) -> Run:
        by_step = _grouped((length.step, length) for length in lengths)
        return Run(
            schedule=to.family.name if to.family is not None else "unknown",
            pp=to.shape.p,
            tp=to.tp,
            virtual=to.shape.v,
            microbatches=to.shape.m,
            step_ns=round(fmean(self._step_lengths(changes, lengths).values())),
            window_ns=round(fmean(fmean(one.window for one in ones) for ones in by_step.values())),
            bubble=fmean(fmean(1 - one.useful / one.window for one in ones) for ones in by_step.values()),
            span=fmean(fmean(1 - one.useful / one.span for one in ones) for ones in by_step.values()),
            memory=memory(self.now, to, to.orders or self.runs[0].orders),
        )

    def _step_lengths(self, changes: Changes, lengths: Sequence[_Length]) -> dict[int, float]:
        """Each whole step: its slowest pipeline, and the rest of it."""
        by_step = _grouped((length.step, length) for length in lengths)
        rest = self._rest
        if "dp" in changes.without:
            rest = {number: max(min(ns, 0.0), ns - self._exposed[number]) for number, ns in rest.items()}
        return {number: max(one.window for one in ones) + rest[number] for number, ones in by_step.items()}

    @cached_property
    def _times(self) -> dict[int, int]:
        """How long each replayed step took."""
        replayed = {step.step for run in self.runs for step in run.steps}
        return {number: ns for number, ns in step_times(self.found).items() if number in replayed}

    @cached_property
    def _rest(self) -> dict[int, float]:
        """What of each step is not its slowest pipeline; negative where the next step begins before that is over."""
        longest = _grouped((step.step, step.window.length) for run in self.runs for step in run.steps)
        return {number: float(took - max(longest[number])) for number, took in self._times.items()}

    @cached_property
    def _exposed(self) -> dict[int, float]:
        """Nanoseconds of each step in which gradients were reduced outside the pipeline, on the rank with the most.

        Of the slowest pipeline: the ranks of the others wait for it there, which is no communication.
        """
        by_step = _grouped((step.step, step) for run in self.runs for step in run.steps)
        return {number: self._reduced(max(of, key=lambda step: step.window.length)) for number, of in by_step.items()}

    def _reduced(self, step: PipelineStep) -> float:
        exposed = []
        for rank, mine in step.steps.items():
            window = step.window_of(rank)
            beside = [Window(mine.start, window.start), Window(window.end, mine.end)]
            exposed.append(outside(self.found.views[rank].lanes, beside).dp)
        return max(exposed)

    @cached_property
    def _even(self) -> Mapping[Kind, float]:
        """The mean of every kind over all steps and pipelines."""
        steps = (step for run in self.runs for step in run.steps)
        return means((row for step in steps for row in step.durations.items()), lambda action: action.kind)


@dataclass(frozen=True, slots=True)
class _Length:
    """A pipeline in a step, replayed: nanoseconds of its window, of its longest rank's span, of mean useful time."""

    step: int
    window: float
    span: float
    useful: float


def _length(recast: Recast, row: int, step: int) -> _Length:
    course = recast.course
    useful = recast.durations(row)
    lengths, delays = (useful + recast.inside(row)).tolist(), recast.delays(row)
    try:
        start, end = course.run(lengths, delays)
    except Deadlock:
        if not delays.blocking:
            raise
        start, end = course.run(lengths, replace(delays, blocking=False))
    spans = [max(end[low:high]) - min(start[low:high]) for low, high in course.spans if high > low]
    return _Length(step, max(end, default=0.0), max(spans, default=0.0), float(np.sum(useful)) / len(course.spans))


def _impossible(changes: Changes, problem: str) -> Forecast:
    return Forecast(change=str(changes), title="", run=None, gain=None, gain_ns=None, assumptions=(), problem=problem)


def _chosen(steps: Sequence[PipelineStep], most: int | None) -> list[PipelineStep]:
    """The pipelines of as many steps, evenly spread, as have so many actions together; of one at least."""
    if most is None:
        return list(steps)
    numbers = list(dict.fromkeys(step.step for step in steps))
    actions = sum(len(step.durations) for step in steps) / len(numbers)
    count = max(1, min(len(numbers), int(most / max(actions, 1))))
    kept = {numbers[k * len(numbers) // count] for k in range(count)}
    return [step for step in steps if step.step in kept]


def _grouped(rows: Iterable[tuple[int, Row]]) -> dict[int, list[Row]]:
    of: dict[int, list[Row]] = {}
    for number, row in rows:
        of.setdefault(number, []).append(row)
    return of
