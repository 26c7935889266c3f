"""The model cut elsewhere: which share of the measured stages goes to which new one when layers move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

from bubblescope.analysis.layers import layers_of
from bubblescope.analysis.means import means
from bubblescope.analysis.study import Study
from bubblescope.errors import UsageError
from bubblescope.forecast.cover import Shares
from bubblescope.forecast.partition import Counts, best, even
from bubblescope.forecast.pieces import WEIGHT_SHARE
from bubblescope.forecast.target import Target
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.changes import Changes
from bubblescope.model.layers import Layers
from bubblescope.schedules.replay import Course

__all__ = ["Model", "StageTable", "known"]

StageTable = Mapping[tuple[int, bool], Shares]
"""The measured stages, with the share of the work of each, by new stage and whether it is a forward."""

_MOST_WORK, _MOST_TRIALS = 400_000, 96
"""Actions that are replayed in search of the best partition, and partitions that are tried."""


@dataclass(frozen=True, slots=True)
class Model:
    """The layers of the model, and how many of them each measured stage has."""

    layers: Layers
    counts: Counts

    def wanted(self, changes: Changes, to: Target, orders: Mapping[int, Order]) -> Counts:
        """How many layers each stage of a changed run has; raises UsageError where that cannot be."""
        stages = to.stages
        if changes.layers == "best":
            return self._best(stages, to, orders)
        if changes.layers is not None:
            if len(changes.layers) != stages:
                raise UsageError(f"there are {stages} stages, found layers for {len(changes.layers)}")
            self.layers.stages(changes.layers)
            return changes.layers
        return self.counts if len(self.counts) == stages else even(len(self.layers), stages)

    def _best(self, stages: int, to: Target, orders: Mapping[int, Order]) -> Counts:
        course = Course(dict(sorted(orders.items())), last_stage=stages - 1, together=to.together)

        def makespan(forward: Sequence[int], backward: Sequence[int]) -> float:
            lengths = [_length(action, forward, backward) for action in course.actions]
            return max(course.run(lengths)[1])

        trials = max(1, min(_MOST_TRIALS, _MOST_WORK // len(course.actions)))
        present = self.counts if len(self.counts) == stages else None
        return best(self.layers, stages, makespan, present=present, trials=trials)

    def shares(self, counts: Counts) -> StageTable:
        """Which share of which measured stage each stage of a new cut has."""
        return {
            (stage, forward): of
            for forward in (True, False)
            for stage, of in enumerate(self._shares(counts, forward=forward))
        }

    def _shares(self, counts: Counts, *, forward: bool) -> list[Shares]:
        pieces = list(self.layers.forward if forward else self.layers.backward)
        pieces[0] += self.layers.front_forward if forward else self.layers.front_backward
        pieces[-1] += self.layers.back_forward if forward else self.layers.back_backward
        old = list(pairwise(accumulate(self.counts, initial=0)))
        result: list[Shares] = []
        for low, high in pairwise(accumulate(counts, initial=0)):
            parts = [(stage, slice(max(low, a), min(high, b)), slice(a, b)) for stage, (a, b) in enumerate(old)]
            result.append(
                [(stage, _share(pieces, mine, whole)) for stage, mine, whole in parts if mine.start < mine.stop]
            )
        return result


def _share(pieces: Sequence[int], mine: slice, whole: slice) -> float:
    total = sum(pieces[whole])
    return sum(pieces[mine]) / total if total else (mine.stop - mine.start) / (whole.stop - whole.start)


def _length(action: Action, forward: Sequence[int], backward: Sequence[int]) -> float:
    if action.kind == Kind.F:
        return forward[action.stage]
    part = {Kind.B: 1.0, Kind.I: 1 - WEIGHT_SHARE, Kind.W: WEIGHT_SHARE}[action.kind]
    return backward[action.stage] * part


def known(found: Study, stated: Counts | None) -> Model | None:
    """The layers as the traces show them, else as they are stated, else None.

    Raises UsageError where what is stated does not fit the stages.
    """
    seen = layers_of(found)
    if seen is not None:
        return Model(*seen)
    if stated is None or found.variation is None:
        return None
    return Model(Layers.stated(stated, *_stage_times(found)), stated)


def _stage_times(found: Study) -> tuple[list[int], list[int]]:
    """Forward and backward of each stage for one micro-batch, as the common profile has it: without slow ranks."""
    assert found.variation is not None
    common = found.variation.profiles.common
    usual = means((row for step in found.whole for row in step.durations.items()), lambda action: action.kind)

    def time(stage: int, kind: Kind) -> float:
        of = [part * usual[kind] for (_, at, known_kind), part in common.items() if (at, known_kind) == (stage, kind)]
        return fmean(of) if of else 0.0

    stages = range(found.job.last_stage + 1)
    # A schedule may split some backwards of a stage and not others: the halves are one backward, and no more of it.
    backward = [time(stage, Kind.I) + time(stage, Kind.W) or time(stage, Kind.B) for stage in stages]
    return [round(time(stage, Kind.F)) for stage in stages], [round(ns) for ns in backward]
