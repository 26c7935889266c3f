"""Groups of replicas that nobody describes, told by where their members stand.

Gradients are reduced after a rank's last backward, where no action asks for them: what the ranks of a group do
does not tell their purpose then, but their places in the pipelines do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bubblescope.model.groups import serves
from bubblescope.model.job import Plan
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs

__all__ = ["replicated"]

Timelines = Mapping[int, RankTimeline]


def replicated(timelines: Timelines, plan: Plan) -> Timelines:
    """Timelines whose calls say that they serve replicas, where one rank of each pipeline is in the group.

    All of them hold the same position. Nothing is told where it is open which ranks are replicas of each other.
    """
    if plan.tp is None or len(plan.pipelines) < 2:
        return timelines
    place = plan.place_of()

    def told(call: CommArgs) -> CommArgs:
        places = [place[rank] for rank in call.ranks if rank in place]
        apart = len({pipeline for pipeline, _ in places}) == len(call.ranks) > 1
        if serves(call) is None and apart and len({position for _, position in places}) == 1:
            return dataclasses.replace(call, purpose="dp")
        return call

    return {rank: dataclasses.replace(t, calls=tuple(map(told, t.calls))) for rank, t in timelines.items()}
