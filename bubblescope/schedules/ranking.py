"""All schedules for the same ranks and micro-batches, tried and ranked by their bubble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bubblescope.errors import UsageError
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.registry import FAMILIES
from bubblescope.schedules.replay import Deadlock
from bubblescope.schedules.times import Times
from bubblescope.schedules.trial import Trial, check_size, count, run, standstill

__all__ = ["Impossible", "Ranking", "Wish", "rank_all"]

SLICES = 4
"""Where a schedule cuts micro-batches and nobody says into how many slices."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """A schedule that cannot be, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """All schedules for the same ranks and micro-batches, the smallest bubble first."""

    trials: tuple[Trial, ...]
    impossible: tuple[Impossible, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What all schedules are tried with: p, m, and where a schedule allows, v, slices and group."""

    p: int
    m: int
    v: int | None = None
    slices: int | None = None
    group: int | None = None

    def shapes(self, family: Family) -> Iterator[Shape]:
        """The shapes to try for a schedule: as wished, as far as it can; then with the chunks that it usually has."""
        group = self.group if family.grouped else None
        slices = self.slices or SLICES if family.cuts else 1
        for v in dict.fromkeys((self.v or family.chunks, family.chunks)):
            yield Shape(self.p, self.m, v, slices, group)


def rank_all(wish: Wish, times: Times, *, blocking: bool = False, families: Sequence[Family] = FAMILIES) -> Ranking:
    """Try every schedule; raises UsageError where that is too much, or the times fit none."""
    shapes = {family.name: next(wish.shapes(family)) for family in families}
    check_size(sum(count(family, shapes[family.name]) for family in families))
    trials: list[Trial] = []
    impossible: list[Impossible] = []
    for family in families:
        tried = _try(family, wish, times, blocking=blocking)
        if isinstance(tried, Trial):
            trials.append(tried)
        else:
            impossible.append(tried)
    if not trials:
        raise UsageError(f"no schedule is possible: {impossible[0].reason}")
    return Ranking(tuple(sorted(trials, key=_bubble)), tuple(impossible))


def _try(family: Family, wish: Wish, times: Times, *, blocking: bool) -> Trial | Impossible:
    reasons = []
    for shape in wish.shapes(family):
        reason = family.problem(shape)
        if reason is None:
            break
        reasons.append(reason)
    else:
        return Impossible(family.name, reasons[-1])
    try:
        return run(family, shape, times, blocking=blocking)
    except UsageError as error:
        return Impossible(family.name, error.message)
    except Deadlock as deadlock:
        return Impossible(family.name, f"it comes to a stand: {standstill(deadlock)}")


def _bubble(trial: Trial) -> float:
    """Rounded, so that schedules of the same bubble keep their order."""
    return round(trial.simulation.bubble, 9)
