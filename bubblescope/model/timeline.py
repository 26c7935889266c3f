"""What one rank's file tells by itself: steps, actions, messages, collectives.

A `RankTimeline` is what a worker sends back: columns of a few bytes an action or message, and
no event of the trace. Times are nanoseconds on the rank's own clock; unknown ids are -1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.groups import IN_STAGE, serves, serving
from bubblescope.model.spans import Spans
from bubblescope.model.trace import UNNAMED, CommArgs, Doubts, Finding, Identity, Source

__all__ = [
    "Actions",
    "Collectives",
    "LayerWork",
    "Messages",
    "RankTimeline",
    "Reconstruction",
    "Steps",
    "Timed",
    "Work",
]

Reconstruction = Literal["labels", "autograd", "frames", "p2p", "kernels", "table"]


@dataclass(frozen=True, eq=False)
class Timed(Columns):
    """Rows that last from `start` to `end`."""

    start: Times = column(np.int64)
    end: Times = column(np.int64)

    def moved(self, move: Callable[[Times], Times]) -> Self:
        """The same rows on another clock; `move` turns moments of this one into moments of that."""
        return self.replace(start=move(self.start), end=move(self.end))


@dataclass(frozen=True, eq=False)
class Steps(Timed):
    """Steps of the rank in time order; each ends where the next begins or its own work ends.

    `extra` are the forwards of an evaluation that was inside, which are no actions. A step is `cut` where the recording
    does not hold all of an action that was asked for in it, which is then no action either.
    """

    number: Times = column(np.int64)
    extra: Ints = column(np.int32, absent=0)
    cut: Bools = column(np.bool_, absent=False)


@dataclass(frozen=True, eq=False)
class Actions(Timed):
    """Actions in order of their start. `step` is the row of `Steps`; `stage` is -1 where only the layout tells it.

    `start` and `end` are those of the work itself, not of the label or launch. `slice` is -1 for a
    whole micro-batch. Actions that ran under one label, overlapped, share a `block`; -1 is alone.
    `chunk` counts the stages of this rank where a label names these and not the pipeline's; with the
    layout it tells the stage.
    """

    step: Ints = column(np.int32)
    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)
    block: Ints = column(np.int32)
    chunk: Ints = column(np.int32, absent=-1)


@dataclass(frozen=True, eq=False)
class Work(Timed):
    """When compute ran for which action (row of `Actions`; -1: none). Disjoint within one action."""

    action: Ints = column(np.int32)


@dataclass(frozen=True, eq=False)
class LayerWork(Columns):
    """Nanoseconds that a layer took of an action (row of `Actions`), where ranges tell layers.

    `layer` tells the layers of one rank apart, in the order of the model; the numbers of two ranks say nothing of each
    other. What an action does beside its layers is in no row.
    """

    action: Ints = column(np.int32)
    layer: Ints = column(np.int32)
    length: Times = column(np.int64)


@dataclass(frozen=True, eq=False)
class Messages(Timed):
    """This rank's halves of point-to-point transfers, in the order in which they were posted.

    `direction` is SEND, RECV or EITHER; `kind`, `stage` (or `chunk`, as in `Actions`), `microbatch`,
    `slice` name the action that produces (send) or awaits (recv) it, where a label says so; `peer` is
    a global rank. Halves that
    one kernel holds share `kernel`. `after` is the last action that the host asked for before it
    posted the message (row of `Actions`; -1: none of the step).
    """

    SEND = 0
    RECV = 1
    EITHER = 2

    step: Ints = column(np.int32)
    direction: Ints = column(np.int8)
    peer: Ints = column(np.int32)
    bytes: Ints = column(np.int64)
    call: Ints = column(np.int32)
    kind: Ints = column(np.int8)
    stage: Ints = column(np.int32)
    microbatch: Ints = column(np.int32)
    slice: Ints = column(np.int32)
    kernel: Ints = column(np.int32)
    after: Ints = column(np.int32)
    chunk: Ints = column(np.int32, absent=-1)


@dataclass(frozen=True, eq=False)
class Collectives(Timed):
    """Collective calls as this rank ran them, in order; `call` indexes `RankTimeline.calls`.

    `action` is the row of the action that asked for it, -1 if none did.
    """

    action: Ints = column(np.int32)
    step: Ints = column(np.int32)
    call: Ints = column(np.int32)
    bytes: Ints = column(np.int64)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RankTimeline:
    """One rank, reconstructed.

    `optimizer` is the time of the optimizer's own work, `copies` that of copies between host and device, which are no
    work. `kernels` were recorded of it, of which `launched` have a launch.

    `named_stages` are those that labels name which nothing joins to kernels, so that `actions` may name none.

    Where `restarts` is true, the file counts the times of each step from that step's own start: the steps were laid one
    after the other, and moments of different steps cannot be compared.

    `resumed` are the steps with which the profiler went on after a pause, and `later` other files that hold such
    recordings: what lies between such a step and the one before is part of neither.

    `pipelined` are the stages named by what only a pipeline writes, labels or a format of files, -1 where it names
    none; it is empty where nothing of the kind stands, or messages tell their direction.
    """

    rank: int
    source: Source
    identity: Identity
    absolute: bool
    on_gpu: bool
    steps: Steps = field(default_factory=Steps.empty)
    actions: Actions = field(default_factory=Actions.empty)
    work: Work = field(default_factory=Work.empty)
    layers: LayerWork = field(default_factory=LayerWork.empty)
    messages: Messages = field(default_factory=Messages.empty)
    collectives: Collectives = field(default_factory=Collectives.empty)
    calls: tuple[CommArgs, ...] = ()
    optimizer: Spans = field(default_factory=Spans.empty)
    copies: Spans = field(default_factory=Spans.empty)
    reconstruction: Reconstruction | None = None
    named_stages: tuple[int, ...] = ()
    restarts: bool = False
    resumed: tuple[int, ...] = ()
    later: tuple[Source, ...] = ()
    pipelined: tuple[int, ...] = ()
    kernels: int = 0
    launched: int = 0
    doubts: Doubts = field(default_factory=Doubts)
    doubted: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()

    def moved(self, move: Callable[[Times], Times]) -> RankTimeline:
        """The same timeline on another clock; `move` turns moments of this one into moments of that."""
        return dataclasses.replace(
            self,
            steps=self.steps.moved(move),
            actions=self.actions.moved(move),
            work=self.work.moved(move),
            messages=self.messages.moved(move),
            collectives=self.collectives.moved(move),
            optimizer=self.optimizer.moved(move),
            copies=self.copies.moved(move),
        )

    def own_collectives(self) -> Collectives:
        """Collectives that an action asked for as part of its stage's own computation."""
        c = self.collectives
        return c.take((c.action >= 0) & serving(self.calls, c.call, IN_STAGE))

    def unclear_collectives(self) -> Collectives:
        """Collectives of undescribed groups that may be the stage's own computation too.

        Where no forward asked for one there are none: tensor, context and expert parallelism
        communicate in every forward, while what a replica reduces are gradients.
        """
        c = self.collectives
        asked = c.take((c.action >= 0) & serving(self.calls, c.call, {None}))
        return asked if np.any(self.actions.kind[asked.action] == Kind.F) else Collectives.empty()

    def unnamed_calls(self) -> Collectives:
        """Communication that nothing names, in groups that may be a pipeline's: it may be sends and receives."""
        open_ = [call.op == UNNAMED and serves(call) in {None, "pp"} for call in self.calls]
        c = self.collectives
        return c.take(np.array(open_, bool)[c.call]) if any(open_) else Collectives.empty()

    def self_check(self) -> None:
        """Raise ValueError unless actions are ordered and every action's work lies inside it."""
        if np.any(np.diff(self.actions.start) < 0):
            raise ValueError("actions are not in order of their start")
        owned = self.work.take(self.work.action >= 0)
        if np.any(owned.start < self.actions.start[owned.action]) or np.any(owned.end > self.actions.end[owned.action]):
            raise ValueError("work lies outside the action that owns it")
