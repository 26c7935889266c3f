"""Forwards of a step that no backward follows, and whether they stand apart from its training like an evaluation."""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times

__all__ = ["apart", "codes", "unbacked"]


def codes(stage: Ints, chunk: Ints, microbatch: Ints, part: Ints) -> Ints:
    """A number for each stage, micro-batch and slice; a backward has that of its forward. `chunk` counts without stage.

    -1 is unknown, and a `part` of -1 a whole micro-batch.
    """
    place = np.where(stage >= 0, stage, chunk).astype(np.int64) + 1
    result: Ints = (place << 44) + ((microbatch.astype(np.int64) + 1) << 16) + part + 1
    return result


def unbacked(code: Ints, kind: Ints, start: Times) -> Bools | None:
    """The forwards of a step that no backward follows; None where some backward has no forward, or comes twice.

    Of several forwards of one name the last before the backward is its own.

    Args:
        code: what each action of the step is for, as of `codes`.
        kind: forward, or which backward.
        start: when they began, in order, on the host or on the GPU.
    """
    forward = kind == Kind.F
    begun: dict[int, int] = {}
    twice: set[tuple[int, int]] = set()
    for one, back, moment in zip(*(column[~forward].tolist() for column in (code, kind, start)), strict=True):
        if (one, back) in twice:
            return None
        twice.add((one, back))
        begun[one] = min(begun.get(one, moment), moment)
    own: dict[int, int] = {}
    for row in np.flatnonzero(forward).tolist():
        one = int(code[row])
        if one in begun and start[row] < begun[one]:
            own[one] = row
    if own.keys() != begun.keys():
        return None
    extra: Bools = forward.copy()
    extra[list(own.values())] = False
    return extra


def apart(start: Times, extra: Bools) -> bool:
    """Whether an evaluation is over before the training begins, or begins when its last backward has begun."""
    first, last = start[~extra].min(), start[~extra].max()
    return bool(start[extra].max() < first or start[extra].min() > last)
