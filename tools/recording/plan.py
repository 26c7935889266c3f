"""What to record: the shape of a run and the time that its stages take."""

from __future__ import annotations

import argparse
import dataclasses

__all__ = ["Plan", "PlanError", "check_numbers", "scale_of"]


class PlanError(ValueError):
    """The wanted run is impossible; the message says why and what would do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """One run to record. Times are of a rank and micro-batch, before they are divided over the rank's chunks.

    Ranks that hold the same stages, as tensor or data parallel peers, have neighbouring numbers, as Megatron-core and
    DeepSpeed both deal them out.
    """

    schedule: str
    ranks: int
    tensor: int = 1
    data: int = 1
    microbatches: int
    chunks: int
    forward_ms: float
    backward_ms: float
    weight_share: float = 0.5
    scale: tuple[float, ...]
    steps: int

    @property
    def pipeline(self) -> int:
        """How many ranks are in a row, each with other stages."""
        return self.ranks // (self.tensor * self.data)

    @property
    def stages(self) -> int:
        """How many stages the model has."""
        return self.pipeline * self.chunks

    def stages_of(self, rank: int) -> list[int]:
        """Give the stages that a rank holds, in the order of the model: every pipeline-th one."""
        return list(range(rank // (self.tensor * self.data), self.stages, self.pipeline))

    def work_ms(self, stage: int) -> tuple[float, float, float]:
        """Give the milliseconds one micro-batch takes on a stage: forward, input gradient, weight gradient."""
        factor = self.scale[stage] / self.chunks
        weight = self.backward_ms * self.weight_share
        return self.forward_ms * factor, (self.backward_ms - weight) * factor, weight * factor


def check_numbers(options: argparse.Namespace, *counts: str) -> None:
    """Refuse counts below 1, where they are given, and times that are none."""
    for name in counts:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PlanError(f"--{name} must be at least 1, not {value}")
    if min(options.forward_ms, options.backward_ms) <= 0:
        raise PlanError("--forward-ms and --backward-ms must be above 0")


def scale_of(options: argparse.Namespace, stages: int) -> tuple[float, ...]:
    """Give the factor of each stage: what --scale says, or 1 for all."""
    scale: tuple[float, ...] = options.scale or (1.0,) * stages
    if len(scale) != stages:
        raise PlanError(f"--scale needs one number for each of the {stages} stages, not {len(scale)}")
    if min(scale) <= 0:
        raise PlanError("every number of --scale must be above 0")
    return scale
