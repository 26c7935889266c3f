"""How long an action of a stage may be expected to take: the mean of its kind times the profile of its stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low

from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.model.actions import Action, Kind

__all__ = ["Profile", "Profiles"]

Profile = Mapping[tuple[int, Kind], float]
"""How much longer than the mean of its kind an action of a stage is; 1 on average over the stages."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profile of the stages: `common` to the replicas, and each pipeline's own."""

    common: Profile
    own: Mapping[int, Profile]

    @classmethod
    def of(cls, steps: Sequence[PipelineStep]) -> Profiles:
        """Those of some steps as they were."""
        return cls.fitted((step.pipeline, step.durations) for step in steps)

    @classmethod
    def fitted(cls, steps: Iterable[tuple[int, Mapping[Action, float]]]) -> Profiles:
        """Means over the steps, each the durations of one pipeline.

        Over replicas it is the lower median, as one slow rank makes no heavy stage.
        """
        rows: dict[int, list[tuple[Action, float]]] = {}
        for pipeline, durations in steps:
            rows.setdefault(pipeline, []).extend(durations.items())
        own = {pipeline: means(mine, lambda action: (action.stage, action.kind)) for pipeline, mine in rows.items()}
        keys = {key for lengths in own.values() for key in lengths}
        common = {key: median_low([lengths[key] for lengths in own.values() if key in lengths]) for key in keys}
        return cls(_scaled(common), {pipeline: _scaled(lengths) for pipeline, lengths in own.items()})

    def expected(self, pipeline: int, durations: Mapping[Action, float]) -> dict[Action, float]:
        """Durations of a step with every action as long as the mean of its kind times its pipeline's own profile."""
        mean, mine = means(durations.items(), lambda action: action.kind), self.own[pipeline]
        return {action: mean[action.kind] * mine[action.stage, action.kind] for action in durations}


def _scaled(lengths: Mapping[tuple[int, Kind], float]) -> Profile:
    """Lengths of the stages' actions over the mean of their kind."""
    of: dict[Kind, list[float]] = {}
    for (_, kind), length in lengths.items():
        of.setdefault(kind, []).append(length)
    return {key: length / fmean(of[key[1]]) if any(of[key[1]]) else 1.0 for key, length in lengths.items()}
