"""Actions: what a rank does in a pipeline, as the field writes them (2F4: stage 2, forward, micro-batch 4)."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Action", "Kind", "Order"]


class Kind(IntEnum):
    """F forward, B full backward, I input gradient only, W weight gradient only."""

    F = 0
    B = 1
    I = 2  # noqa: E741 - the letter of the field
    W = 3


class Action(NamedTuple):
    """One action of a stage and a micro-batch, both counted from 0."""

    stage: int
    kind: Kind
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind.name}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read `2F4`; raises ValueError on anything else."""
        match = re.fullmatch(r"(\d+)([FBIW])(\d+)", text)
        if match is None:
            raise ValueError(f"expected an action like 2F4, found {text!r}")
        return cls(int(match[1]), Kind[match[2]], int(match[3]))


Order = tuple[Action, ...]
"""The actions of one rank in the order in which it runs them."""
