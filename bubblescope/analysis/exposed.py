"""Communication that nothing hides, step by step: in it a rank does nothing but communicate, or wait for somebody."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

import numpy as np

from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import rows_by
from bubblescope.model.columns import Ints, Times
from bubblescope.model.groups import serves
from bubblescope.model.spans import Spans
from bubblescope.model.traffic import Group

__all__ = ["WHOLE", "exposed"]

WHOLE = ""
"""The key of all groups together."""

_Calls = tuple[Times, Times, Ints]
"""Start, end and row of the step of some calls."""


def exposed(views: Mapping[int, RankView], used: Sequence[int]) -> dict[str, list[float]]:
    """For each group, and for all of them, nanoseconds in which a call of it runs and no compute does.

    Means over the ranks that have the step, in the order of the steps; instants in which several calls run count once.
    """
    by_rank = [_of_rank(view, frozenset(used)) for view in views.values()]
    groups = sorted({group for found in by_rank for group, _ in found})
    recorded = [[found for found, view in zip(by_rank, views.values(), strict=True) if n in view.steps] for n in used]
    return {
        group: [
            fmean(found.get((group, n), 0) for found in here) if here else 0.0
            for n, here in zip(used, recorded, strict=True)
        ]
        for group in groups
    }


def _of_rank(view: RankView, used: Collection[int]) -> dict[tuple[str, int], int]:
    number = view.timeline.steps.number.tolist()
    calls = _by_group(view)
    if calls:
        calls[WHOLE] = tuple(np.concatenate(columns) for columns in zip(*calls.values(), strict=True))  # type: ignore[assignment]
    found = {}
    for group, (start, end, step) in calls.items():
        for n, rows in zip(number, rows_by(step, len(number)), strict=True):
            if n in used and len(rows):
                here = Spans.of(start[rows], end[rows])
                busy = view.lanes.busy.clip(int(start[rows].min()), int(end[rows].max()))
                found[group, n] = here.minus(busy).total
    return found


def _by_group(view: RankView) -> dict[str, _Calls]:
    """The calls of each group; messages between ranks of no pipeline are of no known one."""
    timeline, found = view.timeline, {}
    m, c = timeline.messages, timeline.collectives
    groups: list[Group] = [serves(call) or "other" for call in timeline.calls]
    of_call = np.array(groups, object)[c.call] if len(c) else np.empty(0, object)
    for group in dict.fromkeys(groups):
        mine = of_call == group
        if mine.any():
            found[str(group)] = (c.start[mine], c.end[mine], c.step[mine])
    if len(m):
        key = "other" if view.pipeline is None else "pp"
        own = (m.start, m.end, m.step)
        found[key] = tuple(np.concatenate(both) for both in zip(found[key], own, strict=True)) if key in found else own  # type: ignore[assignment]
    return found
