"""Recordings that were given twice, as copies of a file are: each counts once.

Where they tell their rank, two files claim it, which is the user's to settle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bubblescope.model.columns import Columns
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["counted_once"]

Recording = tuple[object, ...]


def counted_once(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    """The timelines without those that say the same as an earlier one, of the same process at the same times."""
    kept: dict[Recording, RankTimeline] = {}
    for place, timeline in enumerate(timelines):
        recording = _recording(timeline) or (place,)
        first = kept.get(recording)
        kept[recording] = timeline if first is None else _given_again(first, timeline)
    return list(kept.values())


def _recording(timeline: RankTimeline) -> Recording | None:
    """What was recorded, of whom; None where the process cannot be known or tells its rank, or did nothing."""
    who = timeline.identity
    if who.process is None or who.rank is not None or not (len(timeline.steps) and len(timeline.actions)):
        return None
    blocks = (timeline.steps, timeline.actions, timeline.messages)  # to the nanosecond, which no two runs share
    return (who.host, who.process, who.device, timeline.absolute, timeline.calls, *map(_bytes, blocks))


def _bytes(block: Columns) -> tuple[bytes, ...]:
    return tuple(getattr(block, field.name).tobytes() for field in dataclasses.fields(block))


def _given_again(one: RankTimeline, other: RankTimeline) -> RankTimeline:
    """The first of two that are alike, with the file of the other."""
    if one.source.path == other.source.path:
        message = "a recording stands in the file twice and counts once"
    else:
        message = f"{Path(other.source.path).name} holds a recording that this file holds, too; it counts once"
    said = (*one.findings, Finding("several-recordings", "info", message, one.source.path))
    files = {source.path: source for source in (one.source, *one.later, other.source)}
    return dataclasses.replace(one, later=tuple(files.values())[1:], findings=tuple(dict.fromkeys(said)))
