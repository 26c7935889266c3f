"""Ranks that are slower than the other replicas of their stage in all they do.

Only replicas of one stage do the same work, so that only they are compared: `compare` has the test for ranks that are
slow on the whole. One that is slow in few steps shows as steps in which a rank lies out, among all ranks and steps;
either test may find a rank, and for there being two the chance is doubled. Tensor-parallel ranks of one place wait for
each other and are slow together, so that a place is named with all its ranks. With one replica nothing tells a slow
rank from a heavy stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median_low
from typing import NamedTuple

import numpy as np

from bubblescope.analysis.compare import LEAST, LEVEL, Pairs, above, apart, pairs_of
from bubblescope.analysis.loads import Loads
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model import report
from bubblescope.model.chance import holm, t_tail
from bubblescope.model.columns import Bools, Floats

__all__ = ["replica_ratio", "stragglers"]

_MAD, _WORTH = 1.4826, 0.37  # as in pauses
_SURE = 3.0
"""Standard errors by which a step must be quicker than the slowdown, to be one in which the rank was not slow."""


def stragglers(steps: Sequence[PipelineStep], work: Loads) -> tuple[report.Straggler, ...]:
    """The places that are significantly slower than their replicas, slowest first."""
    pairs = pairs_of(len(work.steps))
    places = [at for at in range(work.by_place.shape[1]) if np.sum(_seen(work, at)) > 1]
    tests = [_Test(at, k, mean, chance) for at in places for k, (mean, chance) in _tested(work, at, pairs).items()]
    single = _lying_out(work, places)
    tests = [test._replace(chance=min(1.0, 2 * min(test.chance, single[test[:2]]))) for test in tests]
    corrected = holm([test.chance for test in tests])
    ranks = _ranks(steps)
    found = []
    for test, chance in zip(tests, corrected, strict=True):
        slowdown = _slowdown(work.by_place[:, test.position].sum(axis=(2, 3)), test.line)
        if chance < LEVEL and slowdown is not None and slowdown >= 1 + LEAST:
            mine = ranks[work.pipelines[test.line], test.position]
            found.append(_straggler(work, test._replace(chance=chance), mine, slowdown))
    return tuple(sorted(found, key=lambda straggler: (-straggler.slowdown, straggler.rank)))


class _Test(NamedTuple):
    """A place in a pipeline (its row) against its replicas."""

    position: int
    line: int
    mean: float
    chance: float


def _seen(work: Loads, position: int) -> Bools:
    """Which pipelines have a recorded rank at a position."""
    return np.array([bool(times.any()) for times in work.by_place[:, position]])


def _tested(work: Loads, position: int, pairs: Pairs) -> dict[int, tuple[float, float]]:
    """The difference and its chance by pipeline (its row)."""
    lines = np.flatnonzero(_seen(work, position)).tolist()
    times = work.by_place[lines, position].sum(axis=3)
    times = times.sum(axis=2) if pairs == "steps" else times.reshape(len(lines), -1)
    return dict(zip(lines, ((d.mean, d.chance) for d in above(times, against="median")), strict=True))


def _lying_out(work: Loads, places: Sequence[int]) -> dict[tuple[int, int], float]:
    """The chance of the step in which each place (position, row) lies out the most, corrected for the number of steps.

    As pauses are told, by the median distance from the median (MAD); two replicas lie out together, so that half as
    many values are free.
    """
    steps = len(work.steps)
    rows, found = [], []
    for at in places:
        lines = np.flatnonzero(_seen(work, at)).tolist()
        times = work.by_place[lines, at].sum(axis=(2, 3))
        rows += [(at, line) for line in lines]
        found.append(np.where(times > 0, apart(np.maximum(times, 1.0), against="median"), 0.0))
    if not rows:
        return {}
    differences = np.concatenate(found)
    scale = max(_MAD * float(np.median(np.abs(differences))), LEAST / 5)
    freedom = _WORTH * differences.size / 2 if steps > 1 else 0.0
    most = differences.max(axis=1) / scale
    return {row: min(1.0, steps * t_tail(z, freedom)) for row, z in zip(rows, most.tolist(), strict=True)}


def _ranks(steps: Sequence[PipelineStep]) -> Mapping[tuple[int, int], tuple[int, ...]]:
    """The recorded ranks by pipeline and position."""
    found: dict[tuple[int, int], set[int]] = {}
    for step in steps:
        for rank, position in step.position.items():
            found.setdefault((step.pipeline, position), set()).add(rank)
    return {place: tuple(sorted(ranks)) for place, ranks in found.items()}


def _slowdown(times: Floats, line: int) -> float | None:
    """Mean over steps of a row (pipelines by steps), over the lower median of all rows; 0 is not recorded."""
    means = [fmean(row[row > 0]) if np.any(row > 0) else 0.0 for row in times]
    usual = median_low([mean for mean in means if mean] or [0.0])
    return means[line] / usual if usual else None


def _straggler(work: Loads, test: _Test, ranks: tuple[int, ...], slowdown: float) -> report.Straggler:
    times = work.by_place[:, test.position]
    seen = times[test.line].any(axis=(1, 2))
    slow = seen & _slow_steps(times.sum(axis=3), test.line, test.mean)
    numbers = tuple(number for number, yes in zip(work.steps, slow, strict=True) if yes)
    forward, backward = (_slowdown(times[..., kind].sum(axis=2), test.line) for kind in (0, 1))
    return report.Straggler(
        rank=ranks[0],
        ranks=ranks,
        slowdown=slowdown,
        forward=forward,
        backward=backward,
        chance=test.chance,
        persistent=bool(slow.sum() == seen.sum()) if seen.sum() > 1 else None,
        steps=numbers,
        evidence="; ".join(
            _evidence(work, test, ranks, (slowdown, forward, backward), (len(numbers), int(seen.sum())))
        ),
    )


def _evidence(
    work: Loads,
    test: _Test,
    ranks: tuple[int, ...],
    factors: tuple[float | None, ...],
    slow: tuple[int, int],
) -> Iterator[str]:
    """What speaks for a slow place; `factors` are of all, forwards, backwards, `slow` how many steps of how many."""
    times = work.by_place[test.line, test.position]
    pairs, replicas = pairs_of(len(work.steps)), int(np.sum(_seen(work, test.position)))
    count = np.sum(times.any(axis=(1, 2))) if pairs == "steps" else np.sum(times.any(axis=2))
    whole, forward, backward = ("unknown" if factor is None else f"{factor:.3g}" for factor in factors)
    yield f"{whole} times the lower median of the {replicas} replicas of its stage"
    yield f"forwards {forward}, backwards {backward}"
    yield f"paired t test over {count} {pairs}, or steps that lie out: p {test.chance:.1g} corrected for all ranks"
    some, steps = slow
    yield "one step cannot tell whether it lasts" if steps < 2 else f"slow in {some} of {steps} steps"
    if len(ranks) > 1:
        named = ", ".join(map(str, ranks))
        yield f"ranks {named} share the place and wait for each other: any of them may be the slow one"
    if replicas == 2:
        yield "with two replicas a slow one and a quick one look alike"


def _slow_steps(times: Floats, line: int, mean: float) -> Bools:
    """In which steps a row of (pipeline, step, micro-batch) is slow: not surely quicker than half of its slowdown."""
    others = np.delete(times, line, axis=0).sum(axis=2)
    apart = np.log(np.maximum(times[line].sum(axis=1), 1)) - np.log(np.maximum(np.median(others, axis=0), 1))
    single = times[line]
    known = np.maximum((single > 0).sum(axis=1), 1)
    centre = single.sum(axis=1) / known
    spread = np.sqrt(np.where(single > 0, (single - centre[:, None]) ** 2, 0).sum(axis=1) / np.maximum(known - 1, 1))
    error = np.sqrt(2.0) * spread / np.maximum(centre, 1) / np.sqrt(known)
    usual = max(mean, float(np.max(apart)) / 2)  # where few steps are slow the mean says little of these
    slow: Bools = (apart >= usual / 2) | (apart + _SURE * error >= mean)
    return slow


def replica_ratio(work: Loads) -> float | None:
    """The slowest replica of a position over the lower median of its replicas, the largest over positions."""
    ratios = []
    for position in range(work.by_place.shape[1]):
        times = work.by_place[:, position].sum(axis=(2, 3))
        if np.sum(_seen(work, position)) > 1:
            ratios += [ratio for line in range(len(times)) if (ratio := _slowdown(times, line)) is not None]
    return max(ratios, default=None)
