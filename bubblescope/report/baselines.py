"""A baseline: as JSON that is made to be committed, as a page, and as a CSV table."""

from __future__ import annotations

import dataclasses
import json as standard
from collections.abc import Iterator, Mapping

import orjson

from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.metrics import METRICS, Metric, Part, Unit
from bubblescope.report import csv, json
from bubblescope.report import gate_words as told
from bubblescope.report import wording as words
from bubblescope.report.facts import Fact
from bubblescope.report.metric_words import value
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["page", "render", "table"]

_DEGREES = (
    ("pp", "pipeline", True),
    ("tp", "tensor", True),
    ("dp", "data", True),
    ("cp", "context", False),
    ("ep", "expert", False),
)
"""Which are told, and whether also where they are 1."""


def render(baseline: Baseline) -> bytes:
    """JSON with a line for each number, so that a review shows which of them changed.

    Shares and ratios keep six decimals, times are whole nanoseconds, rates keep six digits.
    """
    rounded = dataclasses.replace(baseline, metrics=tuple(map(_rounded, baseline.metrics)))
    found = orjson.loads(json.render(rounded))
    lines = [f"  {_text(key)}: {_value(key, value)}" for key, value in found.items()]
    return json.harmless(("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _value(key: str, value: object) -> str:
    if key == "metrics" and isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_text(each)}" for each in value) + "\n  ]"
    if isinstance(value, Mapping) and value:
        return "{\n" + ",\n".join(f"    {_text(name)}: {_text(each)}" for name, each in value.items()) + "\n  }"
    return _text(value)


def _text(value: object) -> str:
    return standard.dumps(value, ensure_ascii=False, allow_nan=False)


def _rounded(metric: Metric) -> Metric:
    unit = METRICS[metric.metric].unit if metric.metric in METRICS else "per_s"  # one of a later version
    return dataclasses.replace(
        metric,
        value=_digits(metric.value, unit),
        spread=None if metric.spread is None else _digits(metric.spread, unit),
        error=_digits(metric.error, unit),
    )


def _digits(value: float, unit: Unit) -> float:
    if unit == "ns":
        return round(value)
    return float(f"{value:.6g}") if unit == "per_s" else round(value, 6) + 0.0  # no -0.0


def page(baseline: Baseline) -> Page:
    """What the run was, and its numbers."""
    bubble = baseline.metric("bubble")
    share = "" if bubble is None else f": bubble {words.percent(bubble.value)}"
    return Page(
        headline=f"{told.shape(baseline.fingerprint)}{share}",
        facts=tuple((name, text) for name, text in _facts(baseline) if text),
        warnings=tuple(f"{number}: {'; '.join(reasons)}" for number, reasons in baseline.doubts.items()),
        tables=tuple(each for each in (_whole(baseline), *_parts(baseline)) if each.rows),
    )


def _facts(baseline: Baseline) -> Iterator[Fact]:
    run = baseline.fingerprint
    yield "Schedule", run.schedule + (f", the same as {words.enumerate_words(run.also)}" if run.also else "")
    yield "Layout", _layout(run)
    yield "GPUs", words.enumerate_words(run.devices)
    yield "Steps", str(run.steps)
    yield "Format", words.enumerate_words(run.formats)
    yield "Reason", baseline.reason or ""
    yield "Written by", f"{baseline.tool.name} {baseline.tool.version}"


def _layout(run: Fingerprint) -> str:
    degrees = [(getattr(run, key), name, always) for key, name, always in _DEGREES]
    shown = " x ".join(f"{degree} {name}" for degree, name, always in degrees if degree and (always or degree > 1))
    chunks = f", {run.virtual} stages a rank" if run.virtual > 1 else ""
    count = "" if run.microbatches is None else f", {words.counted(run.microbatches, 'micro-batch')}"
    return f"{run.ranks}: {shown} parallel{chunks}{count}"


def _whole(baseline: Baseline) -> Table:
    rows = [
        (
            name,
            value(each.value, kind.unit),
            _spread(each.spread, kind.unit),
            str(each.steps),
            kind.title,
        )
        for name, kind in METRICS.items()
        if (each := baseline.metric(name)) is not None
    ]
    return Table(
        title="Numbers",
        denominator="of the whole job; ± standard deviation over the steps",
        align="lrrrl",
        headers=("number", "value", "±", "steps", "meaning"),
        rows=tuple(rows),
    )


def _spread(spread: float | None, unit: Unit) -> str:
    """Of a share in points, as its changes are."""
    if unit == "share" and spread is not None:
        return f"{words.plain(100 * spread, 2)} points"
    return value(spread, unit, 2)


def _parts(baseline: Baseline) -> Iterator[Table]:
    """A table for each kind of part, with a column for each number that it has."""
    for by in ("cause", "stage", "group", "rank", "pipeline"):
        found = {name: baseline.parts(name, by) for name in METRICS}
        names = [name for name, each in found.items() if each]
        of = list(dict.fromkeys(each.of or "" for name in names for each in found[name]))
        yield Table(
            title=f"By {by}",
            denominator="% of the pipeline window; all add up to the bubble" if by == "cause" else f"of each {by}",
            align="l" + "r" * len(names),
            headers=(by, *(name.replace("_", " ") for name in names)),
            rows=tuple((each, *(_cell(baseline, name, by, each) for name in names)) for each in of),
        )


def _cell(baseline: Baseline, name: str, by: Part, of: str) -> str:
    found = baseline.metric(name, by, of)
    return value(None if found is None else found.value, METRICS[name].unit)


def table(baseline: Baseline) -> bytes:
    """The numbers as CSV, one row each; columns are the keys of the JSON."""
    names = [field.name for field in dataclasses.fields(Metric)]
    return csv.table(names, ([getattr(each, name) for name in names] for each in baseline.metrics))
