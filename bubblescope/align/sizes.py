"""Whether anything tells how many ranks a pipeline has: the largest number of a recorded one does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bubblescope.align.ends import recurs, turns
from bubblescope.model import writing as words
from bubblescope.model.job import Pipeline
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["cut_short", "is_sized", "states_size", "unsized"]

Timelines = Mapping[int, RankTimeline]


def cut_short(timelines: Timelines) -> bool:
    """Whether timelines that name one stage alone are those of a pipeline whose other ranks were not recorded.

    What names actions by hand names those of a pipeline, unless each micro-batch turns round on its rank.
    """
    tables = all(t.reconstruction == "table" for t in timelines.values())
    return tables and not all(turns(t) and not recurs(t) and not t.pipelined for t in timelines.values())


def states_size(timelines: Timelines) -> bool:
    """Whether metadata state how many ranks the job, a group or an axis has."""
    identities = [t.identity for t in timelines.values()]
    return any(i.world_size or i.groups or any(c.degree for c in i.coordinates) for i in identities)


def is_sized(timelines: Timelines, pipelines: Sequence[Pipeline], world: int, *, assumed: bool) -> bool:
    """Whether something tells how many ranks the pipelines have; in timelines the last rank shows that it is the last.

    Args:
        timelines: the ranks that were recorded.
        pipelines: as they were found.
        world: the ranks of the job, at least.
        assumed: whether the pipelines are no more than all ranks in their order.
    """
    if states_size(timelines) or not pipelines:
        return True
    if any(t.reconstruction != "table" for t in timelines.values()):
        return not assumed or len(timelines) == world
    if any(map(_holds_several, timelines.values())):
        return True  # the stages of a rank lie as far apart as there are ranks
    return len(pipelines[0]) > 1 and any(_ends(pipeline, timelines) for pipeline in pipelines)


def _ends(pipeline: Pipeline, timelines: Timelines) -> bool:
    """Whether a rank of the last position of a pipeline shows that none follows it."""
    before = next((timelines[rank] for rank in pipeline[-2] if rank in timelines), None)
    return any(turns(timelines[rank], before) for rank in pipeline[-1] if rank in timelines)


def _holds_several(timeline: RankTimeline) -> bool:
    a = timeline.actions
    return bool(np.any(a.chunk >= 0)) or len(np.unique(a.stage[a.stage >= 0])) > 1


def unsized(pipelines: Sequence[Pipeline], timelines: Timelines) -> tuple[Finding, ...]:
    """A warning that ranks may be missing which nobody can name."""
    seen = sorted(rank for pipeline in pipelines for ranks in pipeline for rank in ranks if rank in timelines)
    message = (
        f"nothing tells how many ranks the pipeline has: others than {words.ranks_named(seen)} may be missing; "
        "give the files of all ranks, or state --pp"
    )
    return (Finding("layout-assumed", "warning", message),)
