"""Which old pieces of a line a new piece of it covers: micro-batches of another size, stages of another number."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

__all__ = ["Shares", "cover"]

Shares = Sequence[tuple[int, float]]
"""Numbers of old pieces, and the share of each that a new piece takes."""

_NOTHING = 1e-9


def cover(number: int, size: float) -> Shares:
    """The old pieces, each 1 long, that the new piece of that number covers, `size` long.

    The shares add up to `size`: work is conserved.
    """
    low, high = number * size, (number + 1) * size
    touched = range(floor(low + _NOTHING), ceil(high - _NOTHING))
    return [(old, min(high, old + 1) - max(low, old)) for old in touched]
