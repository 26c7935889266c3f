"""Whether a rank holds the last stage of its pipeline, by how soon its backwards follow its forwards.

Behind every other stage a micro-batch passes forwards and backwards through at least one more before its gradient is
back. So where a backward begins sooner behind its forward than a stage takes for both, no stage follows; nor does one
where the forwards of a step are all run before the first backward, and this begins as soon as they have ended.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints, Times
from bubblescope.model.timeline import Actions, RankTimeline

__all__ = ["recurs", "turns"]

SOON = 0.5
"""Share of a forward and a backward within which no further stage can have run both."""
AT_ONCE = 0.1
"""Share of a forward below which a gap is none."""


def turns(timeline: RankTimeline) -> bool:
    """Whether micro-batches turn round on the rank; true without backwards, which could tell otherwise."""
    a = timeline.actions
    a = a.take(a.stage == a.stage.max(initial=-1))
    forward, backward = a.take(a.kind == Kind.F), a.take((a.kind == Kind.B) | (a.kind == Kind.I))
    if not len(forward) or not len(backward):
        return True
    length = float(np.median(_length(forward)))
    soon = SOON * (length + float(np.median(_length(backward))))
    turning = [
        bool(np.any(_gaps(forward.take(forward.step == step), backward.take(backward.step == step)) < soon))
        or _at_once(a.take(a.step == step), AT_ONCE * length)
        for step in np.unique(backward.step).tolist()
    ]
    return 2 * turning.count(True) > len(turning)


def recurs(timeline: RankTimeline) -> bool:
    """Whether a micro-batch comes more than once in a step: the rank holds several stages that nothing tells apart."""
    a = timeline.actions.take(timeline.actions.kind == Kind.F)
    keys = np.stack((a.step, a.stage, a.chunk, a.microbatch, a.slice))
    return bool(np.unique(keys, axis=1).shape[1] < len(a))


def _length(actions: Actions) -> Times:
    return actions.end - actions.start


def _gaps(forward: Actions, backward: Actions) -> Times:
    """From the end of each forward of a step to the start of its backward."""
    ends = dict(zip(_ids(forward), forward.end.tolist(), strict=True))
    pairs = zip(_ids(backward), backward.start.tolist(), strict=True)
    return np.array([start - ends[key] for key, start in pairs if key in ends], np.int64)


def _ids(actions: Actions) -> list[tuple[int, int]]:
    return list(zip(actions.microbatch.tolist(), actions.slice.tolist(), strict=True))


def _at_once(a: Actions, within: float) -> bool:
    """Whether all forwards of a step come before its first backward, which begins as soon as they have ended."""
    forward: Ints = a.kind == Kind.F
    if forward.all() or not forward.any() or len(np.unique(a.microbatch)) < 2:
        return False
    ended, begun = a.end[forward].max(), a.start[~forward].min()
    return bool(0 <= begun - ended < within)
