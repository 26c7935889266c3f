"""Which bounds of two clocks are tight, and where clocks are likely to be that bounds of one way alone are.

The tightest bounds of a way are as good as the wire if somebody waited: a receive that lasts longer than others of the
same two clocks was there before its bytes, and ends as soon as they arrive. Nanoseconds throughout, float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bubblescope.align.bounds import Floats

__all__ = ["Waits", "likely"]

LEVEL = 50e3
"""Nanoseconds from the tightest bound of a way within which others are as tight."""

WAITED = 10e3
"""Nanoseconds by which a wait is longer than twice what the shortest interval takes."""

CLOSE = 5e3
"""Nanoseconds around the time of a wire in which a clock is looked for first."""

USUAL_OFF = 5e6
"""Nanoseconds that time services usually keep hosts within: in a narrower room recorded times tell nothing."""

SHARE = 64
"""Recorded clocks are kept to within this part of the room."""

Pair = tuple[int, int]
Levels = tuple[Floats, Floats]
"""Bounds along a line, and how long the interval took whose end makes each."""

Target = tuple[float, float]
"""Where the difference of two clocks is likely to be, and half the room around it to begin with."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Of a pair of clocks how long the shortest interval took, and whether anyone waited: on the second, the first."""

    least: float
    below: bool
    above: bool

    @classmethod
    def of(cls, below: Levels, above: Levels) -> Waits:
        """What the bounds of both ways tell; either may be empty, not both."""
        least = float(min(np.min(lasted, initial=np.inf) for _, lasted in (below, above)))
        return cls(least, *(_waited(*way, least) for way in (below, above)))


def _waited(level: Floats, lasted: Floats, least: float) -> bool:
    """Whether one of the tightest bounds of a way shows that somebody waited."""
    tightest = lasted[level >= np.max(level, initial=-np.inf) - LEVEL]
    return bool(np.any(tightest > 2 * least + WAITED))


def likely(ranges: Mapping[Pair, Target], waits: Mapping[Pair, Waits], start: Floats) -> Iterator[tuple[Pair, Target]]:
    """Targets of pairs of clocks whose middle means nothing, by pair, from lowest and highest difference of each.

    The middle is right where two ways are tight: somebody waited on both, or the room is what two messages take. Of
    one tight way, the clock is as far from its bound as a message takes. Of none, the recorded clock, or what is
    nearest to it, is likelier than the middle of a room that is wider than clocks are off.
    """
    for (i, j), (low, high) in ranges.items():
        pair = waits.get((i, j))
        if pair is None or pair.below is pair.above is True or high - low <= 2 * (pair.least + LEVEL):
            continue
        if pair.below:
            yield (i, j), (min(low + pair.least, high), CLOSE)
        elif pair.above:
            yield (i, j), (max(high - pair.least, low), CLOSE)
        elif USUAL_OFF < high - low < np.inf:
            yield (i, j), (min(max(float(start[j] - start[i]), low), high), (high - low) / SHARE)
