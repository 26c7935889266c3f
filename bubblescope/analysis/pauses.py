"""Pauses that hit forwards only: what a garbage collector does to a run.

A forward is launched from Python, a backward by a thread of C++, so that the collector delays the first and not the
second (arXiv 2505.05713, section 5.4). A pause is therefore a forward that took, or came, far later than its like,
while backwards do nothing of the kind.

The test: every value less the median of its like, over 1.4826 times the median distance from it (MAD). Where that is
beyond what Student's t exceeds with the chance `LEVEL` among all values, the value lies out. Degrees of freedom are
0.37 times the values, as that is what the MAD is worth of a standard deviation (Rousseeuw and Croux, JASA 88, 1993). If
backwards lie out too, then forwards must do so significantly more often (`RARE`, binomial), or there is no pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bubblescope.analysis.chance import binomial_tail, t_limit
from bubblescope.analysis.groups import median_by, numbered
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.analysis.study import Study
from bubblescope.model.actions import Action, Kind
from bubblescope.model.columns import Bools, Floats, Ints

__all__ = ["FLOOR", "LEVEL", "HostPause", "host_pauses", "outlying", "pauses_of_host"]

LEVEL = 0.001
"""The chance of finding any pause where values scatter normally and nothing paused."""
RARE = 0.01
"""The chance up to which forwards that lie out, next to backwards that do so, are no accident."""
FLOOR = 0.02
"""Scatter, as a share of what an action takes, that is always allowed: a smaller one is a matter of the recording."""
_MAD, _WORTH = 1.4826, 0.37


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


def outlying(values: Floats, like: Ints, forward: Bools, floor: Floats | float) -> Floats:
    """By how much each forward lies above the median of its like if it lies out, else 0; the unit is that of `values`.

    Args:
        values: of all actions.
        like: number of the group whose values are alike, by action.
        forward: whether the action is a forward; the others are what they are compared with.
        floor: the least scatter to reckon with.
    """
    nothing = np.zeros(len(values))
    if not np.any(forward):
        return nothing
    excess = values - median_by(values, like)
    distance = np.abs(excess)
    # Few values of one group may lie close together by accident: never less than what is usual on the whole.
    own, usual = median_by(distance, like), _median_of_each(distance, forward)
    out = excess > t_limit(LEVEL / len(values), round(_WORTH * len(values), 1)) * np.maximum(
        _MAD * np.maximum(own, usual), floor
    )
    hits, others = int(np.sum(out & forward)), int(np.sum(out & ~forward))
    if others and binomial_tail(hits, hits + others, float(np.mean(forward))) > RARE:
        return nothing
    return np.where(out & forward, excess, nothing)


def _median_of_each(values: Floats, forward: Bools) -> Floats:
    """The median over all forwards at each of them, and over all others at each of these."""
    return median_by(values, forward.astype(np.int64))
