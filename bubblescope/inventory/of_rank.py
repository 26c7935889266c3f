"""What a file holds of one rank, in numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from bubblescope.analysis.contents import contents
from bubblescope.analysis.steps import choose, microbatches, rank_steps
from bubblescope.inventory import lanes
from bubblescope.inventory.needs import needs
from bubblescope.model.actions import Kind
from bubblescope.model.columns import Times
from bubblescope.model.info import ActionsInfo, Counts, RankInfo, StepInfo
from bubblescope.model.options import StepRange
from bubblescope.model.slices import RankSlices
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.reconstruct.labels import dialect_of
from bubblescope.reconstruct.process import main_process
from bubblescope.reconstruct.steps import marked

__all__ = ["describe"]


class _Block(Protocol):
    """Rows that begin and end."""

    @property
    def start(self) -> Times: ...

    @property
    def end(self) -> Times: ...

    def __len__(self) -> int: ...


def describe(found: RankTrace | RankSlices, timeline: RankTimeline | None, problem: str | None = None) -> RankInfo:
    """What a rank's events are; `timeline` is what they tell, None where they tell nothing, for that `problem`."""
    identity = found.identity
    own = main_process(found) if isinstance(found, RankTrace) else found
    start, end = _extent(own, timeline)
    info = RankInfo(
        rank=identity.rank,
        rank_source=identity.rank_source,
        world_size=identity.world_size,
        host=identity.host,
        backend=identity.backend,
        devices=tuple(device.name for device in identity.devices),
        events=found.source.events,
        counts=_counts(own, timeline),
        absolute=found.absolute,
        start_ns=start,
        span_ns=None if start is None or end is None else end - start,
        marked=_marked(own),
        steps=() if timeline is None else _steps(timeline, start or 0),
        actions=_actions(own, timeline),
        lanes=lanes.lanes(found) if isinstance(found, RankTrace) else (),
        threads=lanes.threads(found) if isinstance(found, RankTrace) else (),
        groups=lanes.groups(own) if isinstance(own, RankTrace) else (),
        needs=(),
        findings=_findings(found, timeline),
        problem=problem,
    )
    return replace(info, needs=needs(info, found.source, timeline))


def _findings(found: RankTrace | RankSlices, timeline: RankTimeline | None) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(found.findings if timeline is None else timeline.findings))


def _counts(found: RankTrace | RankSlices, timeline: RankTimeline | None) -> Counts:
    called = 0 if timeline is None else len(timeline.collectives)
    posted = 0 if timeline is None else len(timeline.messages)
    if isinstance(found, RankSlices):
        return Counts(
            operators=0, launches=0, kernels=0, copies=0, ranges=sum(map(len, found.blocks)), frames=0,
            collectives=called, messages=posted,
        )  # fmt: skip
    kernels = int(np.sum(found.kernels.kind == found.kernels.KERNEL))
    return Counts(
        operators=len(found.ops),
        launches=len(found.launches),
        kernels=kernels,
        copies=len(found.kernels) - kernels,
        ranges=len(found.annotations),
        frames=len(found.frames),
        collectives=called,
        messages=posted,
    )


def _extent(found: RankTrace | RankSlices, timeline: RankTimeline | None) -> tuple[int | None, int | None]:
    """The first and the last moment of anything; of slices as their timeline has them, as their steps may restart."""
    blocks: Sequence[_Block] = ()
    if isinstance(found, RankTrace):
        blocks = (found.ops, found.annotations, found.launches, found.kernels, found.frames)
    elif timeline is not None:
        blocks = (timeline.steps, timeline.actions, timeline.messages, timeline.collectives)
    rows = [block for block in blocks if len(block)]
    if not rows:
        return None, None
    return min(int(row.start.min()) for row in rows), max(int(row.end.max()) for row in rows)


def _marked(found: RankTrace | RankSlices) -> bool:
    if isinstance(found, RankTrace):
        return marked(found)
    return any(bool(np.any(block.step >= 0)) for block in found.blocks)


def _actions(found: RankTrace | RankSlices, timeline: RankTimeline | None) -> ActionsInfo:
    kinds = [] if timeline is None else timeline.actions.kind.tolist()
    return ActionsInfo(
        told_by=None if timeline is None else timeline.reconstruction,
        dialect=dialect_of(found) if isinstance(found, RankTrace) else None,
        counts={kind.name: kinds.count(kind) for kind in Kind if kind in kinds},
    )


def _steps(timeline: RankTimeline, origin: int) -> tuple[StepInfo, ...]:
    """The steps of a rank; whether one is complete is told by the others of the same rank."""
    steps = rank_steps(timeline)
    told = len(timeline.actions) > 0
    held = contents({timeline.rank: steps}) if told else {}
    training = [step for n, step in steps.items() if n not in held or held[n].kind != "evaluation"]
    m = microbatches(training, named=timeline.reconstruction == "labels") if told else None
    return tuple(
        StepInfo(
            step=use.number,
            kind=use.content.kind if use.content else None,
            actions=len(steps[use.number].rows),
            complete=use.complete if told else None,
            start_ns=steps[use.number].start - origin,
            end_ns=steps[use.number].end - origin,
        )
        for use in choose({timeline.rank: steps}, StepRange(), m, held)
    )
