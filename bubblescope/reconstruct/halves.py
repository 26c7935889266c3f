"""Split backwards whose two halves run the same kernels, so that nothing but their number and their turn tells them."""

from __future__ import annotations

from itertools import pairwise

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.reconstruct.bases import Piece, in_order
from bubblescope.reconstruct.directions import FORWARD
from bubblescope.reconstruct.strings import equal_parts

__all__ = ["in_turns"]


def in_turns(pieces: list[Piece], name: Ints, segment: Ints) -> dict[Piece, Kind]:
    """The kind of each piece where backwards are split alike; nothing where another reading is as good.

    Every step has two backward pieces for each forward of its training then. Two forwards that always stand together
    would look so, too: where a forward may be two, nothing is told. An input gradient is sent, so that what the next
    action follows without a message is a weight gradient, but on the first stage, and so is the last one of a step. Of
    the others, those behind a forward are input gradients, as a pipeline puts off weight gradients and nothing else,
    and those behind them take turns.

    Args:
        pieces: those of steps that hold backwards.
        name: the row of each unit's name.
        segment: rising numbers of the stretches that messages, steps and optimizers leave.
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
    return {piece: kind for mine in steps.values() for piece, kind in zip(mine, _turns(mine, segment), strict=True)}


def _turns(step: list[Piece], segment: Ints) -> list[Kind]:
    """The kinds of the pieces of one step, which are in time order."""
    backwards = [piece for piece in step if piece.direction != FORWARD]
    unsent = {one for one, other in pairwise(step) if one.direction != FORWARD and _follows(one, other, segment)}
    unsent |= set(backwards[-1:])
    each = len(backwards) // 2
    weights = unsent if len(unsent) <= each else set[Piece]()
    by_turn = each - len(weights)
    result = list[Kind]()
    for piece in step:
        done, put_off = result.count(Kind.I), result.count(Kind.I) > result.count(Kind.W)
        turn = done in {each, result.count(Kind.F)} or result[-1:] == [Kind.I]
        if piece.direction == FORWARD:
            result.append(Kind.F)
        elif piece in weights or (by_turn and put_off and turn):
            by_turn -= piece not in weights
            result.append(Kind.W)
        else:
            result.append(Kind.I)
    return result


def _follows(one: Piece, other: Piece, segment: Ints) -> bool:
    """Whether an action follows another without a message between."""
    return bool(segment[one.last - 1] == segment[other.first])
