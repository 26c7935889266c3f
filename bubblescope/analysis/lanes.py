"""What ran when on one rank, by purpose, over the whole recording."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bubblescope.model.groups import IN_STAGE, Purpose, serving
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["Lanes", "lanes_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Times at which something of each kind ran; the sets overlap.

    `stray` is compute that belongs to no action, the optimizer's apart; `in_stage` are tensor-,
    context- and expert-parallel collectives; `unexplained` those whose purpose nobody tells;
    `copies` those between the host and the device. `busy` is all compute with the optimizer's,
    `elsewhere` all that is no action's work.
    """

    compute: Spans
    stray: Spans
    optimizer: Spans
    in_stage: Spans
    dp: Spans
    unexplained: Spans
    messages: Spans
    copies: Spans
    busy: Spans
    elsewhere: Spans


def lanes_of(timeline: RankTimeline) -> Lanes:
    """Sort what a rank ran by what it was for."""
    work, optimizer = timeline.work, timeline.optimizer
    unowned = work.take(work.action < 0)
    compute, stray = Spans.of(work.start, work.end), Spans.of(unowned.start, unowned.end)
    in_stage, unexplained = _shared(timeline, IN_STAGE), _shared(timeline, {None, "pp"})
    return Lanes(
        compute=compute,
        stray=stray,
        optimizer=optimizer,
        in_stage=in_stage,
        dp=_shared(timeline, {"dp"}),
        unexplained=unexplained,
        messages=Spans.of(timeline.messages.start, timeline.messages.end),
        copies=timeline.copies,
        busy=Spans.join((compute, optimizer)),
        elsewhere=Spans.join((stray, optimizer, in_stage, unexplained, _unclear(timeline), timeline.copies)),
    )


def _unclear(timeline: RankTimeline) -> Spans:
    """Messages of unknown direction: where an action stood still for one, it may be no message of the pipeline."""
    unclear = timeline.messages.take(timeline.messages.direction == Messages.EITHER)
    return Spans.of(unclear.start, unclear.end)


def _shared(timeline: RankTimeline, purposes: Collection[Purpose | None]) -> Spans:
    rows = serving(timeline.calls, timeline.collectives.call, purposes)
    return Spans.of(timeline.collectives.start[rows], timeline.collectives.end[rows])
