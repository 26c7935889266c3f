"""The numbers that a gate can ask for, each with how much its steps differ.

A number is the one of the report; its spread is that of the same number, worked out for each used step by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from statistics import fmean, stdev

from bubblescope.analysis.balance import stage_ratios
from bubblescope.analysis.exposed import WHOLE, exposed
from bubblescope.analysis.loads import loads
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.stages import stages
from bubblescope.analysis.study import Study
from bubblescope.model import report
from bubblescope.model.metrics import METRICS, Metric, Part

__all__ = ["samples"]

_FITTED = frozenset({"imbalance", "straggler"})
"""Causes that are told from the mean times of the whole run: all its steps show the same, however far off it is. What
they get wrong is in jitter, so they are as uncertain as that."""
_RATES = ("microbatches_per_s", "samples_per_s", "tokens_per_s", "mfu")


@dataclass(frozen=True, slots=True)
class _Series:
    """A number and its value in each step; what varies `beside` it makes it as uncertain by itself."""

    metric: str
    value: float | None
    values: Sequence[float]
    by: Part | None = None
    of: str | None = None
    error: float = 0.0
    beside: Sequence[float] = ()


def samples(found: Study, made: report.Report, times: Mapping[int, int]) -> tuple[Metric, ...]:
    """The metrics of a report, the whole job first; what the run does not have is left out.

    Args:
        found: the study behind the report.
        made: the report.
        times: the length of each used step.
    """
    by_step = _by_step(found)
    series = (
        *_bubble(made, by_step),
        *_balance(found, made, by_step),
        *_of_parts(made, by_step),
        *_communication(found, times),
        *_speed(made, times),
    )
    told = [_metric(each) for each in series if each.value is not None and each.values]
    order = list(METRICS)
    return tuple(sorted(told, key=lambda each: (each.by is not None, order.index(each.metric))))


def _metric(series: _Series) -> Metric:
    assert series.value is not None
    return Metric(
        metric=series.metric,
        by=series.by,
        of=series.of,
        value=series.value,
        spread=_spread(series),
        steps=len(series.values),
        error=series.error,
    )


def _spread(series: _Series) -> float | None:
    if len(series.values) < 2:
        return None
    return hypot(stdev(series.values), stdev(series.beside) if series.beside else 0.0)


def _by_step(found: Study) -> dict[int, list[PipelineStep]]:
    """The pipelines of each used step that has any."""
    of: dict[int, list[PipelineStep]] = {}
    for step in found.steps:
        of.setdefault(step.step, []).append(step)
    return of


def _bubble(made: report.Report, by_step: Mapping[int, Sequence[PipelineStep]]) -> Iterator[_Series]:
    bubble = made.bubble
    whole = [[step for step in steps if step.seen] for steps in by_step.values()]
    whole = [steps for steps in whole if steps]
    values = [fmean(step.bubble for step in steps) for steps in whole]
    error = _error(bubble)
    yield _Series("bubble", bubble.measured, values, error=error)
    yield _Series("gap", bubble.gap, [value - (bubble.formula or 0.0) for value in values], error=error)
    windows = [fmean(step.window.length for step in steps) for steps in whole]
    yield _Series("window", bubble.window_ns, windows, error=error * (bubble.window_ns or 0))
    points = [step.points for step in made.steps if step.used and step.points is not None]
    for cause in bubble.causes:
        values = [each[cause.cause] for each in points]
        beside = [each["jitter"] for each in points] if cause.cause in _FITTED and cause.points else ()
        yield _Series("bubble", cause.points, values, "cause", cause.cause, beside=beside)


def _error(bubble: report.Bubble) -> float:
    """By how much the clocks may be wrong about the bubble."""
    if bubble.measured is None or bubble.lower is None or bubble.upper is None:
        return 0.0
    return max(bubble.upper - bubble.measured, bubble.measured - bubble.lower, 0.0)


def _balance(found: Study, made: report.Report, by_step: Mapping[int, Sequence[PipelineStep]]) -> Iterator[_Series]:
    known = [load.stage for load in made.imbalance.stages]
    each = [loads(steps) for steps in by_step.values()] if known else []
    told = [stage_ratios(work, known) for work in each if set(known) <= set(work.stages)]
    yield _Series("imbalance", made.imbalance.stage_ratio, [max(of.values()) for of in told])
    for load in made.imbalance.stages:
        yield _Series("imbalance", load.ratio, [of[load.stage] for of in told], "stage", str(load.stage))
    rows = [{row.stage: row for row in stages(found.job, steps)} for steps in by_step.values()]
    for stage in made.stages:
        mine = [of[stage.stage] for of in rows if stage.stage in of]
        bubbles = [row.bubble for row in mine if row.bubble is not None]
        yield _Series("bubble", stage.bubble, bubbles, "stage", str(stage.stage), _error(made.bubble))
        yield _Series("work", stage.work_ns, [row.work_ns for row in mine], "stage", str(stage.stage))


def _of_parts(made: report.Report, by_step: Mapping[int, Sequence[PipelineStep]]) -> Iterator[_Series]:
    """Those of single ranks and pipelines."""
    error, idle = _error(made.bubble), dict[int, list[float]]()
    seen: dict[int, list[PipelineStep]] = {}
    for step in (step for steps in by_step.values() for step in steps):
        if step.seen:
            seen.setdefault(step.pipeline, []).append(step)
        for rank, mine in step.steps.items() if step.spanned else ():
            idle.setdefault(rank, []).append(1 - mine.useful.total / step.window_of(rank).length)
    for line in made.pipelines:
        own = seen.get(line.pipeline, [])
        where: tuple[Part, str] = ("pipeline", str(line.pipeline))
        yield _Series("bubble", line.bubble, [step.bubble for step in own], *where, error)
        yield _Series("window", line.window_ns, [step.window.length for step in own], *where)
    for row in made.ranks:
        yield _Series("bubble", row.bubble, idle.get(row.rank, []), "rank", str(row.rank), error)


def _communication(found: Study, times: Mapping[int, int]) -> Iterator[_Series]:
    used = [number for number, length in times.items() if length]
    for group, lengths in exposed(found.views, used).items():
        shares = [length / times[number] for number, length in zip(used, lengths, strict=True)]
        if shares:
            yield _Series("exposed", fmean(shares), shares, None if group == WHOLE else "group", group or None)


def _speed(made: report.Report, times: Mapping[int, int]) -> Iterator[_Series]:
    rates = made.throughput
    if rates is None:
        return
    lengths = list(times.values())
    mean = fmean(lengths)
    yield _Series("step_time", rates.step_ns, lengths)
    if all(lengths):
        for name in _RATES:
            value: float | None = getattr(rates, name)
            yield _Series(name, value, [(value or 0.0) * mean / length for length in lengths])
