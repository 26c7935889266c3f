"""Why an action takes longer than the profile of its stage says: long data, pauses of forwards, or neither.

An action is expected to take the mean of its kind in its step times the profile of its stage in its replica. The
logarithm of what it took over that is taken apart, in this order:

* **pauses**: forwards that lie out where backwards do not, as `outliers` tests it, once the median of the micro-batch
  is taken off, so that a long micro-batch is none. A pause is what such a forward took beyond its like.
* **data length**: a micro-batch is long on every rank, forwards and backwards alike. ByteDance calls it so where both
  correlate by 0.9 or more over the micro-batches (arXiv 2505.05713, section 5.3), which few micro-batches cannot show.
  Here the mean of a micro-batch's forwards over the stages is held against that of its backwards: their sum of products
  over its standard error, as the scatter of stages within micro-batches has it, is Student's t where every action
  varies by itself. It is taken both ways, forwards given backwards and backwards given forwards, and the larger
  chance counts. The effect is there if that is below `LEVEL` and if micro-batches differ by `LEAST` or more.
  The factor of a micro-batch is kept by the share 1 - 2 / z^2, z being how many standard errors it is off its step's
  mean (Breiman's garrote, Technometrics 37, 1995), so that those that are like the others make no noise.
* **the rest**: all else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bubblescope.analysis.groups import median_by, numbered
from bubblescope.analysis.outliers import FLOOR, outlying
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.profiles import Profiles
from bubblescope.model.actions import Action, Kind
from bubblescope.model.chance import f_tail, t_limit, t_tail
from bubblescope.model.columns import Bools, Columns, Floats, Ints, column

__all__ = ["LEAST", "LEVEL", "DataLength", "SlowMicrobatch", "Variation", "split"]

LEVEL = 0.001
"""The chance of finding an effect of data length where every action varies by itself."""
LEAST = 0.005
"""Standard deviation of the micro-batches' factors below which it does not matter whether they differ."""
_SHRINK = 2.0

Key = tuple[int, int]
"""Pipeline and step."""
Durations = Mapping[Action, float]


class SlowMicrobatch(NamedTuple):
    """A micro-batch that takes `factor` times as long as the median one of its step, on every stage."""

    pipeline: int
    step: int
    microbatch: int
    factor: float
    chance: float


@dataclass(frozen=True, slots=True)
class DataLength:
    """Whether micro-batches are long on every rank.

    Attributes:
        found: whether they differ.
        correlation: of the mean forward and the mean backward of a micro-batch (Pearson); None where nothing varies.
        chance: how likely so much agreement is by accident; None where it cannot be tested.
        spread: standard deviation of what forwards and backwards of a micro-batch share, a share of their length.
        slow: micro-batches that are longer than the median one of their step, each by itself so sure; longest first.
        persistent: whether the same ones are long in every step; None where one step or no effect was seen.
    """

    found: bool = False
    correlation: float | None = None
    chance: float | None = None
    spread: float = 0.0
    slow: tuple[SlowMicrobatch, ...] = ()
    persistent: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """What is known of the excess of each action over its expectation.

    `profiles` are those of the steps as they were, `quiet` those without pauses; `pauses` are nanoseconds by
    (pipeline, step) and action.
    """

    profiles: Profiles
    quiet: Profiles
    pauses: Mapping[Key, Durations]
    shared: DataLength
    kept: Mapping[Key, Mapping[tuple[int, bool], float]]

    def expected(self, step: PipelineStep) -> dict[Action, float]:
        """Nanoseconds of each action with no variation at all."""
        return self.profiles.expected(step.pipeline, step.durations)

    def data(self, step: PipelineStep) -> dict[Action, float]:
        """The same with what the length of the data does; equal to it where no effect was found."""
        return self._lengthened(step, self.expected(step))

    def paused(self, step: PipelineStep) -> dict[Action, float]:
        """The same with the pauses too: no work is added, as the others take less than expected for them."""
        pauses = self.pauses.get((step.pipeline, step.step))
        if not self.pauses:
            return self.data(step)
        lengths = self._lengthened(step, self.quiet.expected(step.pipeline, _without(step.durations, pauses or {})))
        for action, ns in (pauses or {}).items():
            lengths[action] += ns
        return lengths

    def _lengthened(self, step: PipelineStep, lengths: dict[Action, float]) -> dict[Action, float]:
        kept = self.kept.get((step.pipeline, step.step))
        if not kept:
            return lengths
        return {a: length * kept.get((a.microbatch, a.kind == Kind.F), 1.0) for a, length in lengths.items()}


def split(steps: Sequence[PipelineStep]) -> Variation:
    """Take the variation of the actions of some steps apart."""
    profiles = Profiles.of(steps)
    table = _table(steps, [step.durations for step in steps], profiles)
    pauses = _pauses(steps, table)
    quiet = profiles
    if pauses:
        durations = [_without(step.durations, pauses.get((step.pipeline, step.step), {})) for step in steps]
        quiet = Profiles.fitted(
            ((step.pipeline, mine) for step, mine in zip(steps, durations, strict=True)), profiles.positions
        )
        table = _table(steps, durations, quiet)
    shared, kept = _data_length(steps, table)
    return Variation(profiles, quiet, pauses, shared, kept)


def _without(durations: Durations, pauses: Durations) -> Durations:
    return {a: length - pauses.get(a, 0.0) for a, length in durations.items()} if pauses else durations


@dataclass(frozen=True, eq=False)
class _Table(Columns):
    """Actions that take time, of all steps: `step` counts these, `row` within the step, `excess` is a logarithm."""

    step: Ints = column(np.int64)
    row: Ints = column(np.int64)
    pipeline: Ints = column(np.int64)
    stage: Ints = column(np.int64)
    kind: Ints = column(np.int64)
    microbatch: Ints = column(np.int64)
    length: Floats = column(np.float64)
    expected: Floats = column(np.float64)

    @property
    def excess(self) -> Floats:
        excess: Floats = np.log(self.length / self.expected)
        return excess


def _table(steps: Sequence[PipelineStep], durations: Sequence[Durations], profiles: Profiles) -> _Table:
    blocks = []
    for k, (step, mine) in enumerate(zip(steps, durations, strict=True)):
        expected = profiles.expected(step.pipeline, mine)
        keys = np.array(list(mine), np.int64).reshape(-1, 4)
        length = np.fromiter(mine.values(), np.float64, len(mine))
        due = np.fromiter(expected.values(), np.float64, len(mine))
        row = np.arange(len(mine))
        whose = (np.full(len(mine), k), row, np.full(len(mine), step.pipeline))
        block = _Table(*whose, keys[:, 0], keys[:, 1], keys[:, 2], length, due)
        blocks.append(block.take((length > 0) & (due > 0)))
    return _Table.concat(blocks)


def _pauses(steps: Sequence[PipelineStep], table: _Table) -> dict[Key, dict[Action, float]]:
    """Pauses of forwards in nanoseconds, on single stages."""
    if not len(table):
        return {}
    forward = table.kind == Kind.F
    batch = numbered(table.step, table.microbatch)
    usual = median_by(table.excess, batch)
    like = numbered(table.pipeline, table.stage, table.kind)
    excess = outlying(table.excess - usual, like, forward, FLOOR)
    # Data may lengthen forwards more than backwards: a pause is not shared with the forwards of other stages.
    peers = median_by(table.excess, numbered(table.step, table.microbatch, table.kind), low=True)
    alone = (excess > 0) & (table.excess - peers > excess / 2)
    found: dict[Key, dict[Action, float]] = {}
    for at in np.flatnonzero(alone).tolist():
        step = steps[int(table.step[at])]
        action = Action(int(table.stage[at]), Kind.F, int(table.microbatch[at]))
        if action not in step.durations:  # a slice
            action = list(step.durations)[int(table.row[at])]
        ns = float(table.length[at] * (1 - np.exp(-excess[at])))
        found.setdefault((step.pipeline, step.step), {})[action] = ns
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Forwards, or all else, by step and micro-batch: the mean over stages, how many these are, and their scatter."""

    mean: Floats
    count: Floats
    variance: float
    freedom: float


def _data_length(
    steps: Sequence[PipelineStep], table: _Table
) -> tuple[DataLength, dict[Key, dict[tuple[int, bool], float]]]:
    if not len(table):
        return DataLength(), {}
    batches, place = np.unique(table.microbatch, return_inverse=True)
    shape = (len(steps), len(batches))
    at = table.step * len(batches) + place
    sides = [_side(table, mask, at, shape) for mask in (table.kind == Kind.F, table.kind != Kind.F)]
    ahead, behind = sides
    both = (ahead.count > 0) & (behind.count > 0)
    f, b = np.where(both, ahead.mean, 0.0), np.where(both, behind.mean, 0.0)
    product, squares = float(np.sum(f * b)), (float(np.sum(f * f)), float(np.sum(b * b)))
    free = int(np.sum((both.sum(axis=1) - 1).clip(0)))
    if not free or min(squares) <= 0:
        return DataLength(), {}
    chance = max(_chance(product, f, behind, both), _chance(product, b, ahead, both))
    spread = float(np.sqrt(max(0.0, product / free)))
    found = chance < LEVEL and spread >= LEAST
    correlation = product / float(np.sqrt(squares[0] * squares[1]))
    weights = ahead.count + behind.count
    level = (f * ahead.count + b * behind.count) / np.maximum(weights, 1)
    scatter = (ahead.variance * ahead.count + behind.variance * behind.count) / np.maximum(weights, 1) ** 2
    keys = [(step.pipeline, step.step) for step in steps]
    if not found:
        return DataLength(found, correlation, chance, spread), {}
    seen = _Levels(keys, batches, level, scatter, both, ahead.freedom + behind.freedom)
    return DataLength(found, correlation, chance, spread, seen.slow(), seen.persistent()), seen.kept((f, b))


def _side(table: _Table, mask: Bools, at: Ints, shape: tuple[int, int]) -> _Side:
    """Excess less the mean of its stage and kind in its step, over what a micro-batch is one of."""
    mine, cell = table.take(mask), at[mask]
    if not len(mine):
        return _Side(np.zeros(shape), np.zeros(shape), 0.0, 0.0)
    line = numbered(mine.step, mine.stage, mine.kind)
    centred = mine.excess - (np.bincount(line, mine.excess) / np.bincount(line))[line]
    size = shape[0] * shape[1]
    count = np.bincount(cell, minlength=size).astype(np.float64)
    mean = np.bincount(cell, centred, minlength=size) / np.maximum(count, 1)
    freedom = len(mine) - int(line.max()) - 1 - np.count_nonzero(count) + len(np.unique(mine.step))
    left = centred - mean[cell]
    variance = float(np.sum(left * left)) / freedom if freedom > 0 else 0.0
    return _Side(mean.reshape(shape), count.reshape(shape), variance, float(freedom))


def _chance(product: float, given: Floats, other: _Side, both: Bools) -> float:
    """How likely a sum of products is so large if the means of the other side vary by their scatter alone."""
    error = np.sqrt(other.variance * np.sum(given[both] ** 2 / other.count[both]))
    return t_tail(float(product / error) if error else np.inf if product > 0 else 0.0, other.freedom)


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """Logarithms of the lengths of micro-batches by step, and squares of their errors; `known` is where any is."""

    keys: Sequence[Key]
    batches: Ints
    level: Floats
    scatter: Floats
    known: Bools
    freedom: float

    def slow(self) -> tuple[SlowMicrobatch, ...]:
        """Micro-batches that are surely above the median of their step, longest first."""
        usual = [
            np.median(row[known]) if np.any(known) else 0.0 for row, known in zip(self.level, self.known, strict=True)
        ]
        above = np.where(self.known, self.level - np.array(usual)[:, None], 0.0)
        error, count = np.sqrt(self.scatter), int(self.known.sum())
        limit = t_limit(LEVEL / count, self.freedom)
        slow = []
        for k, i in zip(*np.nonzero(self.known & (above > np.maximum(limit * error, LEAST))), strict=True):
            chance = t_tail(float(above[k, i] / error[k, i]), self.freedom) if error[k, i] else 0.0
            factor, number = float(np.exp(above[k, i])), int(self.batches[i])
            pipeline, step = self.keys[k]
            slow.append(SlowMicrobatch(pipeline, step, number, factor, min(1.0, chance * count)))
        return tuple(sorted(slow, key=lambda one: -one.factor))

    def persistent(self) -> bool | None:
        """Whether a micro-batch's index tells its length: more than half of the variance, and not by chance (F)."""
        whole = self.level[self.known.all(axis=1)]
        steps, batches = whole.shape
        if steps < 2:
            return None
        total, between = float(np.sum(whole**2)), steps * float(np.sum(whole.mean(axis=0) ** 2))
        freedom = (batches - 1, (steps - 1) * (batches - 1))
        ratio = between / freedom[0] / ((total - between) / freedom[1]) if total > between else np.inf
        return between > total / 2 and f_tail(ratio, *freedom) < LEVEL

    def kept(self, sides: tuple[Floats, Floats]) -> dict[Key, dict[tuple[int, bool], float]]:
        """Factors by which (micro-batch, whether forward) is longer than expected; 1 on average over a step."""
        z = np.divide(self.level**2, self.scatter, out=np.full(self.level.shape, np.inf), where=self.scatter > 0)
        share = np.where(self.known, (1 - _SHRINK / np.maximum(z, _SHRINK)), 0.0)
        result: dict[Key, dict[tuple[int, bool], float]] = {}
        for forward, values in zip((True, False), sides, strict=True):
            raw = np.where(self.known, np.exp(values * share), 0.0)
            raw /= np.maximum(raw.sum(axis=1), 1e-300)[:, None] / np.maximum(self.known.sum(axis=1), 1)[:, None]
            for k, key in enumerate(self.keys):
                mine = result.setdefault(key, {})
                mine.update({(int(self.batches[i]), forward): float(raw[k, i]) for i in np.flatnonzero(self.known[k])})
        return result
