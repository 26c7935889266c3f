"""Means of durations by whatever the actions have in common, and of anything over the pipelines of a step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Action

__all__ = ["by_step", "means"]

Key = TypeVar("Key", bound=Hashable)


def means(durations: Iterable[tuple[Action, float]], key: Callable[[Action], Key]) -> dict[Key, float]:
    """Mean duration of the actions that share a key; an action may come several times."""
    lengths: dict[Key, list[float]] = {}
    for action, length in durations:
        lengths.setdefault(key(action), []).append(length)
    return {shared: fmean(values) for shared, values in lengths.items()}


def by_step(steps: Sequence[PipelineStep], values: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Means of values over the pipelines of each step, in the order of the steps: the measured bubble is their mean."""
    of: dict[int, list[npt.NDArray[np.float64]]] = {}
    for step, value in zip(steps, values, strict=True):
        of.setdefault(step.step, []).append(value)
    return np.array([np.mean(rows, axis=0) for rows in of.values()])
