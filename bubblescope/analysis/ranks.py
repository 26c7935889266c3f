"""Everything about one rank that the analyses share, made once."""

from __future__ import annotations

from dataclasses import dataclass

from bubblescope.align.pairs import Pairing, pair, produced
from bubblescope.analysis.gaps import Gaps, find_gaps, sends_block
from bubblescope.analysis.lanes import Lanes, lanes_of
from bubblescope.analysis.steps import RankStep, rank_steps
from bubblescope.model.job import Job
from bubblescope.model.timeline import RankTimeline

__all__ = ["RankView", "views"]


@dataclass(frozen=True, slots=True, eq=False)
class RankView:
    """A rank's timeline, its steps and gaps by step number, its lanes, the ends of its messages.

    `pipeline` and `position` are None on a rank that is in no pipeline. `blocking` is whether it sees
    its sends through before it goes on.
    """

    timeline: RankTimeline
    pipeline: int | None
    position: int | None
    steps: dict[int, RankStep]
    gaps: dict[int, Gaps]
    lanes: Lanes
    pairing: Pairing
    blocking: bool

    def until_next(self, number: int) -> int | None:
        """Nanoseconds from the rank's start of a step to its start of the next one; None where that is not recorded."""
        apart = self.timeline.restarts or number + 1 in self.timeline.resumed
        if apart or not {number, number + 1} <= self.steps.keys():
            return None
        return self.steps[number + 1].start - self.steps[number].start


def views(job: Job) -> dict[int, RankView]:
    """The views of all ranks of a job."""
    place, pairings = job.plan.place_of(), pair(job)
    blocking = sends_block((timeline, pairings[rank]) for rank, timeline in job.timelines.items())
    made = produced(job)
    result = {}
    for rank, timeline in job.timelines.items():
        pipeline, position = place.get(rank, (None, None))
        steps = rank_steps(timeline)
        gaps = find_gaps(timeline, steps, pairings[rank], made[rank], blocking=blocking)
        lanes = lanes_of(timeline)
        result[rank] = RankView(timeline, pipeline, position, steps, gaps, lanes, pairings[rank], blocking)
    return result
