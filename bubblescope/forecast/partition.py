"""The best contiguous partition of a model's layers over stages.

The slowest stage decides first: the least possible maximum is found by a binary search over it, as planners do
(PipeDream, DAPPLE; O(L log) for L layers). Where the slow stages stand decides the rest, by up to
(p - 1)(t_max - t): for 1F1B a slow first stage costs less than a slow last one. So a few partitions at and near that
optimum are simulated, and what improves the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, combinations, pairwise
from math import comb

import numpy as np

from bubblescope.errors import UsageError
from bubblescope.model.columns import Bools, Floats, Ints
from bubblescope.model.layers import Layers

__all__ = ["TRIALS", "Counts", "Layers", "Makespan", "best", "even", "tightest"]

Counts = tuple[int, ...]
"""How many layers each stage has."""

Makespan = Callable[[tuple[int, ...], tuple[int, ...]], float]
"""What the forward and the backward time of every stage come to."""

TRIALS = 96
"""How many partitions are simulated; all are where there are no more."""

_WIDER = (0.0, 0.02, 0.05, 0.1)
"""By how much the slowest stage may be above the optimum if that makes for a shorter step."""


def best(
    layers: Layers, stages: int, makespan: Makespan, *, present: Counts | None = None, trials: int = TRIALS
) -> Counts:
    """How many layers each stage should have; each has at least one. Raises UsageError where that cannot be.

    Of partitions with the same makespan the one nearest to the present one is taken: the fewest layers cross each
    boundary between stages. None is an even spread. `trials` bounds how often `makespan` is called. The result is
    never worse than the present partition, nor than `tightest`.
    """
    present = even(len(layers), stages) if present is None else present
    search = _Search(layers, stages, makespan, present, trials)
    if comb(len(layers) - 1, stages - 1) <= trials:
        search.all(_every(len(layers), stages))
        return search.best
    search.all(_likely(search))
    while search.better(_neighbours(search.best)):
        pass
    return search.best


def tightest(layers: Layers, stages: int, *, present: Counts | None = None) -> Counts:
    """The partition whose slowest stage takes least; of several the nearest to the present one."""
    present = even(len(layers), stages) if present is None else present
    return _nearest(layers, stages, _least(layers.pieces, stages), present)


def even(layers: int, stages: int) -> Counts:
    """As many layers for every stage, the first ones with one more; raises UsageError if there are too few."""
    if not 1 <= stages <= layers:
        raise UsageError(f"{layers} layers cannot be spread over {stages} stages, at least one for each")
    each, more = divmod(layers, stages)
    return (each + 1,) * more + (each,) * (stages - more)


class _Search:
    """Partitions tried so far, and the best of them."""

    def __init__(self, layers: Layers, stages: int, makespan: Makespan, present: Counts, trials: int) -> None:
        self.layers, self.stages, self.present = layers, stages, present
        self.left = trials
        self._makespan = makespan
        self._tried: dict[Counts, tuple[float, int, Counts]] = {}
        # Both whatever the budget: the result is never worse.
        self._try(tightest(layers, stages, present=present))
        if len(present) == stages and sum(present) == len(layers):
            self._try(present)

    @property
    def best(self) -> Counts:
        """The best one so far."""
        return min(self._tried.values())[-1]

    def all(self, found: Iterator[Counts]) -> None:
        """Try partitions while the budget lasts."""
        for counts in found:
            if not self.left:
                return
            self._try(counts)

    def better(self, found: Iterator[Counts]) -> bool:
        """Try partitions until one is the best, if the budget lasts so long."""
        before = self.best
        for counts in found:
            if not self.left:
                return False
            self._try(counts)
            if self.best != before:
                return True
        return False

    def _try(self, counts: Counts) -> None:
        if counts not in self._tried:
            self.left = max(0, self.left - 1)
            key = self._makespan(*self.layers.stages(counts)), _distance(counts, self.present), counts
            self._tried[counts] = key


def _distance(counts: Counts, present: Counts) -> int:
    """How many layers cross the boundaries between stages."""
    return sum(abs(a - b) for a, b in zip(accumulate(counts), accumulate(present), strict=False))


def _every(layers: int, stages: int) -> Iterator[Counts]:
    for cuts in combinations(range(1, layers), stages - 1):
        yield tuple(high - low for low, high in pairwise((0, *cuts, layers)))


def _likely(search: _Search) -> Iterator[Counts]:
    """At and near the least maximum: nearest to the present one, and evenest with the slow stages first or last."""
    pieces = search.layers.pieces
    least = _least(pieces, search.stages)
    for wider in _WIDER:
        most = int(least * (1 + wider))
        for slope in (1, -1):
            yield _evenest(pieces, search.stages, most, slope)
        yield _nearest(search.layers, search.stages, most, search.present)


def _neighbours(counts: Counts) -> Iterator[Counts]:
    """A layer moved from one stage to another, those between handing one on; the shortest ways first."""
    pairs = [(a, b) for a in range(len(counts)) for b in range(len(counts)) if a != b and counts[a] > 1]
    for giver, taker in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), pair)):
        result = list(counts)
        result[giver] -= 1
        result[taker] += 1
        yield tuple(result)


def _least(pieces: Sequence[int], stages: int) -> int:
    """The least maximum over contiguous partitions, by binary search; pieces are no less than 0."""
    low, high = max(*pieces, -(-sum(pieces) // stages)), sum(pieces)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _needed(pieces, middle) <= stages else (middle + 1, high)
    return low


def _needed(pieces: Sequence[int], most: int) -> int:
    """How many stages it takes if none takes longer than `most`, which is no less than any piece."""
    count, filled = 1, 0
    for piece in pieces:
        filled += piece
        if filled > most:
            count, filled = count + 1, piece
    return count


def _nearest(layers: Layers, stages: int, most: int, present: Counts) -> Counts:
    """Of the partitions whose slowest stage takes no longer than `most` the one nearest to the present one."""
    ends = list(accumulate(present))
    crossing = np.abs(np.arange(len(layers) + 1)[None, :] - np.array([*ends, *ends[-1:] * stages])[:stages, None])
    crossing[-1] = 0  # The last stage always ends with the model.
    return _path(_allowed(layers.pieces, most), lambda stage: crossing[stage][None, :].astype(float), stages)


def _evenest(pieces: Sequence[int], stages: int, most: int, slope: int) -> Counts:
    """The least sum of squares of the stages' times, and of those that are alike the slow stages at one end."""
    sums = np.concatenate(([0], np.cumsum(pieces)))
    share = (sums[None, :] - sums[:, None]) / max(most, 1)
    tilt = slope * 1e-3 / stages
    return _path(_allowed(pieces, most), lambda stage: share**2 + tilt * stage * share, stages)


def _allowed(pieces: Sequence[int], most: int) -> Bools:
    """Whether layers `a` to `b` (not included) may make a stage."""
    sums = np.concatenate(([0], np.cumsum(pieces)))
    place: Ints = np.arange(len(sums))
    return (sums[None, :] - sums[:, None] <= most) & (place[None, :] > place[:, None])


def _path(allowed: Bools, price: Callable[[int], Floats], stages: int) -> Counts:
    """The cheapest way from the first layer to the end of the last in so many stages; of several the first in order.

    `price(stage)` holds what it costs that the stage begins at `a` and ends at `b`.
    """
    after: Floats = np.full(len(allowed), np.inf)
    after[-1] = 0.0
    through: list[Floats] = []
    for stage in reversed(range(stages)):
        whole = np.where(allowed, price(stage), np.inf) + after[None, :]
        through.append(whole)
        after = whole.min(axis=1)
    cuts = [0]
    for whole in reversed(through):
        cuts.append(int(whole[cuts[-1]].argmin()))
    return tuple(high - low for low, high in pairwise(cuts))
