"""Actions: what a rank does in a pipeline, as the field writes them (2F4: stage 2, forward, micro-batch 4)."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

__all__ = ["WHOLE", "Action", "Kind", "Order", "blocks"]

WHOLE = -1
"""The slice of an action that works on a whole micro-batch."""


class Kind(IntEnum):
    """F forward, B full backward, I input gradient only, W weight gradient only."""

    F = 0
    B = 1
    I = 2  # noqa: E741 - the letter of the field
    W = 3


class Action(NamedTuple):
    """One action of a stage and a micro-batch, or of one slice of it (2F4.1); all counted from 0."""

    stage: int
    kind: Kind
    microbatch: int
    slice: int = WHOLE

    def __str__(self) -> str:
        part = "" if self.slice == WHOLE else f".{self.slice}"
        return f"{self.stage}{self.kind.name}{self.microbatch}{part}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read `2F4` or `2F4.1`; raises ValueError on anything else."""
        match = re.fullmatch(r"(\d+)([FBIW])(\d+)(?:\.(\d+))?", text)
        if match is None:
            raise ValueError(f"expected an action like 2F4, found {text!r}")
        stage, kind, microbatch, part = match.groups()
        return cls(int(stage), Kind[kind], int(microbatch), WHOLE if part is None else int(part))


Order = tuple[Action, ...]
"""The actions of one rank in the order in which it runs them."""


def blocks(order: Order, together: Collection[Action]) -> tuple[tuple[Action, ...], ...]:
    """The actions of a rank, each by itself or with the one behind it, if it is one of those that run together."""
    found: list[tuple[Action, ...]] = []
    joined = False
    for action in order:
        if joined:
            found[-1] += (action,)
        else:
            found.append((action,))
        joined = action in together
    return tuple(found)
