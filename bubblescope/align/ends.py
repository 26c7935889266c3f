"""Whether a rank holds the last stage of its pipeline, by which backward follows a forward, and how soon.

Behind every other stage a micro-batch passes forwards and backwards through at least one more before its gradient is
back. Meanwhile a rank runs other forwards, so that their backwards are not next to them; and where it waits instead, it
waits longer than a forward of its own, unless what follows is light. So the order counts, and the gap beside it.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools
from bubblescope.model.timeline import Actions, RankTimeline

__all__ = ["ahead", "recurs", "turns"]

SOON = 0.5
"""Share of a forward and a backward within which no further stage of about the same weight can have run both."""
AT_ONCE = 0.1
"""Share of a forward below which a gap is none."""
MANY = 4
"""Forwards that no inner rank runs ahead of light stages: it runs as many ahead as stages follow, and one more."""


def turns(timeline: RankTimeline, before: RankTimeline | None = None) -> bool:
    """Whether micro-batches turn round on the rank; true without backwards, which could tell otherwise.

    `before` is the rank before it, where that was recorded: from one to the next the forwards ahead become one fewer,
    so that where they become fewer still, the row ends here, and a single backward that follows soon is enough.
    """
    a = timeline.actions
    a = a.take((a.stage == a.stage.max(initial=-1)) & (a.kind != Kind.W))
    forward, backward = a.take(a.kind == Kind.F), a.take(a.kind != Kind.F)
    if not len(forward) or not len(backward):
        return True
    length = float(np.median(forward.end - forward.start))
    soon = SOON * (length + float(np.median(backward.end - backward.start)))
    steps = [a.take(a.step == step) for step in np.unique(backward.step).tolist()]
    ends = before is not None and ahead(before) - ahead(timeline) > 1
    turning = [
        _alternates(step, soon) or _at_once(step, AT_ONCE * length) or (ends and _answers(step, soon)) for step in steps
    ]
    return 2 * turning.count(True) > len(turning)


def ahead(timeline: RankTimeline) -> int:
    """Most forwards of a step before its first backward."""
    a = timeline.actions
    steps = [a.kind[a.step == step] != Kind.F for step in np.unique(a.step).tolist()]
    return max((int(np.argmax(backward)) for backward in steps if backward.any()), default=0)


def recurs(timeline: RankTimeline) -> bool:
    """Whether a micro-batch comes more than once in a step: the rank holds several stages that nothing tells apart."""
    a = timeline.actions.take(timeline.actions.kind == Kind.F)
    keys = np.stack((a.step, a.stage, a.chunk, a.microbatch, a.slice))
    return bool(np.unique(keys, axis=1).shape[1] < len(a))


def _alternates(a: Actions, within: float) -> bool:
    """Whether most micro-batches of a step, of two or more, run their backward next to their forward, and soon."""
    forward, each = a.kind == Kind.F, len(np.unique(a.microbatch))
    same = (np.diff(a.microbatch) == 0) & (np.diff(a.slice) == 0)
    next_ = forward[:-1] & ~forward[1:] & same & (a.start[1:] - a.end[:-1] < within)
    return each > 1 and 2 * int(np.sum(next_)) > each


def _at_once(a: Actions, within: float) -> bool:
    """Whether all forwards of a step come before its first backward, which begins as soon as they have ended.

    That of the last forward cannot be there so soon; that of an earlier one may, where few forwards are ahead.
    """
    forward: Bools = a.kind == Kind.F
    if forward.all() or not forward.any():
        return False
    last, first = np.flatnonzero(forward)[-1], np.flatnonzero(~forward)[0]
    gap = int(a.start[first] - a.end[last])
    own = a.microbatch[last] == a.microbatch[first] and a.slice[last] == a.slice[first]
    return bool(0 <= gap < within and (own or np.sum(forward) >= MANY))


def _answers(a: Actions, within: float) -> bool:
    """Whether any micro-batch of a step begins its backward soon behind its forward, whatever ran in between."""
    ends = {key: end for key, kind, end in zip(_ids(a), a.kind.tolist(), a.end.tolist(), strict=True) if kind == Kind.F}
    backward = a.take(a.kind != Kind.F)
    pairs = zip(_ids(backward), backward.start.tolist(), strict=True)
    return any(start - ends[key] < within for key, start in pairs if key in ends)


def _ids(actions: Actions) -> list[tuple[int, int]]:
    return list(zip(actions.microbatch.tolist(), actions.slice.tolist(), strict=True))
