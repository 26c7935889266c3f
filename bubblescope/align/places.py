"""Ranks where files tell only where each stands: numbered over the whole job, as one file may know one replica."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from bubblescope.model.timeline import RankTimeline

__all__ = ["placed"]

Place = Mapping[str, int]


def placed(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    """Timelines with their ranks in Megatron's order, if the place on the axes is all that tells any of them.

    Tensor-parallel ranks are neighbours, stages lie farthest apart (Megatron-LM, megatron/core/parallel_state.py).
    """
    places = [_place(timeline) for timeline in timelines]
    if not timelines or not all("pp" in place for place in places):
        return list(timelines)
    width, depth = (max(place.get(axis, 0) for place in places) + 1 for axis in ("tp", "dp"))
    ranks = [(place["pp"] * depth + place.get("dp", 0)) * width + place.get("tp", 0) for place in places]
    return [_as(timeline, rank) for timeline, rank in zip(timelines, ranks, strict=True)]


def _place(timeline: RankTimeline) -> Place:
    """Where a rank stands whose number was made of that; nothing for others."""
    identity = timeline.identity
    made = identity.rank_source == "label" and timeline.source.format in {"timeline", "table"}
    return {axis.purpose: axis.position for axis in identity.coordinates} if made else {}


def _as(timeline: RankTimeline, rank: int) -> RankTimeline:
    identity = dataclasses.replace(timeline.identity, rank=rank)
    return dataclasses.replace(timeline, rank=rank, identity=identity)
