"""Forwards that lie out where backwards do not, whatever the values are.

The test: every value less the median of its like, over 1.4826 times the median distance from it (MAD). Where that is
beyond what Student's t exceeds with the chance `LEVEL` among all values, the value lies out. Degrees of freedom are
0.37 times the values, as that is what the MAD is worth of a standard deviation (Rousseeuw and Croux, JASA 88, 1993). If
backwards lie out too, then forwards must do so significantly more often (`RARE`, binomial), or there is no pause.
"""

from __future__ import annotations

import numpy as np

from bubblescope.analysis.groups import median_by
from bubblescope.model.chance import binomial_tail, t_limit
from bubblescope.model.columns import Bools, Floats, Ints

__all__ = ["FLOOR", "LEVEL", "outlying"]

LEVEL = 0.001
"""The chance of finding any pause where values scatter normally and nothing paused."""
RARE = 0.01
"""The chance up to which forwards that lie out, next to backwards that do so, are no accident."""
FLOOR = 0.02
"""Scatter, as a share of what an action takes, that is always allowed: a smaller one is a matter of the recording."""
_MAD, _WORTH = 1.4826, 0.37


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
