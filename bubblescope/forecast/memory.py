"""What a changed run keeps in memory, beside the measured one."""

from __future__ import annotations

from collections.abc import Mapping

from bubblescope.forecast.target import Target
from bubblescope.model.actions import Order
from bubblescope.model.whatif import Memory
from bubblescope.schedules.simulate import held

__all__ = ["memory"]


def memory(now: Target, to: Target, orders: Mapping[int, Order]) -> Memory:
    """Of the rank that keeps the most activations, in micro-batches of the measured run on one of its ranks.

    A rank of a shorter pipeline holds a longer part of the model, of which tensor parallelism leaves it a share: on the
    same GPUs both make up for each other.
    """
    held_by = {rank: held(order, to.shape) for rank, order in orders.items()}
    fullest = max(held_by, key=lambda rank: held_by[rank])
    of_model = now.shape.p / to.shape.p * (now.tp or 1) / (to.tp or 1)
    weights = None if to.family is None else to.family.memory.weights(to.shape, fullest)
    return Memory(activations=held_by[fullest] * to.size * of_model, weights=weights)
