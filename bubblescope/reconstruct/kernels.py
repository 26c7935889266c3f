"""Forwards and backwards from nothing but kernels and messages, where no label and no number stands.

The moments at which a rank posts its messages cut its kernels into segments; `directions` tells
forward from backward kernels. What recurs as a string of kernels is an action: strings that stand
together without a message between them are told apart by standing alone elsewhere, and a cut
inside a string that recurs whole is none. Where the words in names tell input gradients from weight
gradients, `gradients` cuts by these. Without such words they are told where there are two strings
of backward kernels for every forward.

What does not make sense as a pipeline gives no actions at all.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct import gradients
from bubblescope.reconstruct.autograd import Blocks
from bubblescope.reconstruct.balance import balanced, even
from bubblescope.reconstruct.bases import APART, Piece, cut_up, in_order, parted, share
from bubblescope.reconstruct.directions import BACKWARD, FORWARD, directions
from bubblescope.reconstruct.halves import in_turns
from bubblescope.reconstruct.once import once_a_step
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.recompute import layers_again, with_recomputation
from bubblescope.reconstruct.segments import absorbed, joined, mended
from bubblescope.reconstruct.strings import border, equal_parts
from bubblescope.reconstruct.units import NO_HOST, Units, matching

__all__ = ["find_blocks"]

_SPLIT = 1.3
"""Backward pieces a forward, from which on backwards are taken to be split."""

_MIXED = 0.2
"""A string does both where it has more than this share of the names of either."""

_ALONE = 4
"""So many forwards at least make a pipeline without any backward."""

_SEVERAL = 2
"""Kernels with such a word that a whole stage has at least."""


def find_blocks(trace: RankTrace, work: Units, cuts: Times, fences: Times, *, trains: bool) -> Blocks:
    """The forwards and backwards of a rank; none where its kernels make no pipeline.

    Args:
        trace: the rank's trace.
        work: units without the optimizer's, in host order.
        cuts: moments of pipeline messages, sorted.
        fences: moments at which steps or optimizers begin or end, sorted.
        trains: whether an optimizer ran.
    """
    work = work.take(work.host != NO_HOST)
    if len(work) < 2 or not len(cuts):
        return Blocks.empty()
    borders = np.sort(np.concatenate((cuts, fences)))
    step: Ints = np.searchsorted(fences, work.host, "right")
    segment: Ints = np.searchsorted(borders, work.host, "right")
    talking = np.searchsorted(fences, cuts, "right")
    kept = ~once_a_step(work.name, segment, step, work.end - work.start, talking)
    work, step, segment = work.take(kept), step[kept], segment[kept]
    if not len(work):  # all of it came once a step
        return Blocks.empty()
    took = work.end - work.start
    direction = directions(trace, work, segment, step, trains=trains)
    sent_between, segment = segment, mended(segment, direction, work.name, step)
    direction = layers_again(direction, segment)
    told = gradients.sorted_out(trace.names, direction, work.name, segment)
    if told is not None:
        told = with_recomputation(told, work.name, segment, step, took)
        found = gradients.pieces(told, work.name, segment, step)
        return _assembled(*found, work.host) if found is not None else Blocks.empty()
    direction = with_recomputation(direction, work.name, segment, step, took)
    edges = joined(absorbed(direction, segment), direction, work.name, step)
    pieces, bases = cut_up(edges, direction, work.name, step, mixed=BACKWARD)
    pieces = _evened(pieces, work.name)
    weight, inputs = (matching(trace.names, word) for word in (gradients.WEIGHT_WORD, gradients.INPUT_WORD))
    pieces, bases = _put_off(pieces, bases, weight, inputs)
    pieces = _balanced(pieces, bases)
    kinds = _kinds(pieces, bases, work.name, sent_between)
    return _assembled(pieces, kinds, work.host) if kinds is not None else Blocks.empty()


def _evened(pieces: list[Piece], name: Ints) -> list[Piece]:
    """Pieces, with a step's only forward or backward cut up where the step has several of the other."""
    by_step: dict[int, tuple[list[Piece], list[Piece]]] = {}
    for piece in pieces:
        by_step.setdefault(piece.step, ([], []))[piece.direction].append(piece)
    result = list[Piece]()
    for forwards, backwards in by_step.values():
        for mine, other in ((forwards, backwards), (backwards, forwards)):
            only = mine[0] if len(mine) == 1 else None
            ends = equal_parts(name[only.first : only.last], len(other)) if only is not None else None
            if only is None or ends is None:
                result += mine
                continue
            starts = [0, *ends[:-1]]
            result += [
                Piece(only.first + a, only.first + b, only.step, only.direction, only.base)
                for a, b in zip(starts, ends, strict=True)
            ]
    return in_order(result)


def _balanced(pieces: list[Piece], bases: list[Ints]) -> list[Piece]:
    """Pieces, with backwards cut up if that is how they come out as many as the forwards in more steps.

    Two backwards that always stand together look like one. Forwards are left: where there are more backwards,
    these are taken to be split, and two layers of one forward look like two forwards, too.
    """
    training, others = parted(pieces)
    mine = [piece for piece in training if piece.direction == BACKWARD]
    forwards = [piece for piece in training if piece.direction == FORWARD]
    count = round(len(forwards) / max(1, len(mine)))
    if count < 2:
        return pieces
    ends = {base: equal_parts(bases[base], count) for base in {piece.base for piece in mine}}
    if None in ends.values():
        return pieces
    result = forwards + others
    for piece in mine:
        edges = np.linspace(piece.first, piece.last, count + 1).round().astype(int).tolist()
        result += [Piece(a, b, piece.step, piece.direction, piece.base) for a, b in pairwise(edges)]
    return in_order(result) if even(result, _called(result, {})) > even(pieces, _called(pieces, {})) else pieces


def _kinds(pieces: list[Piece], bases: list[Ints], name: Ints, segment: Ints) -> list[Kind] | None:
    """The kind of each piece, or None where their numbers make no pipeline.

    Whether backwards are split is told by what leaves more steps even, and else by how many there are. Where no string
    differs from the others their turn tells the halves.
    """
    training, others = parted(pieces)
    forwards = sum(piece.direction == FORWARD for piece in training or others)
    if forwards < (2 if training else _ALONE):
        return None
    if not training:
        return _called(pieces, {})
    of_base = _split_kinds(pieces, bases)
    split = {piece: of_base[piece.base] for piece in training if piece.base in of_base}
    options = [{}, split or in_turns(training, name, segment)]
    if len(training) - forwards > _SPLIT * forwards:
        options.reverse()
    best = max(options, key=lambda kinds: even(training, _called(training, kinds)))
    return _called(pieces, best) if balanced(training, _called(training, best)) else None


def _called(pieces: list[Piece], kinds: dict[Piece, Kind]) -> list[Kind]:
    """The kind of each piece; a backward is whole where nothing tells that it is a half."""
    return [Kind.F if piece.direction == FORWARD else kinds.get(piece, Kind.B) for piece in pieces]


def _put_off(pieces: list[Piece], bases: list[Ints], weight: Bools, inputs: Bools) -> tuple[list[Piece], list[Ints]]:
    """Pieces, with a backward cut where all its weight gradients come last: on the first stage nothing is sent between.

    `weight` and `inputs` say of each name whether its words tell that it makes such gradients.
    """
    result, bases, cuts = list[Piece](), list(bases), dict[int, tuple[int, int]]()
    forwards = [bases[base] for base in {piece.base for piece in pieces if piece.direction == FORWARD}]
    forward = np.unique(np.concatenate(forwards)) if forwards else np.empty(0, np.int64)
    uniform = not any(border(string) for string in forwards)
    for base in {piece.base for piece in pieces if piece.direction == BACKWARD}:
        string = bases[base]
        again = int(np.argmin(np.isin(string, forward)))  # what is computed again says nothing
        at = _by_words(string, weight, inputs) or (again + border(string[again:]) if uniform else 0)
        if at > again:
            cuts[base] = at, len(bases)
            bases += [string[:at], string[at:]]
    for piece in pieces:
        if piece.base not in cuts or piece.last - piece.first != len(bases[piece.base]):
            result.append(piece)
            continue
        at, first = cuts[piece.base]
        middle = piece.first + at
        result.append(Piece(piece.first, middle, piece.step, BACKWARD, first))
        result.append(Piece(middle, piece.last, piece.step, BACKWARD, first + 1))
    return result, bases


def _by_words(string: Ints, weight: Bools, inputs: Bools) -> int:
    """Where by their words all weight gradients begin, or 0; a backward that is not split takes turns."""
    late = np.flatnonzero(weight[string])
    if len(late) < _SEVERAL or np.sum(inputs[string[: late[0]]]) < _SEVERAL or inputs[string[late[0] :]].any():
        return 0
    at = int(late[0])
    while string[at - 1] in string[at:] and string[at - 1] not in string[: at - 1]:
        at -= 1
    return at


def _split_kinds(pieces: list[Piece], bases: list[Ints]) -> dict[int, Kind]:
    """I, W or B for each string of backward kernels: the first one to run is an I, what differs from it a W.

    Nothing where none differs.
    """
    order = [piece.base for piece in pieces if piece.direction == BACKWARD]
    names = {base: set(bases[base].tolist()) for base in dict.fromkeys(order)}
    inputs = names[order[0]]
    others = [base for base in order if share(names[base], inputs) < APART]
    if not others:
        return {}
    weights = names[max(set(others), key=others.count)]
    result = dict[int, Kind]()
    for base, held in names.items():
        mine, theirs = len(held & inputs - weights) / len(held), len(held & weights - inputs) / len(held)
        result[base] = Kind.B if min(mine, theirs) > _MIXED else Kind.I if mine >= theirs else Kind.W
    return result


def _assembled(pieces: list[Piece], kinds: list[Kind], host: Times) -> Blocks:
    """Blocks in time order; which backward belongs to which forward nothing tells."""
    first = np.array([piece.first for piece in pieces])
    last = np.array([piece.last for piece in pieces]) - 1
    return Blocks(host[first], host[last], np.array(kinds), np.full(len(pieces), NONE))
