"""Runs of kernels cut into actions: what recurs as a string is one, and what is made of such strings is several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblescope.model.columns import Ints
from bubblescope.reconstruct.directions import FORWARD
from bubblescope.reconstruct.segments import STRAY
from bubblescope.reconstruct.strings import MOST_DISTINCT, alike, equal_parts, grouped, parse

__all__ = ["APART", "Piece", "cut_up", "in_order", "parted", "share"]

_COMMON = 0.02
"""Share of the runs of a direction that a string makes up before others are taken to be made of it."""

APART = 0.34
"""Two strings that share less than this of their names do different things."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One action: units [first, last), its step, its direction, and which of the recurring strings it is."""

    first: int
    last: int
    step: int
    direction: int
    base: int


def parted(pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """The pieces of steps that hold backwards, and those of others, as of an evaluation, which balance nothing."""
    steps = {piece.step for piece in pieces if piece.direction != FORWARD}
    return [piece for piece in pieces if piece.step in steps], [piece for piece in pieces if piece.step not in steps]


def in_order(pieces: list[Piece]) -> list[Piece]:
    """The pieces in time order."""
    return sorted(pieces, key=lambda piece: piece.first)


def cut_up(
    edges: Ints, direction: Ints, name: Ints, step: Ints, *, mixed: int | None = None
) -> tuple[list[Piece], list[Ints]]:
    """Runs cut into what recurs in each direction, in order, and the strings that recur.

    Runs of the `mixed` direction may hold strings of two sorts, of which one never stands alone.
    """
    pieces, bases = list[Piece](), list[Ints]()
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    for way in np.unique(direction[edges[:-1]]).tolist():
        mine = [(a, b) for a, b in spans if direction[a] == way]
        group, leaders = grouped([name[a:b] for a, b in mine])
        if len(leaders) > MOST_DISTINCT:
            return [], []
        known, common, cut = _bases(leaders, np.bincount(group), split=way == mixed)
        for (a, b), g in zip(mine, group.tolist(), strict=True):
            at = a
            for end, base in cut[g] if len(cut[g]) == 1 else _parts(name[a:b], known, common) or cut[g]:
                last = a + end if len(cut[g]) > 1 else b
                pieces.append(Piece(at, min(last, b), int(step[a]), way, len(bases) + base))
                at = min(last, b)
        bases += known
    return in_order(pieces), bases


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
        if share(set(rest.tolist()), set(base.tolist())) < APART:
            whole = next((k for k in range(8, 1, -1) if (ends := equal_parts(rest, k)) and ends[0] > 0.3 * n), 1)
            return rest[: round(len(rest) / whole)] if 0.3 * n < len(rest) / whole else None
    return None


def share(a: set[int], b: set[int]) -> float:
    """The share of names that two strings have in common."""
    return len(a & b) / len(a | b)
