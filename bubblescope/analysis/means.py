"""Means of durations by whatever the actions have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from statistics import fmean
from typing import TypeVar

from bubblescope.model.actions import Action

__all__ = ["means"]

Key = TypeVar("Key", bound=Hashable)


def means(durations: Iterable[tuple[Action, float]], key: Callable[[Action], Key]) -> dict[Key, float]:
    """Mean duration of the actions that share a key; an action may come several times."""
    lengths: dict[Key, list[float]] = {}
    for action, length in durations:
        lengths.setdefault(key(action), []).append(length)
    return {shared: fmean(values) for shared, values in lengths.items()}
