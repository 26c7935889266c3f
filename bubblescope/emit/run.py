"""What happened in a job: blocks that ran, messages that moved, steps; times in whole nanoseconds of its true clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from bubblescope.emit.plan import Block
from bubblescope.model.actions import Action

__all__ = ["Done", "Ran", "Run", "Span", "Step", "Transfer"]

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


@dataclass(slots=True)
class Step:
    """One optimizer step of the whole job; `dp` are gradient all-reduces by (pipeline rank, replica)."""

    number: int
    start: int
    release: int
    runs: list[Run]
    end: int = 0
    dp: dict[tuple[int, int], Span] = field(default_factory=dict)
    optimizer: Span | None = None
