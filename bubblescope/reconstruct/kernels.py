"""Forwards and backwards from nothing but kernels and messages, where no label and no number stands.

The moments at which a rank posts its messages cut its kernels into segments; `directions` tells
forward from backward kernels. What recurs as a string of kernels is an action: strings that stand
together without a message between them are told apart by standing alone elsewhere, and a cut
inside a string that recurs whole is none. Where there are two strings of backward kernels for
every forward, they are input gradients and weight gradients.

What does not make sense as a pipeline gives no actions at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct.autograd import Blocks
from bubblescope.reconstruct.directions import BACKWARD, FORWARD, directions
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.recompute import with_recomputation
from bubblescope.reconstruct.segments import STRAY, absorbed, joined, mended
from bubblescope.reconstruct.strings import (
    MOST_DISTINCT,
    alike,
    border,
    equal_parts,
    grouped,
    parse,
)
from bubblescope.reconstruct.units import NO_HOST, Units, matching

__all__ = ["find_blocks"]

_COMMON = 0.02
"""Share of the runs of a direction that a string makes up before others are taken to be made of it."""

_SPLIT = 1.3
"""Backward pieces a forward, from which on backwards are taken to be split."""

_APART = 0.34
"""Two strings that share less than this of their names do different things."""

_MIXED = 0.2
"""A string does both where it has more than this share of the names of either."""

_BALANCED = 0.1
"""Share by which forwards and backwards may differ in number: a recording begins and ends anywhere."""

_WEIGHT_WORD, _INPUT_WORD = r"(?i).*(wgrad|grad_?(weight|bias))", r"(?i).*(dgrad|bwd|backward|grad_?input)"
_ALONE = 4
"""So many forwards at least make a pipeline without any backward."""

_SEVERAL = 2
"""Kernels with such a word that a whole stage has at least."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One action: units [first, last), its step, its direction, and which of the recurring strings it is."""

    first: int
    last: int
    step: int
    direction: int
    base: int


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
    step = np.searchsorted(fences, work.host, "right")
    segment: Ints = np.searchsorted(np.sort(np.concatenate((cuts, fences))), work.host, "right")
    took = work.end - work.start
    direction = directions(trace, work, segment, step, trains=trains)
    segment = mended(segment, direction, work.name, step)
    direction = with_recomputation(direction, work.name, segment, took)
    edges = joined(absorbed(direction, segment), direction, work.name, step)
    pieces, bases = _pieces(edges, direction, work.name, step)
    pieces, bases = _put_off(pieces, bases, matching(trace.names, _WEIGHT_WORD), matching(trace.names, _INPUT_WORD))
    pieces = _balanced(pieces, bases)
    kinds = _kinds(pieces, bases)
    return _assembled(pieces, kinds, work.host) if kinds is not None else Blocks.empty()


def _pieces(edges: Ints, direction: Ints, name: Ints, step: Ints) -> tuple[list[_Piece], list[Ints]]:
    """Runs cut into what recurs in each direction, in order."""
    pieces, bases = list[_Piece](), list[Ints]()
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    for way in (FORWARD, BACKWARD):
        mine = [(a, b) for a, b in spans if direction[a] == way]
        if not mine:
            continue
        group, leaders = grouped([name[a:b] for a, b in mine])
        if len(leaders) > MOST_DISTINCT:
            return [], []
        known, common, cut = _bases(leaders, np.bincount(group), split=way == BACKWARD)
        for (a, b), g in zip(mine, group.tolist(), strict=True):
            at = a
            for end, base in cut[g] if len(cut[g]) == 1 else _parts(name[a:b], known, common) or cut[g]:
                last = a + end if len(cut[g]) > 1 else b
                pieces.append(_Piece(at, min(last, b), int(step[a]), way, len(bases) + base))
                at = min(last, b)
        bases += known
    pieces.sort(key=lambda piece: piece.first)
    return _evened(pieces, name), bases


_Cut = list[tuple[int, int]]  # end and base of each part of a string


def _bases(leaders: list[Ints], count: Ints, *, split: bool) -> tuple[list[Ints], list[int], list[_Cut]]:
    """Strings that are no repetition of others, shortest first; the common ones of them; and how each string is made.

    With `split`, what a known string leaves of another is a string too, if the two share hardly a name:
    input gradients may stand alone, and weight gradients only behind them.
    """
    usual = float(np.average([len(leader) for leader in leaders], weights=count))
    known, cut, common = list[Ints](), [list[tuple[int, int]]() for _ in leaders], list[int]()
    for g in sorted(range(len(leaders)), key=lambda g: (len(leaders[g]), -count[g])):
        string = leaders[g]
        parts = _parts(string, known, common)
        if parts is None and split and (rest := _rest(string, [known[k] for k in common])) is not None:
            common.append(len(known))
            known.append(rest)
            parts = _parts(string, known, common)
        if parts is None or len(parts) < 2:
            if count[g] >= _COMMON * count.sum() and len(string) >= STRAY * usual:
                common.append(len(known))
            parts = [(len(string), len(known))]
            known.append(string)
        cut[g] = parts
    return known, common, cut


def _parts(string: Ints, known: list[Ints], common: list[int]) -> _Cut | None:
    """How a string is made of common ones, if it is."""
    parts = parse(string, [known[k] for k in common])
    return None if parts is None else [(end, common[k]) for end, k in parts]


def _rest(string: Ints, known: list[Ints]) -> Ints | None:
    """What a known string leaves of one that begins or ends with it."""
    for base in sorted(known, key=len, reverse=True):
        n = len(base)
        if len(string) < 1.3 * n:
            continue
        rest = string[n:] if alike(string[:n], base) else string[:-n] if alike(string[-n:], base) else None
        if rest is None:
            continue
        if _shared(set(rest.tolist()), set(base.tolist())) < _APART:
            whole = next((k for k in range(8, 1, -1) if (ends := equal_parts(rest, k)) and ends[0] > 0.3 * n), 1)
            return rest[: round(len(rest) / whole)] if 0.3 * n < len(rest) / whole else None
    return None


def _shared(a: set[int], b: set[int]) -> float:
    """The share of names that two strings have in common."""
    return len(a & b) / len(a | b)


def _evened(pieces: list[_Piece], name: Ints) -> list[_Piece]:
    """Pieces, with a step's only forward or backward cut up where the step has several of the other."""
    by_step: dict[int, tuple[list[_Piece], list[_Piece]]] = {}
    for piece in pieces:
        by_step.setdefault(piece.step, ([], []))[piece.direction].append(piece)
    result = list[_Piece]()
    for forwards, backwards in by_step.values():
        for mine, other in ((forwards, backwards), (backwards, forwards)):
            only = mine[0] if len(mine) == 1 else None
            ends = equal_parts(name[only.first : only.last], len(other)) if only is not None else None
            if only is None or ends is None:
                result += mine
                continue
            starts = [0, *ends[:-1]]
            result += [
                _Piece(only.first + a, only.first + b, only.step, only.direction, only.base)
                for a, b in zip(starts, ends, strict=True)
            ]
    return sorted(result, key=lambda piece: piece.first)


def _balanced(pieces: list[_Piece], bases: list[Ints]) -> list[_Piece]:
    """Pieces, with those of one direction cut up if that is how they come out as many as those of the other.

    Two backwards that always stand together look like one, and so do two forwards. Where backwards are split
    they are meant to be more.
    """
    few = int(sum(piece.direction == BACKWARD for piece in pieces) * 2 < len(pieces))
    mine = [piece for piece in pieces if piece.direction == few]
    count = round((len(pieces) - len(mine)) / max(1, len(mine)))
    if count < 2 or (few == FORWARD and _split_kinds(pieces, bases) is not None):
        return pieces
    ends = {base: equal_parts(bases[base], count) for base in {piece.base for piece in mine}}
    if None in ends.values():
        return pieces
    result = [piece for piece in pieces if piece.direction != few]
    for piece in mine:
        edges = np.linspace(piece.first, piece.last, count + 1).round().astype(int).tolist()
        result += [_Piece(a, b, piece.step, piece.direction, piece.base) for a, b in pairwise(edges)]
    return sorted(result, key=lambda piece: piece.first)


def _kinds(pieces: list[_Piece], bases: list[Ints]) -> list[Kind] | None:
    """The kind of each piece, or None where their numbers make no pipeline."""
    forwards = sum(piece.direction == FORWARD for piece in pieces)
    backwards = len(pieces) - forwards
    if forwards < (2 if backwards else _ALONE):
        return None
    of_base = dict.fromkeys(range(len(bases)), Kind.B)
    if backwards > _SPLIT * forwards:
        split = _split_kinds(pieces, bases)
        if split is None:
            return None
        of_base |= split
    kinds = [Kind.F if piece.direction == FORWARD else of_base[piece.base] for piece in pieces]
    count = [kinds.count(kind) for kind in (Kind.F, Kind.B, Kind.I, Kind.W)]
    made = count[Kind.B] + count[Kind.I]
    slack = max(1.0, _BALANCED * forwards) + _cut_steps(pieces)
    sensible = not backwards or (abs(made - forwards) <= slack and abs(count[Kind.I] - count[Kind.W]) <= slack)
    return kinds if sensible else None


def _put_off(pieces: list[_Piece], bases: list[Ints], weight: Bools, inputs: Bools) -> tuple[list[_Piece], list[Ints]]:
    """Pieces, with a backward cut where all its weight gradients come last: on the first stage nothing is sent between.

    `weight` and `inputs` say of each name whether its words tell that it makes such gradients.
    """
    result, bases, cuts = list[_Piece](), list(bases), dict[int, tuple[int, int]]()
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
        result.append(_Piece(piece.first, middle, piece.step, BACKWARD, first))
        result.append(_Piece(middle, piece.last, piece.step, BACKWARD, first + 1))
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


def _cut_steps(pieces: list[_Piece]) -> int:
    """By how much the first and last step differ from whole ones: a recording begins and ends anywhere."""
    steps = sorted({piece.step for piece in pieces})
    outer = {steps[0], steps[-1]} if len(steps) > 2 else set()
    ways = [piece.direction for piece in pieces if piece.step in outer]
    return abs(ways.count(FORWARD) - ways.count(BACKWARD))


def _split_kinds(pieces: list[_Piece], bases: list[Ints]) -> dict[int, Kind] | None:
    """I, W or B for each string of backward kernels: the first one to run is an I, what differs from it a W."""
    order = [piece.base for piece in pieces if piece.direction == BACKWARD]
    names = {base: set(bases[base].tolist()) for base in dict.fromkeys(order)}
    inputs = names[order[0]]
    others = [base for base in order if _shared(names[base], inputs) < _APART]
    if not others:
        return None
    weights = names[max(set(others), key=others.count)]
    result = dict[int, Kind]()
    for base, held in names.items():
        mine, theirs = len(held & inputs - weights) / len(held), len(held & weights - inputs) / len(held)
        result[base] = Kind.B if min(mine, theirs) > _MIXED else Kind.I if mine >= theirs else Kind.W
    return result


def _assembled(pieces: list[_Piece], kinds: list[Kind], host: Times) -> Blocks:
    """Blocks in time order; which backward belongs to which forward nothing tells."""
    first = np.array([piece.first for piece in pieces])
    last = np.array([piece.last for piece in pieces]) - 1
    return Blocks(host[first], host[last], np.array(kinds), np.full(len(pieces), NONE))
