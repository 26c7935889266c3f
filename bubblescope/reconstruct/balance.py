"""Whether the actions of a rank make a pipeline: in a step each forward has its backward, and that its weight gradient.

It is asked step by step, so that an odd step spoils only itself. A step without any backward, as an evaluation is one,
has nothing to balance.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.reconstruct.bases import Piece

__all__ = ["balanced", "even", "whole_steps"]

_CUT = 0.1
"""Share by which kinds may differ in number."""


def balanced(pieces: list[Piece], kinds: list[Kind]) -> bool:
    """Whether as many forwards, backwards and weight gradients come out, in half of the steps or over all whole ones.

    Pieces are those of steps that hold backwards, in any order, with the kind of each. A step that has more forwards,
    and as many of all others as one in which all come out, holds an evaluation, too.
    """
    count = _counts(pieces, kinds)
    apart, forwards = _apart(count), count[:, Kind.F]
    plain = np.all(apart == 0, axis=1)
    mixed = (apart[:, 0] < 0) & (apart[:, 1] == 0) & np.isin(forwards + apart[:, 0], forwards[plain])
    if 2 * np.sum(plain | mixed) >= len(count):
        return True
    slack = max(1.0, _CUT * sum(whole_steps(forwards.tolist())))
    return bool(np.all(np.abs(sum(whole_steps(list(apart)))) <= slack))


def even(pieces: list[Piece], kinds: list[Kind]) -> int:
    """In how many steps as many forwards, backwards and weight gradients come out."""
    return int(np.sum(np.all(_apart(_counts(pieces, kinds)) == 0, axis=1)))


def _apart(count: Ints) -> Ints:
    """How many more backwards than forwards each step has, and how many more input gradients than weight gradients."""
    back = count[:, Kind.B] + count[:, Kind.I]
    return np.stack((back - count[:, Kind.F], count[:, Kind.I] - count[:, Kind.W]), axis=1)


T = TypeVar("T")


def whole_steps(steps: list[T]) -> list[T]:
    """The steps, less the first and the last of several: a recording begins and ends anywhere."""
    return steps[1:-1] if len(steps) > 2 else steps


def _counts(pieces: list[Piece], kinds: list[Kind]) -> Ints:
    """How many actions of each kind (column) each step (row) has."""
    step = np.unique([piece.step for piece in pieces], return_inverse=True)[1].reshape(-1)
    count = np.zeros((int(step.max(initial=-1)) + 1, len(Kind)), np.int64)
    np.add.at(count, (step, np.array(kinds, np.int64)), 1)
    return count
