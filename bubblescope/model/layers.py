"""What the layers of a model cost, one by one, so that a pipeline can be thought of as cut elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median_low

from bubblescope.errors import UsageError

__all__ = ["Layers"]


@dataclass(frozen=True, slots=True)
class Layers:
    """Nanoseconds of every layer for one micro-batch, in the order of the model.

    What is no layer stays where it is however the layers are cut: the embedding on the first stage (`front_*`), the
    head and the loss on the last one (`back_*`).
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    front_forward: int = 0
    front_backward: int = 0
    back_forward: int = 0
    back_backward: int = 0

    def __post_init__(self) -> None:
        if len(self.forward) != len(self.backward) or not self.forward:
            raise ValueError("every layer has a forward and a backward, and there is at least one")

    def __len__(self) -> int:
        return len(self.forward)

    @property
    def pieces(self) -> tuple[int, ...]:
        """Forward and backward of every layer, what stays at the ends counted to the first and the last one."""
        result = [forward + backward for forward, backward in zip(self.forward, self.backward, strict=True)]
        result[0] += self.front_forward + self.front_backward
        result[-1] += self.back_forward + self.back_backward
        return tuple(result)

    def stages(self, counts: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Forward and backward time of every stage that holds so many layers; raises UsageError where they misfit."""
        if sum(counts) != len(self) or min(counts, default=0) < 1:
            raise UsageError(
                f"the model has {len(self)} layers and every stage at least one, found {_written(counts)}",
            )
        return (
            _summed(self.forward, counts, self.front_forward, self.back_forward),
            _summed(self.backward, counts, self.front_backward, self.back_backward),
        )

    def fitted(self, counts: Sequence[int], forward: Sequence[int], backward: Sequence[int]) -> Layers:
        """The same in proportion, such that stages of so many layers take exactly these times.

        For a run whose stages were measured otherwise, or are imagined without a straggler. Where a stage that took no
        time is to take some, its layers share it. Raises UsageError where the numbers of stages or layers differ.
        """
        if not len(counts) == len(forward) == len(backward):
            raise UsageError(f"layers are known of {len(counts)} stages, and the run has {len(forward)}")
        self.stages(counts)
        layers, (front, back) = _scaled(self.forward, (self.front_forward, self.back_forward), counts, forward)
        theirs, (their_front, their_back) = _scaled(
            self.backward, (self.front_backward, self.back_backward), counts, backward
        )
        return Layers(layers, theirs, front, their_front, back, their_back)

    @classmethod
    def stated(cls, counts: Sequence[int], forward: Sequence[int], backward: Sequence[int]) -> Layers:
        """Layer times where only the time of every stage and how many layers it has are known.

        A layer takes its stage's time over the number of its layers, so that the measured stages come out again. The
        first and the last stage do more than their layers: theirs cost what a layer usually does, which is the lower
        median over the stages between (over all where there are fewer than three), and the rest is what stays at
        that end. If the stage takes less than its layers would, nothing stays and they are that much shorter.

        So layers are taken to be alike within a stage, and a stage of slow hardware has slow layers wherever they go:
        leave a straggler's excess out of its stage beforehand. Raises UsageError where the numbers of stages differ.
        """
        if not len(counts) == len(forward) == len(backward):
            raise UsageError(f"layers are stated of {len(counts)} stages, and the run has {len(forward)}")
        if min(counts, default=0) < 1:
            raise UsageError(f"every stage has at least one layer, found {_written(counts)}")
        layers, (front, back) = _divided(counts, forward)
        their, (their_front, their_back) = _divided(counts, backward)
        return cls(layers, their, front, their_front, back, their_back)


def _divided(counts: Sequence[int], times: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Time of every layer, and what stays at either end."""
    each = [time // count for count, time in zip(counts, times, strict=True)]
    usual = median_low(each[1:-1] or each)
    ends = dict.fromkeys((0, len(counts) - 1), 0)
    for stage in ends:
        ends[stage] = max(0, times[stage] - counts[stage] * usual)
    # Of a single stage nothing tells what is no layer.
    front, back = (ends[0], ends[len(counts) - 1]) if len(counts) > 1 else (0, 0)
    own = list(times)
    own[0] -= front
    own[-1] -= back
    return tuple(part for count, time in zip(counts, own, strict=True) for part in _shares(time, count)), (front, back)


def _scaled(
    layers: Sequence[int], ends: tuple[int, int], counts: Sequence[int], times: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Layers and what stays at the ends, each stage's in proportion to take its time."""
    cut = [[0, *layers[low:high], 0] for low, high in pairwise(accumulate(counts, initial=0))]
    cut[0][0], cut[-1][-1] = ends
    fitted = [_proportional(time, parts) for time, parts in zip(times, cut, strict=True)]
    return tuple(part for parts in fitted for part in parts[1:-1]), (fitted[0][0], fitted[-1][-1])


def _proportional(time: int, parts: Sequence[int]) -> list[int]:
    """Whole nanoseconds in proportion to the parts, the first and last of which stay at the ends, that add up."""
    if not any(parts):
        return [0, *_shares(time, len(parts) - 2), 0]
    edges = [time * edge // sum(parts) for edge in accumulate(parts, initial=0)]
    return [high - low for low, high in pairwise(edges)]


def _shares(time: int, count: int) -> list[int]:
    """Whole nanoseconds that add up to the time, none over one apart."""
    return [time * (part + 1) // count - time * part // count for part in range(count)]


def _summed(times: Sequence[int], counts: Sequence[int], front: int, back: int) -> tuple[int, ...]:
    result = [sum(times[low:high]) for low, high in pairwise(accumulate(counts, initial=0))]
    result[0] += front
    result[-1] += back
    return tuple(result)


def _written(counts: Sequence[int]) -> str:
    return "+".join(map(str, counts)) or "none"
