"""Times as a user states them, one for all or a list, and what they come to for the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import Placement
from bubblescope.schedules.family import Costs, Shape
from bubblescope.schedules.replay import source_of

__all__ = ["StageTimes", "Times"]

LEAST, MOST = 1e-9, 1e12
"""Times other than 0 lie between these: no sum of them overflows, and none vanishes beside the others."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times of one micro-batch, in any unit.

    `backward` is the full backward where `weight` is None, of which half counts as W where a schedule
    splits it; else it is the input gradient, and `weight` the weight gradient. Each holds one number or
    one a rank, for all chunks of the rank together, or one for each stage of the pipeline. `comm` is how
    long a transfer takes: one number, or one for each pair of neighbouring ranks.
    """

    forward: tuple[float, ...] = (1.0,)
    backward: tuple[float, ...] = (2.0,)
    weight: tuple[float, ...] | None = None
    comm: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "weight", "comm"):
            for value in getattr(self, name) or ():
                if not (isfinite(value) and (value == 0 or LEAST <= value <= MOST)):
                    raise UsageError(f"{name}: a time is 0 or lies between {LEAST:g} and {MOST:g}, found {value:g}")
        if not any((*self.forward, *self.backward, *(self.weight or ()))):
            raise UsageError("forward and backward take no time: there is nothing to simulate")

    def of(self, shape: Shape, placement: Placement) -> StageTimes:
        """The times of every stage of a pipeline; raises UsageError where a list does not fit it."""
        rank_of = {stage: rank for rank, held in enumerate(placement) for stage in held}
        halves = tuple(time / 2 for time in self.backward)
        gradient, weight = (halves, halves) if self.weight is None else (self.backward, self.weight)
        given = {"forward": self.forward, "backward": gradient, "weight": weight}
        stages = [_by_stage(name, times, shape, rank_of) for name, times in given.items()]
        means = [
            times[0] if len(times) == 1 else sum(by_stage) / shape.p  # the one number to its last digit
            for times, by_stage in zip(given.values(), stages, strict=True)
        ]
        costs = Costs(means[0], means[1], means[2], sum(self.comm) / len(self.comm))
        forward, gradients, weights = stages
        return StageTimes(shape, costs, forward, gradients, weights, _edges(self.comm, shape.p))


def _by_stage(name: str, given: tuple[float, ...], shape: Shape, rank_of: Mapping[int, int]) -> tuple[float, ...]:
    """Each stage's own time; a rank's is shared among its chunks."""
    if len(given) == 1:
        return (given[0] / shape.v,) * shape.stages
    if len(given) == shape.stages:
        return given
    if len(given) == shape.p:
        return tuple(given[rank_of[stage]] / shape.v for stage in range(shape.stages))
    stages = "" if shape.v == 1 else f" or {shape.stages} stages"
    raise UsageError(f"{name} takes one time, or one for each of {shape.p} ranks{stages}, found {len(given)}")


def _edges(given: tuple[float, ...], p: int) -> tuple[float, ...]:
    if len(given) == 1:
        return given * max(p - 1, 1)
    if len(given) == p - 1:
        return given
    raise UsageError(f"comm takes one time, or one for each of {p - 1} pairs of neighbours, found {len(given)}")


@dataclass(frozen=True, slots=True)
class StageTimes:
    """The time of every stage for one micro-batch, and of a transfer between each rank and the next.

    `input` and `weight` are the two parts of the backward. `costs` are the means over the ranks, which
    closed forms take.
    """

    shape: Shape
    costs: Costs
    forward: tuple[float, ...]
    input: tuple[float, ...]
    weight: tuple[float, ...]
    comm: tuple[float, ...]

    @property
    def backward(self) -> tuple[float, ...]:
        """The full backward of every stage."""
        return tuple(gradient + weight for gradient, weight in zip(self.input, self.weight, strict=True))

    @property
    def even(self) -> bool:
        """Whether stages are alike."""
        return all(len(set(times)) == 1 for times in (self.forward, self.input, self.weight))

    def lengths(self, orders: Mapping[int, Order]) -> dict[Action, float]:
        """Time of every action."""
        of = {Kind.F: self.forward, Kind.B: self.backward, Kind.I: self.input, Kind.W: self.weight}
        return {a: of[a.kind][a.stage] / self.shape.slices for order in orders.values() for a in order}

    def transfer(self, orders: Mapping[int, Order]) -> float | dict[Action, float]:
        """Time of every transfer, by the action that needs it; ranks that are no neighbours take the longest."""
        if len(set(self.comm)) == 1:
            return self.comm[0]
        rank_of = {action: rank for rank, order in orders.items() for action in order}
        sources = {action: source_of(action, self.shape.stages - 1, rank_of) for action in rank_of}
        return {
            action: self._between(rank_of[source], rank_of[action])
            for action, source in sources.items()
            if source is not None and rank_of[source] != rank_of[action]
        }

    def _between(self, one: int, other: int) -> float:
        return self.comm[min(one, other)] if abs(one - other) == 1 else max(self.comm)
