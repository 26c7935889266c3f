"""How a metric is called, and how its values are written: the same wherever a number of a run stands."""

from __future__ import annotations

from bubblescope.model.metrics import METRICS, Unit
from bubblescope.report import wording as words

__all__ = ["title", "value"]


def title(metric: str) -> str:
    """The metric in plain words; one that is unknown here keeps its name."""
    kind = METRICS.get(metric)
    return metric if kind is None else kind.title.split(",")[0]


def value(amount: float | None, unit: Unit, digits: int = 1) -> str:
    """A value of a metric in its unit."""
    if amount is None:
        return words.ABSENT
    if unit == "share":
        return words.percent(amount, digits)
    if unit == "ns":
        return words.duration(amount)
    return words.plain(amount, digits + 1) if unit == "ratio" else f"{words.short(amount)}/s"
