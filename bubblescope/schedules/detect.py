"""Which schedule is it? Recovered orders against every schedule's order for the same p, m, v.

The likeness of two orders of one rank is 2 L / (a + b): L the longest run of actions that both
have in the same order, a and b their lengths. A schedule's confidence is the mean over ranks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from bubblescope.model.actions import Order
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.registry import FAMILIES

__all__ = ["Difference", "Match", "Verdict", "detect", "differences"]

FLOOR = 0.85
"""A best below this fits nothing: a few swapped or missing actions stay above it, another schedule does not."""

Found = Mapping[int, Order]
"""Recovered orders by position in the pipeline; positions nobody recorded are absent."""


@dataclass(frozen=True, slots=True)
class Match:
    """A schedule's best order for the shape, and how well it fits."""

    family: Family
    expected: Found
    confidence: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an order leaves the expected one; a side without an action there is None."""

    position: int
    expected: str | None
    found: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: `best` is None where nothing fits or different orders tie, `reason` says so."""

    best: Match | None
    also: tuple[str, ...]
    runner_up: Match | None
    reason: str


def detect(found: Found, shape: Shape, families: Sequence[Family] = FAMILIES) -> Verdict:
    """Name the schedule of the recovered orders of a pipeline of `shape`."""
    matches = [m for family in families if family.problem(shape) is None for m in _matches(family, shape, found)]
    matches.sort(key=lambda m: -m.confidence)  # stable: equal ones keep the order of the registry
    if not matches:
        return Verdict(None, (), None, f"no known schedule has p={shape.p} m={shape.m} v={shape.v}")
    best = matches[0]
    rest = [m for m in matches if m.family is not best.family]
    also = tuple(dict.fromkeys(m.family.name for m in rest if m.expected == best.expected))
    others = [m for m in rest if m.expected != best.expected]
    runner_up = others[0] if others else None
    if best.confidence < FLOOR:
        reason = f"nothing fits: the nearest, {best.family.name}, has a likeness of {best.confidence:.2f}"
        return Verdict(None, (), best, reason)
    if runner_up is not None and runner_up.confidence >= best.confidence:
        return Verdict(None, (), runner_up, f"{best.family.name} and {runner_up.family.name} fit equally well")
    return Verdict(best, also, runner_up, f"the order of {best.family.name}")


def _matches(family: Family, shape: Shape, found: Found) -> list[Match]:
    """The variants of a schedule that fit best, usual first; one rank sifts them, as there can be thousands."""
    scout = min(found)
    scored = []
    for order_of in family.variants(shape):
        order = order_of(scout)
        score = _likeness(found[scout], order)
        if score == 1 and all(found[rank] == order_of(rank) for rank in found):
            return [Match(family, found, 1.0)]
        scored.append((score, order_of))
        if 2 * min(len(found[scout]), len(order)) < FLOOR * (len(found[scout]) + len(order)):
            break  # orders of this shape are equally long, so that none of the others can fit either
    top = max(score for score, _ in scored)
    sifted = [{rank: order_of(rank) for rank in found} for score, order_of in scored if score == top]
    matches = [Match(family, e, sum(_likeness(found[r], e[r]) for r in found) / len(found)) for e in sifted]
    best = max(match.confidence for match in matches)
    return [match for match in matches if match.confidence == best]


def _likeness(found: Order, expected: Order) -> float:
    """Actions do not repeat, so the longest common run is a longest increasing one of positions."""
    if found == expected:
        return 1.0
    place = {action: i for i, action in enumerate(expected)}
    tails: list[int] = []
    for at in (place[action] for action in found if action in place):
        k = bisect_left(tails, at)
        tails[k : k + 1] = [at]
    return 2 * len(tails) / (len(found) + len(expected))


def differences(found: Order, expected: Order) -> list[Difference]:
    """Every place where `found` leaves `expected`: what is missing, what is added, what stands instead."""
    result = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, expected, found, autojunk=False).get_opcodes():
        if tag != "equal":
            for k in range(max(i2 - i1, j2 - j1)):
                want = str(expected[i1 + k]) if i1 + k < i2 else None
                have = str(found[j1 + k]) if j1 + k < j2 else None
                result.append(Difference(j1 + k, want, have))
    return result
