"""Sends and receives that are part of an action: rings of context-parallel ranks, all-to-alls of experts.

NCCL's kernel for an all-to-all is that of sends and receives, so that a trace without arguments shows no difference.
The action does: a pipeline's messages are posted before its first kernel and behind its last one, and what is posted
between its kernels, in nearly all forwards, belongs to its layers. What goes through the same group inside an action
does so too, also where the last layer ends with it.

Where no label tells the actions, they are found between messages, so that what lies inside them shows only when they
are found without it: a ring's messages then stand between the kernels of all of them, as many in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.spans import Spans
from bubblescope.reconstruct.actions import extent
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.purposes import USUAL, asked, with_purposes
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units

__all__ = ["amid", "found_without", "nameless", "rings"]

_FORWARD, _BACKWARD = (Kind.F,), (Kind.B, Kind.I)
_COVERED = 0.5
"""Share of a message's time in which kernels run, from which on it passes under them rather than between actions."""

_MOST = 3
"""Messages an action that a pipeline's rank stays below: it has two, and those of evaluations that nothing numbers."""


def rings(sent: Talk, ranges: Ranges, work: Units) -> tuple[Bools, Bools]:
    """Which sends and receives pass around inside the actions, rather than between stages, and which may do either.

    Args:
        sent: sends and receives, in host order.
        ranges: host ranges of actions that somebody named, in time order.
        work: what computes, in host order.
    """
    posted = _posted(sent, ranges, work)
    layered, lone, around, none = np.zeros((4, len(sent.row)), bool)
    for mine in _groups(sent):
        sides = [side for side in (posted.before, posted.behind) if posted.usual(mine & side)]
        if posted.usual(mine & posted.between):
            layered |= mine
        elif any(np.all(side[mine]) for side in sides):
            lone |= mine  # one call an action, at its beginning or its end
        elif posted.usual(mine & posted.inside) and np.all(posted.inside[mine]):
            around |= mine  # or both, as an inner stage receives and sends, where labels hold its messages
    if posted.enough(~posted.inside) and not np.any(posted.inside & ~(layered | lone | around)):
        lone |= around
    sure = posted.inside & layered
    if posted.enough(~(sure | lone)):
        return (sure | lone, none) if posted.trains else (sure, lone)
    # Where nothing else would be left as the pipeline's messages, some of these may be. A first stage alone has none
    # before its forwards or behind its backwards.
    if np.any(layered & posted.before):
        sure &= posted.between
    return sure | (lone & posted.trains & bool(np.all(ranges.stage == 0))), none


def nameless(sent: Talk, ranges: Ranges, said: Labels) -> Bools:
    """The same without labels of actions: messages of no name in all actions, where enough others have one.

    Those tell neither peer nor direction, and no range (`said`) names them. Their stream holds nothing else, and they
    do what a stage's own computation does.
    """
    named = np.array([max(call.src, call.dst) >= 0 for call in sent.calls], bool)[sent.row]
    named |= owners(said.start, said.end, sent.units.host) >= 0
    plain = np.array([call.op == "send_recv" for call in sent.calls], bool)[sent.row]
    found = np.zeros(len(sent.row), bool)
    if named.sum() >= _fewest(ranges):
        other = plain & ~np.isin(sent.units.lane, sent.units.lane[~plain | named])
        found[other] = with_purposes(sent.take(other), ranges, sent.take(~other).posted).serving({"cp"})
    return found


def found_without(find: Callable[[Talk], Ranges], sent: Talk, work: Units) -> Ranges:
    """Actions that are found between messages, without those that so prove to be part of them.

    Args:
        find: finds the actions between some of the messages.
        sent: sends and receives, in host order.
        work: what computes, in host order.
    """
    under = [mine for mine in _groups(sent) if _under(sent.units.take(mine), work)]
    every = [np.any(under, axis=0)] if len(under) > 1 else []
    for held in (*every, *under):
        if USUAL * np.sum(~held) < _MOST * held.sum() and not held.all():  # else there are too few, one an action
            ranges = find(sent.take(~held))
            if np.array_equal(amid(sent, ranges, work), held):
                return ranges
    return find(sent)


def amid(sent: Talk, ranges: Ranges, work: Units) -> Bools:
    """Which sends and receives pass around under the kernels of actions that nobody named.

    Those of a group, if they stand between the kernels of nearly all forwards or of nearly all backwards, behind those
    of the others at the latest, and are as many in all actions of a kind. The others are as many as a pipeline has:
    were they more, several actions would look like one that has what they send inside.
    """
    found = np.zeros(len(sent.row), bool)
    for mine in _groups(sent) if len(ranges) else ():
        posted = _posted(sent, ranges, work, sent.take(~mine).posted)
        inside = mine & posted.inside
        asked = (_FORWARD, _BACKWARD) if posted.trains else (_FORWARD,)
        layered = any(posted.common(inside & posted.between, kinds) for kinds in asked)
        everywhere = inside.sum() >= USUAL * mine.sum() and all(posted.common(inside, kinds) for kinds in asked)
        if layered and everywhere and posted.regular(inside) and _under(sent.units.take(mine), work):
            found |= mine
    several = len(ranges) - int(np.sum(ranges.kind == Kind.W))
    fits = _fewest(ranges) <= np.sum(~found) < _MOST * several
    return found if fits else np.zeros_like(found)


def _fewest(ranges: Ranges) -> float:
    """Messages that a pipeline's rank has at least: one a forward."""
    return USUAL * float(np.sum(ranges.kind == Kind.F))


def _under(units: Units, work: Units) -> bool:
    """Whether messages pass under kernels: those of a pipeline also wait, or are waited for, while none runs."""
    covered = Spans.of(work.start, work.end).within(units.start, units.end)
    return bool(np.mean(covered >= _COVERED * (units.end - units.start)) >= USUAL)


class _Posted(NamedTuple):
    """Where messages were posted: in which action (row of its range), and before, between or behind its kernels."""

    ranges: Ranges
    action: Ints
    before: Bools
    between: Bools
    behind: Bools

    def enough(self, messages: Bools) -> bool:
        """Whether these are as many as a pipeline's rank has at least: one a forward."""
        return bool(messages.sum() >= _fewest(self.ranges))

    @property
    def trains(self) -> bool:
        """Whether some are backwards."""
        return bool(np.any(np.isin(self.ranges.kind, _BACKWARD)))

    @property
    def inside(self) -> Bools:
        """Which were posted in any action."""
        inside: Bools = self.action >= 0
        return inside

    def usual(self, messages: Bools) -> bool:
        """Whether nearly all forwards hold some of the messages, and, but for kernels between, all backwards too."""
        asked = (_FORWARD, _BACKWARD) if self.trains and not np.all(self.between[messages]) else (_FORWARD,)
        return all(self.common(messages, kinds) for kinds in asked)

    def common(self, messages: Bools, kinds: tuple[Kind, ...]) -> bool:
        """Whether nearly all actions of these kinds hold some of the messages.

        Of a rank with several chunks only those count that have any: experts need not be in all layers.
        """
        rows, ranges = np.unique(self.action[messages]), self.ranges
        part = ranges.stage.astype(np.int64) << 32 | (ranges.chunk + 1)
        mine = np.isin(part, part[rows]) & np.isin(ranges.kind, kinds)
        return bool(mine.any() and mine[rows].sum() >= USUAL * mine.sum())

    def regular(self, messages: Bools) -> bool:
        """Whether nearly all actions that hold some of the messages hold as many as the others of their kind."""
        rows, counts = np.unique(self.action[messages], return_counts=True)
        kind = self.ranges.kind[rows]
        alike = sum(np.bincount(counts[kind == each]).max() for each in np.unique(kind).tolist())
        return bool(alike >= USUAL * len(rows))


def _posted(sent: Talk, ranges: Ranges, work: Units, borders: Times | None = None) -> _Posted:
    """Where messages were posted; with `borders`, what follows an action up to the next of these is its own, too."""
    first, last = extent(ranges, work)
    host = sent.units.host
    action = owners(ranges.start, ranges.end, host) if borders is None else asked(host, ranges, borders)
    inside = (action >= 0) & (host != NO_HOST)
    before, behind = inside & (host <= first[action]), inside & (host >= last[action])
    return _Posted(ranges, np.where(inside, action, -1), before, inside & ~before & ~behind, behind)


def _groups(sent: Talk) -> Iterator[Bools]:
    """Which messages go through one group; those that name none are of one if they ran on one stream."""
    number: dict[tuple[str, tuple[int, ...]], int] = {("", ()): 0}
    group = np.array([number.setdefault((call.group, call.ranks), len(number)) for call in sent.calls], np.int64)
    of = group[sent.row]
    key = of << 32 | np.where(of == 0, sent.units.lane + 1, 0)
    for each in np.unique(key).tolist():
        yield key == each
