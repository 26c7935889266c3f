"""What a group is for, where one of its members could tell it and another could not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bubblescope.model.groups import serves
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs

__all__ = ["agreed"]

Timelines = Mapping[int, RankTimeline]


def agreed(timelines: Timelines) -> Timelines:
    """Timelines whose calls have the purpose that all members who can tell one give to the operation in their group.

    A rank whose recording is short may not show the pattern by which its partners know their group.
    """
    told: dict[tuple[str, tuple[int, ...], str], set[str]] = {}
    for call in {call for timeline in timelines.values() for call in timeline.calls if call.ranks}:
        told.setdefault((call.group, call.ranks, call.op), set()).add(serves(call) or "")
    one = {key: purposes - {""} for key, purposes in told.items() if len(purposes) == 2 and "" in purposes}
    if not one:
        return timelines

    def known(call: CommArgs) -> CommArgs:
        purposes = one.get((call.group, call.ranks, call.op)) if serves(call) is None else None
        return dataclasses.replace(call, purpose=next(iter(purposes))) if purposes else call

    return {rank: dataclasses.replace(t, calls=tuple(map(known, t.calls))) for rank, t in timelines.items()}
