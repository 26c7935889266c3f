"""Which schedule is it? Recovered orders against every schedule's order for the same p, m, v.

The likeness of two orders of one rank is 2 L / (a + b): L the longest run of actions that both
have in the same order, a and b their lengths. A schedule's confidence is the mean over ranks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import EVEN, Costs, Family, Shape, Variant
from bubblescope.schedules.registry import FAMILIES

__all__ = ["Difference", "Match", "Verdict", "detect", "differences"]

FLOOR = 0.85
"""A best below this fits nothing: a few swapped or missing actions stay above it, another schedule does not."""

STRAY = 0.03
"""A kind with no larger share of the actions does not decide which schedules are compared."""

Found = Mapping[int, Order]
"""Recovered orders by position in the pipeline; positions nobody recorded are absent."""


@dataclass(frozen=True, slots=True)
class Match:
    """A schedule's best order for the shape, and how well it fits."""

    family: Family
    variant: Variant
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


def detect(found: Found, shape: Shape, families: Sequence[Family] = FAMILIES, costs: Costs = EVEN) -> Verdict:
    """Name the schedule of the recovered orders of a pipeline of `shape`; `costs` are what a searched order is for.

    A backward that two calls run one after the other, whatever for, may look like an I and its W: if nothing
    fits, those that follow each other directly are taken for one, and the order must be right but for that.
    """
    verdict = _named(found, shape, families, costs)
    whole = {rank: _joined(order) for rank, order in found.items()}
    exact = verdict.best is not None and verdict.best.confidence == 1
    if exact or whole == found:
        return verdict
    again = _named(whole, shape, families, costs)
    return verdict if again.best is None or again.best.confidence < 1 else again


def _joined(order: Order, shows: Callable[[Action], bool] = lambda _: True) -> Order:
    """The order with every I that its own W follows directly as one backward, if that one shows."""
    follows = (b for a, b in pairwise(order) if a.kind == Kind.I and b == a._replace(kind=Kind.W))
    whole = {weight: whole for weight in follows if shows(whole := weight._replace(kind=Kind.B))}
    begun = {weight._replace(kind=Kind.I) for weight in whole}
    return tuple(whole.get(a, a) for a in order if a not in begun) if whole else order


def _named(found: Found, shape: Shape, families: Sequence[Family], costs: Costs) -> Verdict:
    kinds = _usual_kinds(found)
    likely = [f for f in families if f.problem(shape) is None and _has(f, kinds) and _holds(f, shape, found)]
    matches = [m for family in likely for m in _matches(family, shape, costs, found)]
    matches.sort(key=lambda m: -m.confidence)  # stable: equal ones keep the order of the registry
    if not matches:
        if not any(found.values()):
            return Verdict(None, (), None, "there is no action to compare")
        said = ", ".join(kind.name for kind in sorted(kinds))
        reason = f"no known schedule has p={shape.p} m={shape.m} v={shape.v} and actions of {said}"
        return Verdict(None, (), None, reason)
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
    note = f", {best.variant.note}" if best.variant.note else ""
    return Verdict(best, also, runner_up, f"the order of {best.family.name}{note}")


def _usual_kinds(found: Found) -> set[Kind]:
    """The kinds of the actions, less those of which there are so few that they may be a mistake."""
    counts = Counter(action.kind for order in found.values() for action in order)
    return {kind for kind, count in counts.items() if count > STRAY * counts.total()}


def _has(family: Family, kinds: set[Kind]) -> bool:
    """Whether a schedule may show these kinds of actions; where backwards split, some may have stayed in one."""
    split = {Kind.I, Kind.W}
    whole = kinds - {Kind.B} if split <= family.kinds and kinds & split else kinds
    return whole <= family.kinds and (kinds == {Kind.F}) == (family.kinds == {Kind.F})


def _holds(family: Family, shape: Shape, found: Found) -> bool:
    """Whether most actions ran where a schedule would have them: a glance that saves making its orders."""
    placed = family.placement(shape)
    here = sum(action.stage in placed[rank] for rank, order in found.items() for action in order)
    return here > sum(map(len, found.values())) / 2


def _matches(family: Family, shape: Shape, costs: Costs, found: Found) -> list[Match]:
    """The variants of a schedule that fit best, usual first; one rank sifts them, as there can be thousands."""
    scout = max(found, key=lambda rank: (len(found[rank]), -rank))  # of the whole ones the first
    scored = []
    for variant in family.variants(shape, costs):
        order = _expected(variant, scout, found)
        score = _likeness(found[scout], order)
        if score == 1 and all(found[rank] == _expected(variant, rank, found) for rank in found):
            return [Match(family, variant, found, 1.0)]
        scored.append((score, variant))
        if 2 * min(len(found[scout]), len(order)) < FLOOR * (len(found[scout]) + len(order)):
            break  # orders of this shape are equally long, so that none of the others can fit either
    top = max(score for score, _ in scored)
    sifted = [(v, {rank: _expected(v, rank, found) for rank in found}) for score, v in scored if score == top]
    matches = [Match(family, v, e, sum(_likeness(found[r], e[r]) for r in found) / len(found)) for v, e in sifted]
    best = max(match.confidence for match in matches)
    return [match for match in matches if match.confidence == best]


def _expected(variant: Variant, rank: int, found: Found) -> Order:
    """The order of a rank as a trace can show it.

    Where no input gradient of stage 0 was seen there is none, as it has no input to derive by: its W is all
    of its backward. And an I that its own W follows directly may show as one backward beside split ones.
    """
    order, seen = variant.order(rank), frozenset(found[rank])
    split = any(a.kind == Kind.W for each in found.values() for a in each)
    if not any(a.stage == 0 and a.kind == Kind.I for a in seen):
        order = tuple(_as_seen(a, seen) if split and not a.stage else a for a in order if a.stage or a.kind != Kind.I)
    return _joined(order, lambda whole: whole in seen) if split else order


def _as_seen(action: Action, seen: Collection[Action]) -> Action:
    """A weight gradient, or the whole backward that was seen in its place."""
    whole = action._replace(kind=Kind.B)
    return whole if action.kind == Kind.W and whole in seen and action not in seen else action


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
