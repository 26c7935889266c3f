"""Pauses that hit forwards only: what a garbage collector does to a run.

A forward is launched from Python, a backward by a thread of C++, so that the collector delays the first and not the
second (arXiv 2505.05713, section 5.4). A pause is therefore a forward that took, or came, far later than its like,
while backwards do nothing of the kind.

Whether a value lies out is for `outliers` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bubblescope.analysis.groups import median_by, numbered
from bubblescope.analysis.outliers import FLOOR, outlying
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.analysis.study import Study
from bubblescope.model.actions import Action, Kind
from bubblescope.model.columns import Floats, Ints

__all__ = ["HostPause", "host_pauses", "pauses_of_host"]


class HostPause(NamedTuple):
    """Nanoseconds that the host of a rank paused before an action or inside it, beyond what is usual there."""

    rank: int
    pipeline: int
    step: int
    action: Action
    ns: float


def host_pauses(found: Study) -> Mapping[tuple[int, int], Mapping[Action, float]]:
    """Nanoseconds of pause by (pipeline, step) and action, beyond the usual gap of its like.

    They are idle time before the action, after its input came, or inside it. Where several ranks share a position their
    mean counts, as the causes take the host's gaps.
    """
    sharing = {
        (step.pipeline, step.step, position): list(step.position.values()).count(position)
        for step in found.steps
        for position in set(step.position.values())
    }
    result: dict[tuple[int, int], dict[Action, float]] = {}
    for rank, pipeline, number, action, ns in pauses_of_host(found):
        position = found.views[rank].position
        assert position is not None
        mine = result.setdefault((pipeline, number), {})
        mine[action] = mine.get(action, 0.0) + ns / sharing[pipeline, number, position]
    return result


def pauses_of_host(found: Study) -> tuple[HostPause, ...]:
    """Each pause of each rank."""
    parts = [(step, rank, mine) for step in found.steps for rank, mine in step.steps.items()]
    if not parts:
        return ()
    late = np.concatenate([_late(found.views[rank], mine) for _, rank, mine in parts])
    like = numbered(*np.concatenate([_like(mine) for *_, mine in parts], axis=1))
    forward = np.concatenate([mine.actions.kind == Kind.F for *_, mine in parts])
    lengths = np.concatenate([mine.durations for *_, mine in parts])
    excess = outlying(late, like, forward, FLOOR * median_by(lengths.astype(np.float64), like))
    first = np.cumsum([0, *(len(mine.rows) for *_, mine in parts)])
    result = []
    for row in np.flatnonzero(excess):
        k = int(np.searchsorted(first, row, "right")) - 1
        step, rank, mine = parts[k]
        action = mine.order[row - first[k]]
        result.append(HostPause(rank, step.pipeline, step.step, action, float(excess[row])))
    return tuple(result)


def _late(view: RankView, step: RankStep) -> Floats:
    """How long the host kept each action of a rank waiting, before it and inside it; before the first is not known."""
    gaps, actions = view.gaps[step.step], step.actions
    inside = (actions.end - actions.start - step.durations).clip(0)
    late: Floats = (gaps.end - gaps.arrived + np.where(actions.block < 0, inside, 0)).astype(np.float64)
    return late


def _like(step: RankStep) -> Ints:
    """What actions have in common whose gaps are compared: rank, stage and kind; as rows."""
    return np.array([np.full(len(step.rows), step.rank), step.actions.stage, step.actions.kind], np.int64)
