"""Split backwards whose two halves run the same kernels, so that nothing but their number and their turn tells them."""

from __future__ import annotations

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.reconstruct.bases import Piece, in_order
from bubblescope.reconstruct.directions import FORWARD
from bubblescope.reconstruct.strings import equal_parts

__all__ = ["in_turns"]


def in_turns(pieces: list[Piece], name: Ints) -> dict[Piece, Kind]:
    """The kind of each piece where backwards are split alike; nothing where another reading is as good.

    Every step has two backward pieces for each forward of its training then. Two forwards that always stand together
    would look so, too: where a forward may be two, nothing is told. What follows a forward is an input gradient, as a
    pipeline puts off weight gradients and nothing else; the pieces behind it take turns, as far as there are forwards
    left that wait for their input gradient.

    Args:
        pieces: those of steps that hold backwards.
        name: the row of each unit's name.
    """
    steps: dict[int, list[Piece]] = {}
    for piece in in_order(pieces):
        steps.setdefault(piece.step, []).append(piece)
    forwards = [piece for piece in pieces if piece.direction == FORWARD]
    if any(equal_parts(name[piece.first : piece.last], 2) for piece in forwards):
        return {}
    even = [mine for mine in steps.values() if 3 * sum(p.direction == FORWARD for p in mine) == len(mine)]
    if 2 * len(even) < len(steps):
        return {}
    return {piece: kind for mine in steps.values() for piece, kind in zip(mine, _turns(mine), strict=True)}


def _turns(step: list[Piece]) -> list[Kind]:
    """The kinds of the pieces of one step, which are in time order."""
    backwards = sum(piece.direction != FORWARD for piece in step)
    result = list[Kind]()
    for piece in step:
        done, put_off = result.count(Kind.I), result.count(Kind.I) - result.count(Kind.W)
        if piece.direction == FORWARD:
            result.append(Kind.F)
        elif put_off and (2 * done >= backwards or done == result.count(Kind.F) or result[-1] == Kind.I):
            result.append(Kind.W)
        else:
            result.append(Kind.I)
    return result
