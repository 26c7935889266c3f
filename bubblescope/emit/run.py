"""What happened in a job: blocks that ran, messages that moved, steps; times in whole nanoseconds of its true clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from bubblescope.emit.plan import Block
from bubblescope.model.actions import Action

__all__ = ["Done", "Pass", "Ran", "Reduction", "Run", "Span", "Step", "Transfer"]

Span = tuple[int, int]
"""Start and end, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One message between pipeline ranks: when both sides posted it, and when its bytes moved."""

    source: int
    target: int
    producer: Action
    consumer: Action
    sent: int
    received: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Done:
    """An action that ran: `useful` nanoseconds of kernels between start and end.

    `pause` is how long its host stood still behind its first kernel.
    """

    action: Action
    start: int
    end: int
    useful: int
    pause: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """A block that ran: its actions one after the other, once all that they awaited was there.

    `fused` says that its receive went with the send before it.
    """

    parts: tuple[Done, ...]
    awaited: tuple[Transfer, ...] = ()
    fused: bool = False

    @property
    def actions(self) -> Block:
        """Its actions."""
        return tuple(part.action for part in self.parts)

    @property
    def start(self) -> int:
        """Start of its first action."""
        return self.parts[0].start

    @property
    def end(self) -> int:
        """End of its last action, when all its outputs are there."""
        return self.parts[-1].end


@dataclass(slots=True)
class Run:
    """One step of one pipeline: the blocks of every rank; transfers by who needs and by who makes the output."""

    lanes: list[list[Ran]]
    transfers: dict[Action, Transfer] = field(default_factory=dict)
    outgoing: dict[Action, Transfer] = field(default_factory=dict)

    @property
    def start(self) -> int:
        """First action's start."""
        return min(lane[0].start for lane in self.lanes)

    @property
    def end(self) -> int:
        """Last action's end."""
        return max(lane[-1].end for lane in self.lanes)


class Reduction(NamedTuple):
    """One reduction of gradients over the replicas, from when a rank joins it to its end.

    `under` is the backward that makes the gradients while others are reduced; None is behind the whole order.
    """

    begin: int
    end: int
    under: Action | None = None


@dataclass(slots=True)
class Pass:
    """All micro-batches of a training step, or of an evaluation, on their way through the pipelines of all replicas.

    `release` is when receives may be posted, and `dp` are the reductions of gradients by (pipeline rank, replica).
    """

    m: int
    evaluates: bool
    start: int
    release: int
    runs: list[Run] = field(default_factory=list)
    end: int = 0
    dp: dict[tuple[int, int], tuple[Reduction, ...]] = field(default_factory=dict)
    optimizer: Span | None = None


@dataclass(slots=True)
class Step:
    """One step as the profiler counts them: a training step, an evaluation, or both."""

    number: int
    passes: tuple[Pass, ...]

    @property
    def start(self) -> int:
        """Start of its first pass."""
        return self.passes[0].start

    @property
    def end(self) -> int:
        """End of its last pass."""
        return self.passes[-1].end

    @property
    def training(self) -> Pass | None:
        """What it trains; a job of forwards alone trains nothing, and evaluates nothing beside it."""
        return next((part for part in self.passes if not part.evaluates), None)
