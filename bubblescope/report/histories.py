"""The numbers of a run for services that keep their history: Bencher, and github-action-benchmark."""

from __future__ import annotations

import orjson

from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import METRICS, Metric, Unit
from bubblescope.report import gate_words as told
from bubblescope.report import wording as words

__all__ = ["bencher", "benchmark"]

_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_LONGEST_NAME = 1024  # bencher.dev/docs/reference/bencher-metric-format
_SCALES: dict[Unit, tuple[str, float]] = {
    "share": ("%", 100.0),
    "ratio": ("ratio", 1.0),
    "ns": ("ms", 1e-6),
    "per_s": ("1/s", 1.0),
}


def bencher(baseline: Baseline) -> bytes:
    """Bencher Metric Format: fractions of 1, nanoseconds or rates, and a standard deviation of the steps around them.

    The job is the benchmark `pipeline`, a part of it one by its name; measures are the metrics.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for each in baseline.metrics:
        name = words.visible(told.part(each.by, each.of))[:_LONGEST_NAME] or "pipeline"
        found.setdefault(name, {})[each.metric.replace("_", "-")] = _bounded(each)
    return orjson.dumps(found, option=_LAYOUT)


def _bounded(metric: Metric) -> dict[str, float]:
    value = _rounded(metric.value, METRICS[metric.metric].unit)
    if metric.spread is None:
        return {"value": value}
    spread = _rounded(metric.spread, METRICS[metric.metric].unit)
    return {"value": value, "lower_value": round(value - spread, 6), "upper_value": round(value + spread, 6)}


def _rounded(value: float, unit: Unit) -> float:
    return float(round(value)) if unit == "ns" else round(value, 6)


def benchmark(baseline: Baseline) -> bytes:
    """github-action-benchmark's `customSmallerIsBetter`: the numbers of which less is better, in %, ms or as ratios."""
    run = baseline.fingerprint
    extra = words.visible(f"{told.shape(run)}; {words.counted(run.steps, 'step')}")
    found = [_entry(each) | {"extra": extra} for each in baseline.metrics if METRICS[each.metric].better == "lower"]
    return orjson.dumps(found, option=_LAYOUT)


def _entry(metric: Metric) -> dict[str, str | float]:
    unit, scale = _SCALES[METRICS[metric.metric].unit]
    place = words.visible(told.part(metric.by, metric.of))
    entry: dict[str, str | float] = {
        "name": f"{metric.metric}, {place}" if place else metric.metric,
        "unit": unit,
        "value": round(scale * metric.value, 4),
    }
    return entry if metric.spread is None else entry | {"range": f"± {round(scale * metric.spread, 4)}"}
