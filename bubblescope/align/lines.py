"""Pipelines that nobody describes, by the communicator in which their ranks send to each other.

A framework makes a group for each pipeline, its ranks in the order of their stages. So where all messages of some
ranks go through one group, and each of them talks with its neighbours there and nobody else, that group is a
pipeline, and also tells the ranks of it that were not recorded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import CommArgs

__all__ = ["lined"]

Timelines = Mapping[int, RankTimeline]
Group = tuple[str, tuple[int, ...]]
"""Its name, and its ranks by their places."""


def lined(timelines: Timelines) -> Timelines:
    """Timelines whose sends and receives say that their group is a pipeline, where it is one."""
    used = {rank: _groups(timeline) for rank, timeline in timelines.items()}
    found = {group for groups in used.values() for group in groups if _is_line(group, used)}
    if not found:
        return timelines

    def told(call: CommArgs) -> CommArgs:
        ours = (call.group, call.ranks) in found and not (call.description or call.purpose)
        return dataclasses.replace(call, purpose="pp") if ours else call

    return {rank: dataclasses.replace(t, calls=tuple(map(told, t.calls))) for rank, t in timelines.items()}


def _groups(timeline: RankTimeline) -> dict[Group, set[int]]:
    """The groups through which messages of a rank go, and with whom it talks in each.

    A message that the host asked for before the recording began names none.
    """
    groups: dict[Group, set[int]] = {}
    for number, peer in set(zip(timeline.messages.call.tolist(), timeline.messages.peer.tolist(), strict=True)):
        call = timeline.calls[number]
        if call.group or call.ranks:
            groups.setdefault((call.group, call.ranks), set()).add(peer)
    return groups


def _is_line(group: Group, used: Mapping[int, Mapping[Group, set[int]]]) -> bool:
    """Whether a group is a pipeline. Of two ranks both must be there: NCCL also makes groups of single pairs."""
    _, ranks = group
    recorded = [rank for rank in ranks if rank in used]
    if len(ranks) < 2 or (len(ranks) == 2 and len(recorded) < 2):
        return False
    for place, rank in enumerate(ranks):
        if rank not in used:
            continue
        beside = {ranks[near] for near in (place - 1, place + 1) if 0 <= near < len(ranks)}
        around = beside | ({ranks[0], ranks[-1]} - {rank} if place in {0, len(ranks) - 1} else set())
        if used[rank].keys() != {group} or not beside <= used[rank][group] <= around:
            return False
    return True
