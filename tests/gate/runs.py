"""Runs written out by hand, as a gate takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bubblescope.gate.take import Run
from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import Metric
from tests.gate.values import FINGERPRINT, TOOL

PRINT = replace(FINGERPRINT, cp=1, ep=1)


def metric(name: str, value: float, spread: float | None = 0.002, steps: int = 5, error: float = 0.0) -> Metric:
    """A metric by its name in rules: `bubble`, `bubble@stage=3`."""
    kind, _, part = name.partition("@")
    by, _, of = part.partition("=")
    return Metric(
        metric=kind,
        by=by or None,
        of=of or None,
        value=value,
        spread=spread,
        steps=steps,
        error=error,  # type: ignore[arg-type]
    )


def numbers(*metrics: Metric, doubts: dict[str, tuple[str, ...]] | None = None, **changed: Any) -> Baseline:
    """A run with these numbers; `changed` is what its fingerprint has otherwise."""
    return Baseline(
        tool=TOOL,
        fingerprint=replace(PRINT, **changed),
        doubts=doubts or {},
        metrics=metrics,
    )


def usual(bubble: float = 0.29, spread: float | None = 0.002, steps: int = 5, **changed: Any) -> Baseline:
    """A run of four stages, the last of which idles most."""
    return numbers(
        metric("bubble", bubble, spread, steps),
        metric("imbalance", 1.02, None if spread is None else 0.002, steps),
        metric("step_time", 700e6, None if spread is None else 1e6, steps),
        metric("bubble@cause=structural", 0.2727, None if spread is None else 0.0, steps),
        metric("bubble@cause=host", bubble - 0.2727, spread, steps),
        *(metric(f"bubble@stage={k}", bubble + (0.01 if k == 3 else 0.0), spread, steps) for k in range(4)),
        **changed,
    )


def run(found: Baseline) -> Run:
    """The same as what a gate holds against its rules."""
    return Run(found, ("traces",), {str(stage): (stage,) for stage in range(4)})
