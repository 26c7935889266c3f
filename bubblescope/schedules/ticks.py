"""Costs in whole numbers, for schedules that compare times while they search for their order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from bubblescope.schedules.family import Costs

__all__ = ["Ticks"]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Costs in whole numbers of a tick, so that times that are equal on paper compare equal, whatever the unit."""

    forward: int
    input: int
    weight: int
    backward: int
    transfer: int

    @classmethod
    def of(cls, costs: Costs) -> Ticks:
        """Costs as fractions of the longest, with denominators of up to 10,000."""
        times = (costs.forward, costs.input, costs.weight, costs.backward, costs.transfer)
        shares = [Fraction(time / (max(times) or 1)).limit_denominator(10_000) for time in times]
        tick = lcm(*(share.denominator for share in shares))
        return cls(*(int(share * tick) for share in shares))
