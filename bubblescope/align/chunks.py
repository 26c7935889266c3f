"""Stages of chunks: labels that count the stages of their own rank, and the way in which these lie over the ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.job import Plan
from bubblescope.model.options import Options
from bubblescope.model.placement import Placement, loop, vee
from bubblescope.model.timeline import RankTimeline

__all__ = ["chunked"]

Timelines = Mapping[int, RankTimeline]


def chunked(timelines: Timelines, plan: Plan, options: Options) -> Placement:
    """The stages of each position by chunk, for labels that name chunks; one stage a position where none does."""
    told = (rows.chunk for t in timelines.values() for rows in (t.actions, t.messages))
    named = max((int(chunk.max()) for chunk in told if len(chunk)), default=-1) + 1
    v = max(named, options.virtual or 1) if named else 1
    return (vee if v > 1 and _folded(timelines, plan) else loop)(plan.pp, v)


def _folded(timelines: Timelines, plan: Plan) -> bool:
    """Whether stages fold back, going by how many forwards of chunk 0 precede the first of chunk 1.

    Where they fold back, the last position goes on with what it has just run, and the first waits until
    it is back; where they loop, all run as many. No clock has a part in it.
    """
    votes = 0
    for pipeline in plan.pipelines:
        counts = [_before_second(timelines[rank]) for ranks in pipeline for rank in ranks[:1] if rank in timelines]
        for step in counts[0].keys() & counts[-1].keys() if counts else ():
            votes += 1 if counts[-1][step] < counts[0][step] else -1
    return votes > 0


def _before_second(timeline: RankTimeline) -> dict[int, int]:
    """For each step, by its number, the forwards of chunk 0 before the first forward of chunk 1."""
    a = timeline.actions
    found: dict[int, int] = {}
    for step in np.unique(a.step).tolist():
        chunk = a.chunk[(a.step == step) & (a.kind == Kind.F)]
        later = np.flatnonzero(chunk == 1)
        if len(later):
            found[int(timeline.steps.number[step])] = int(np.sum(chunk[: later[0]] == 0))
    return found
