"""Labels that count stages or micro-batches from 1, moved to count from 0.

All numbers from 1 on are named, and 0 is not. With stages that may be a rank that was not recorded: they are moved only
where as many ranks were recorded as there are, or the first stage named has no stage before it by its messages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from bubblescope.align.unnamed import shortage
from bubblescope.model.timeline import Actions, Messages, RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["from_zero"]

R = TypeVar("R", Actions, Messages)
Timelines = Mapping[int, RankTimeline]

END = 0.1
"""Messages a forward that a rank is short of an inner one's, beyond which it is an end of its pipeline."""


def from_zero(timelines: Timelines) -> tuple[Timelines, tuple[Finding, ...]]:
    """The timelines with stages and micro-batches of labels counted from 0, and a word on what was moved."""
    if not all(t.reconstruction == "labels" for t in timelines.values() if len(t.actions)):
        return timelines, ()
    stages = _is_from_one({*_stages(t)} for t in timelines.values()) and _is_whole(timelines)
    microbatches = _is_from_one({*np.unique(t.actions.microbatch).tolist()} for t in timelines.values())
    if not stages and not microbatches:
        return timelines, ()
    moved = {rank: _moved(t, int(stages), int(microbatches)) for rank, t in timelines.items()}
    what = " and ".join(["stages"] * stages + ["micro-batches"] * microbatches)
    message = f"labels count {what} from 1: all from there on are named, 0 is not; they are read as counted from 0"
    return moved, (Finding("ids-from-one", "warning", message),)


def _is_from_one(ids: Iterable[set[int]]) -> bool:
    """Whether several numbers are named, from 1 on without a gap."""
    named = {number for each in ids for number in each if number >= 0}
    return len(named) > 1 and named == set(range(1, len(named) + 1))


def _stages(timeline: RankTimeline) -> tuple[int, ...]:
    """The stages that labels name on a rank."""
    return (*np.unique(timeline.actions.stage).tolist(), *timeline.named_stages)


def _is_whole(timelines: Timelines) -> bool:
    """Whether the ranks of the first stage that is named are not behind those of another."""
    stated = max((_stated(timeline) for timeline in timelines.values()), default=0)
    if stated or 0 not in timelines:
        return stated == len(timelines)
    first = [timeline for timeline in timelines.values() if 1 in _stages(timeline)]
    return all(len(timeline.messages) and shortage(timeline) > END for timeline in first)


def _stated(timeline: RankTimeline) -> int:
    """The ranks of the job that anything tells on a rank, at least; 0 where nothing does."""
    identity = timeline.identity
    told = (*(group.ranks for group in identity.groups), *(call.ranks for call in timeline.calls))
    joined = [member.ranks for member in identity.memberships]
    peer = int(timeline.messages.peer.max(initial=-1))
    return max(identity.world_size or 0, peer + 1, *joined, *(max(ranks) + 1 for ranks in told if ranks))


def _moved(timeline: RankTimeline, stages: int, microbatches: int) -> RankTimeline:
    """The same timeline with stages and micro-batches of lower numbers, where it names them."""
    return dataclasses.replace(
        timeline,
        actions=_lowered(timeline.actions, stages, microbatches),
        messages=_lowered(timeline.messages, stages, microbatches),
        named_stages=tuple(stage - stages * (stage > 0) for stage in timeline.named_stages),
        pipelined=tuple(stage - stages * (stage > 0) for stage in timeline.pipelined),
    )


def _lowered(rows: R, stages: int, microbatches: int) -> R:
    return rows.replace(
        stage=rows.stage - stages * (rows.stage > 0),
        microbatch=rows.microbatch - microbatches * (rows.microbatch > 0),
    )
