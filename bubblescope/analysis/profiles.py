"""How long an action of a stage may be expected to take: the mean of its kind times the profile of its stage.

A profile is a mean of actions that vary. The replay of a step waits for the slowest stage, so that what chance does to
the means makes some stage look heavy, and uneven work out of mere jitter. So a profile keeps of what it departs from 1,
and that of a replica from the common one, only what is beyond chance (Breiman's garrote, Technometrics 37, 1995).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import pi, sqrt
from statistics import fmean, median_low, pvariance

from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Action, Kind

__all__ = ["Place", "Profile", "Profiles"]

CHANCE = 2.5
"""Standard errors within which a departure is taken for chance, which alone moves one profile in a hundred so far."""

Place = tuple[int, int, Kind]
"""A position of the pipeline, a stage that it holds, and a kind of its actions: two positions may hold a stage."""

Profile = Mapping[Place, float]
"""How much longer than the mean of its kind an action of a stage is; 1 on average over the stages."""

Positions = Mapping[Action, int]
"""The position of each action; absent is 0, so that where it does not matter nothing need be told."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profile of the stages: `common` to the replicas, and each pipeline's own; `positions` of their actions."""

    common: Profile
    own: Mapping[int, Profile]
    positions: Positions = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Sequence[PipelineStep]) -> Profiles:
        """Those of some steps as they were."""
        places = {action: at for step in steps for at, order in step.replayed.items() for action in order}
        return cls.fitted(((step.pipeline, step.durations) for step in steps), places)

    @classmethod
    def fitted(
        cls, steps: Iterable[tuple[int, Mapping[Action, float]]], positions: Positions | None = None
    ) -> Profiles:
        """Means over the steps, each the durations of one pipeline, as far as they are no chance.

        Over replicas it is the lower median, as one slow rank makes no heavy stage.
        """
        at = positions or {}
        rows: dict[int, list[tuple[Action, float]]] = {}
        against: dict[int, list[tuple[Action, float]]] = {}
        for pipeline, durations in steps:
            rows.setdefault(pipeline, []).extend(durations.items())
            against.setdefault(pipeline, []).extend(_against(durations))
        own = {pipeline: means(mine, partial(_place, at)) for pipeline, mine in rows.items()}
        errors = {pipeline: _errors(mine, at) for pipeline, mine in against.items()}
        common = _common(list(own.values()), list(errors.values()))
        if len(own) == 1:  # with nothing to compare a replica to, all that it is is common
            return cls(common, dict.fromkeys(own, common), at)
        return cls(common, {pipeline: _own(lengths, common, errors[pipeline]) for pipeline, lengths in own.items()}, at)

    def expected(self, pipeline: int, durations: Mapping[Action, float]) -> dict[Action, float]:
        """Durations of a step with every action as long as the mean of its kind times its pipeline's own profile."""
        mean, mine = means(durations.items(), lambda action: action.kind), self.own[pipeline]
        return {action: mean[action.kind] * mine[self.place(action)] for action in durations}

    def place(self, action: Action) -> Place:
        """Where an action stands in a profile."""
        return _place(self.positions, action)


def _scaled(lengths: Mapping[Place, float]) -> Profile:
    """Lengths of the stages' actions over the mean of their kind."""
    of: dict[Kind, list[float]] = {}
    for (_, _, kind), length in lengths.items():
        of.setdefault(kind, []).append(length)
    return {key: length / fmean(of[key[-1]]) if any(of[key[-1]]) else 1.0 for key, length in lengths.items()}


def _common(own: Sequence[Mapping[Place, float]], errors: Sequence[Mapping[Place, float]]) -> Profile:
    """The lower median over the replicas, less what chance may have done to it."""
    keys = {key for lengths in own for key in lengths}
    usual = _scaled({key: median_low([lengths[key] for lengths in own if key in lengths]) for key in keys})
    known = {key: _of_median([found[key] for found in errors if key in found]) for key in keys}
    # What always takes no time does so by no chance: a first stage has no gradient of its input to work out.
    return _scaled({key: 1 + _beyond_chance(part - 1, known[key]) if part else 0.0 for key, part in usual.items()})


def _own(lengths: Mapping[Place, float], common: Profile, errors: Mapping[Place, float]) -> Profile:
    """What a replica departs from the common profile, less what chance may have done to it."""
    parts = _scaled(lengths)
    return _scaled(
        {
            key: common[key] * (1 + _beyond_chance(part / common[key] - 1, errors[key])) if common[key] else part
            for key, part in parts.items()
        }
    )


def _place(positions: Positions, action: Action) -> Place:
    return positions.get(action, 0), action.stage, action.kind


def _against(durations: Mapping[Action, float]) -> list[tuple[Action, float]]:
    """Each action over the mean of its micro-batch on all stages: what is long on all of them tells none apart."""
    of = means(durations.items(), lambda action: (action.kind, action.microbatch, action.slice))
    usual = ((action, length, of[action.kind, action.microbatch, action.slice]) for action, length in durations.items())
    return [(action, length / mean if mean else 0.0) for action, length, mean in usual]


def _errors(rows: Iterable[tuple[Action, float]], positions: Positions) -> dict[Place, float]:
    """Standard error of the mean of every stage and kind, by its own spread or that of its kind, the larger one."""
    of: dict[Place, list[float]] = {}
    for action, part in rows:
        of.setdefault(_place(positions, action), []).append(part)
    spreads = {key: pvariance(parts) for key, parts in of.items()}
    kinds: dict[Kind, list[float]] = {}
    for (_, _, kind), spread in spreads.items():
        kinds.setdefault(kind, []).append(spread)
    return {key: sqrt(max(spreads[key], fmean(kinds[key[-1]])) / max(1, len(parts) - 1)) for key, parts in of.items()}


def _of_median(errors: Sequence[float]) -> float:
    """Standard error of the median of several values; that of their mean is a fifth less."""
    return fmean(errors) * (sqrt(pi / 2 / len(errors)) if len(errors) > 2 else 1.0)


def _beyond_chance(departure: float, error: float) -> float:
    """Nothing of a departure within `CHANCE` standard errors, and nearly all of one far beyond (Breiman's garrote)."""
    return departure - (CHANCE * error) ** 2 / departure if abs(departure) > CHANCE * error else 0.0
