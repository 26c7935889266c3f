"""What an instrumented file says of one rank: slices that somebody's own code named forward, backward, send, ...

A slice is taken at its word: it began and ended when the work itself did. Times are int64 nanoseconds, unknown ids
are -1. Nothing is counted or cut here; `bubblescope.reconstruct.slices` does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bubblescope.model.columns import Columns, Ints, Times, column
from bubblescope.model.trace import CommArgs, Finding, Identity, Source

__all__ = ["ActionSlices", "CallSlices", "MessageSlices", "RankSlices", "Slices"]


@dataclass(frozen=True, eq=False)
class Slices(Columns):
    """Rows from `start` to `end` in the step of that number (-1: not told)."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    step: Times = column(np.int64)


@dataclass(frozen=True, eq=False)
class ActionSlices(Slices):
    """Actions. `chunk` counts the stages of the rank itself, `stage` those of the pipeline."""

    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    chunk: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)


@dataclass(frozen=True, eq=False)
class MessageSlices(ActionSlices):
    """This rank's halves of transfers between stages, as `bubblescope.model.timeline.Messages` has them.

    `kind` (-1: not told) and the ids are those of the action that makes or awaits the message; `peer` is a global rank.
    """

    direction: Ints = column(np.int8)
    peer: Ints = column(np.int32)


@dataclass(frozen=True, eq=False)
class CallSlices(Slices):
    """Collectives; `call` indexes `RankSlices.calls`."""

    call: Ints = column(np.int32)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RankSlices:
    """All that a file says of one rank; rows are in no particular order.

    `absolute` as in `RankTrace`. Where `restarts` is true, the times of each step count from that step's own start,
    so that moments of different steps cannot be compared. `extents` are further moments that belong to a step.
    `pipelined` is whether only pipelines write files of this format.
    """

    source: Source
    identity: Identity
    absolute: bool
    restarts: bool = False
    pipelined: bool = False
    actions: ActionSlices = field(default_factory=ActionSlices.empty)
    messages: MessageSlices = field(default_factory=MessageSlices.empty)
    collectives: CallSlices = field(default_factory=CallSlices.empty)
    optimizer: Slices = field(default_factory=Slices.empty)
    extents: Slices = field(default_factory=Slices.empty)
    calls: tuple[CommArgs, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def blocks(self) -> tuple[Slices, ...]:
        """All rows, by what they are."""
        return (self.actions, self.messages, self.collectives, self.optimizer, self.extents)

    def self_check(self) -> None:
        """Raise ValueError unless no time runs backwards, every call is there and restarting steps are numbered."""
        for block in self.blocks:
            if np.any(block.end < block.start):
                raise ValueError(f"{type(block).__name__}: an end lies before its start")
            if self.restarts and np.any(block.step < 0):
                raise ValueError(f"{type(block).__name__}: a row counts from the start of a step that is not told")
        if np.any(self.actions.kind < 0):
            raise ValueError("an action of no kind")
        call = self.collectives.call
        if len(call) and not (call.min() >= 0 and call.max() < len(self.calls)):
            raise ValueError("CallSlices.call points outside the calls")
