"""Input and weight gradients whose kernels have names that tell them apart, so that nothing else need be known.

Where backwards are split and words tell the two halves, kernels are cut by what they do and by messages.
What is left are runs of one kind: two forwards where a pipeline turns back, several weight gradients that
were put off. These are cut by the string that stands alone elsewhere, else so that all kinds come out as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.reconstruct.balance import balanced, even, whole_steps
from bubblescope.reconstruct.bases import Piece, cut_up, in_order, parted
from bubblescope.reconstruct.directions import BACKWARD, FORWARD, filled
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.recompute import runs
from bubblescope.reconstruct.segments import absorbed, joined
from bubblescope.reconstruct.strings import TOLERANCE, equal_parts
from bubblescope.reconstruct.units import matching

__all__ = ["INPUT_WORD", "WEIGHT_WORD", "pieces", "sorted_out"]

WEIGHT_WORD, INPUT_WORD = r"(?i).*(wgrad|grad_?(weight|bias))", r"(?i).*(dgrad|bwd|backward|grad_?input)"
"""What the names of kernels of weight gradients hold, and of input gradients."""

_AGAIN_WORD = r"(?i).*(fwd|fprop|forward)"
"""A forward that is run again comes before the input gradients."""

_ENOUGH = 0.02
"""Share of the backward's kernels that must carry a word of either half."""

_APART = 0.1
"""Share of the backward's kernels that stand with their own half alone, from which on backwards are split."""

_PART = 0.6
"""Below this share of the shortest half that stands alone, kernels of a half are of one layer only."""

_CUT = 0.1
"""Share by which kinds may differ in number: a recording begins and ends anywhere."""

_INPUT, _WEIGHT, _WHOLE = 1, 2, 3
_KINDS = {FORWARD: Kind.F, _INPUT: Kind.I, _WEIGHT: Kind.W, _WHOLE: Kind.B}


def sorted_out(names: Sequence[str], direction: Ints, name: Ints, segment: Ints) -> Ints | None:
    """What each unit is of: 0 a forward, 1 an input gradient, 2 a weight gradient, 3 a backward that is not split.

    None where words do not tell the halves of a backward apart, or these never stand apart.

    Args:
        names: the table of names.
        direction: FORWARD or BACKWARD for each unit.
        name: the row of each unit's name.
        segment: rising numbers of the stretches that messages leave.
    """
    back = direction == BACKWARD
    weight = matching(names, WEIGHT_WORD)
    other = ~weight & (matching(names, INPUT_WORD) | matching(names, _AGAIN_WORD))
    told = np.where(weight, BACKWARD, np.where(other, FORWARD, NONE))[name[back]]
    if not len(told) or min(np.mean(told == BACKWARD), np.mean(told == FORWARD)) < _ENOUGH:
        return None
    stretch = np.cumsum(np.diff(_numbered(direction, segment)[back], prepend=-1) != 0)
    halves = filled(told, name[back], stretch)
    result = direction.copy()
    result[back] = np.where(halves == FORWARD, _INPUT, _WEIGHT)
    return _with_wholes(result, direction, segment)


def _numbered(direction: Ints, segment: Ints) -> Ints:
    """The number of each unit's run."""
    edges = runs(direction, segment)
    return np.repeat(np.arange(len(edges) - 1), np.diff(edges))


def _with_wholes(told: Ints, direction: Ints, segment: Ints) -> Ints | None:
    """The same, with backwards in which the halves take turns layer by layer as wholes; None where all do."""
    outer, inner = runs(direction, segment), runs(told, segment)
    first, length = inner[:-1], np.diff(inner)
    of = np.searchsorted(outer, first, "right") - 1
    parts = np.bincount(of, minlength=len(outer) - 1)
    backward = told[first] != FORWARD
    alone = backward & (parts[of] == 1)
    if length[alone].sum() < _APART * length[backward].sum():
        return None
    least = {half: np.min(length[alone & (told[first] == half)], initial=len(told)) for half in (_INPUT, _WEIGHT)}
    few = np.zeros(len(outer) - 1, bool)
    for half, shortest in least.items():
        if shortest < len(told):
            few[of[(told[first] == half) & (length < _PART * shortest)]] = True
    whole = few & (parts > 2)
    result = told.copy()
    result[np.repeat(whole, np.diff(outer))] = _WHOLE
    return result


def pieces(told: Ints, name: Ints, segment: Ints, step: Ints) -> tuple[list[Piece], list[Kind]] | None:
    """The actions and their kinds; None where these make no pipeline."""
    told = told.copy()
    found, _ = cut_up(joined(absorbed(told, segment), told, name, step), told, name, step)
    training, others = parted(found)
    cut = _as_many(training, name)
    training = cut if even(cut, _kinds(cut)) > even(training, _kinds(training)) else training
    found = in_order(training + others)
    return (found, _kinds(found)) if _sensible(training) else None


def _kinds(found: list[Piece]) -> list[Kind]:
    """The kind of each piece."""
    return [_KINDS[piece.direction] for piece in found]


def _as_many(found: list[Piece], name: Ints) -> list[Piece]:
    """Pieces, with those of a kind that has fewer than another cut up if that is how they come out as many.

    What always stands together with its like looks like one.
    """
    count = np.bincount([piece.direction for piece in found], minlength=4)
    most = int(max(count[FORWARD], count[_INPUT] + count[_WHOLE], count[_WEIGHT] + count[_WHOLE]))
    result = list[Piece]()
    for kind in range(4):
        mine = [piece for piece in found if piece.direction == kind]
        wanted = most - int(count[_WHOLE]) if kind in {_INPUT, _WEIGHT} else most
        short = kind != _WHOLE and 0 < len(mine) < wanted
        result += (_cut_to(mine, name, wanted) if short else None) or mine
    return result


def _cut_to(mine: list[Piece], name: Ints, wanted: int) -> list[Piece] | None:
    """Pieces of one kind cut into parts that are alike and of about the same length, as many as wanted; or None."""
    length = sum(piece.last - piece.first for piece in mine) / wanted
    result = list[Piece]()
    for piece in mine:
        n = piece.last - piece.first
        ends = [n] if n < 1.5 * length else equal_parts(name[piece.first : piece.last], round(n / length))
        if ends is None or abs(n / len(ends) - length) > max(1, 2 * TOLERANCE * length):
            return None
        result += [
            Piece(piece.first + a, piece.first + b, piece.step, piece.direction, piece.base)
            for a, b in pairwise([0, *ends])
        ]
    return result if abs(len(result) - wanted) <= max(1.0, _CUT * wanted) else None


def _sensible(training: list[Piece]) -> bool:
    """Whether the numbers of kinds make a pipeline: each forward has its backward and that its weight gradient.

    In a step that has as many of all, none comes before what it needs.
    """
    kinds = _kinds(training)
    if kinds.count(Kind.F) < 2 or not balanced(training, kinds):
        return False
    steps: dict[int, list[Kind]] = {}
    for piece, kind in sorted(zip(training, kinds, strict=True), key=lambda pair: pair[0].first):
        steps.setdefault(piece.step, []).append(kind)
    return all(map(_in_order, whole_steps(list(steps.values()))))


def _in_order(kinds: list[Kind]) -> bool:
    """Whether nothing of a step runs before what it needs, or the recording does not hold the step whole."""
    have = {kind: np.cumsum([k == kind for k in kinds]) for kind in Kind}
    begun, back, done = have[Kind.F], have[Kind.I] + have[Kind.B], have[Kind.W] + have[Kind.B]
    if not begun[-1] == back[-1] == done[-1]:
        return True
    return bool(np.all(back <= begun) and np.all(done <= back))
