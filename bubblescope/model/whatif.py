"""What-if, `bubblescope.whatif/1`: a measured run, its replay, and forecasts of the run with something changed.

Times are integer nanoseconds (`*_ns`), means a step; shares are fractions of 1; unknown is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubblescope.model.report import Quality, Tool

__all__ = ["Forecast", "Memory", "Run", "WhatIf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the fullest rank keeps: activations in measured micro-batches on a measured rank, copies of the weights.

    `weights` counts what a rank of the measured run holds as 1; None where nobody knows.
    """

    activations: float
    weights: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, measured, replayed or forecast.

    Attributes:
        schedule: its name.
        pp: pipeline ranks.
        tp: tensor-parallel ranks a stage, None unknown.
        virtual: stages a rank holds.
        microbatches: a step and pipeline.
        step_ns: a whole step, gradients and optimizer included.
        window_ns: the pipeline window, mean over the pipelines.
        bubble: share of the window (D1).
        span: the same of the longest rank's own span (D3).
        memory: None where the order tells nothing.
    """

    schedule: str
    pp: int
    tp: int | None
    virtual: int
    microbatches: int
    step_ns: int
    window_ns: int
    bubble: float
    span: float | None
    memory: Memory | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The run with one thing changed; `run` is None where that is impossible, and `problem` says why.

    `gain` is the share of a step's time that is saved for the same data, `gain_ns` the same of a replayed step:
    an upper bound, as all that is not modelled costs time. Negative where the change costs time. `layers` are those of
    each stage where they lie otherwise than measured, None where they stay or nobody knows them.
    """

    change: str
    title: str
    run: Run | None
    gain: float | None
    gain_ns: int | None
    assumptions: tuple[str, ...]
    problem: str | None = None
    layers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """All forecasts of a run, in the order asked for.

    `error` is by how much the replay of the unmodified run misses the measured one: a share of the steps or of the
    windows, whichever is more. `quality` and `trusted` are the report's `quality` and `bubble.trusted`, for forecasts
    rest on the same data.
    """

    schema: Literal["bubblescope.whatif/1"] = "bubblescope.whatif/1"
    tool: Tool
    quality: Quality
    trusted: bool
    measured: Run
    replayed: Run
    error: float
    steps: int
    forecasts: tuple[Forecast, ...]
