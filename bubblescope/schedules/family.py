"""What every schedule has: an order, a placement, a closed form, and shapes it cannot have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bubblescope.model.actions import Order

__all__ = ["Family", "OrderOf", "Shape", "loop"]

OrderOf = Callable[[int], Order]
"""The order of a pipeline rank: one textbook order of a whole pipeline, made rank by rank as asked."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a pipeline: p ranks, m micro-batches a step, v chunks a rank."""

    p: int
    m: int
    v: int = 1

    def __post_init__(self) -> None:
        if min(self.p, self.m, self.v) < 1:
            raise ValueError(f"p, m and v must be at least 1, found p={self.p} m={self.m} v={self.v}")

    @property
    def stages(self) -> int:
        """Stages of the whole pipeline, p v."""
        return self.p * self.v


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A schedule as data.

    `variants` yields every textbook order of a shape, the usual one first; `bubble` is the closed
    form of the bubble as a share of the window (D1), stages balanced and communication free, or
    None where no exact one holds; `placement` gives the rank of each stage; `problem` says why a
    shape is impossible, or None. `aliases` are names that the same order goes by elsewhere.
    """

    name: str
    summary: str
    source: str
    variants: Callable[[Shape], Iterator[OrderOf]]
    bubble: Callable[[Shape], float | None]
    placement: Callable[[Shape], tuple[int, ...]]
    problem: Callable[[Shape], str | None]
    aliases: tuple[str, ...] = ()

    def orders(self, shape: Shape) -> dict[int, Order]:
        """The usual order of every rank of a pipeline of `shape`."""
        order_of = next(self.variants(shape))
        return {rank: order_of(rank) for rank in range(shape.p)}


def loop(shape: Shape) -> tuple[int, ...]:
    """Stages go round the ranks: stage s on rank s mod p."""
    return tuple(stage % shape.p for stage in range(shape.stages))
