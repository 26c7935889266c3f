"""Sends and receives that are part of an action: rings of context-parallel ranks, all-to-alls of experts.

NCCL's kernel for an all-to-all is that of sends and receives, so that a trace without arguments shows no difference.
The action does: a pipeline's messages are posted before its first kernel and behind its last one, and what is posted
between its kernels, in nearly all forwards, belongs to its layers. What goes through the same group inside an action
does so too, also where the last layer ends with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Ints
from bubblescope.reconstruct.actions import extent
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.purposes import USUAL, with_purposes
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units

__all__ = ["nameless", "rings"]


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
        elif sides and np.all(posted.inside[mine]):
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
    if named.sum() >= USUAL * np.sum(ranges.kind == Kind.F):
        other = plain & ~np.isin(sent.units.lane, sent.units.lane[~plain | named])
        found[other] = with_purposes(sent.take(other), ranges, sent.take(~other).posted).serving({"cp"})
    return found


class _Posted(NamedTuple):
    """Where messages were posted: in which action (row of its range), and before, between or behind its kernels."""

    ranges: Ranges
    action: Ints
    before: Bools
    between: Bools
    behind: Bools

    def enough(self, messages: Bools) -> bool:
        """Whether these are as many as a pipeline's rank has at least: one a forward."""
        return bool(messages.sum() >= USUAL * np.sum(self.ranges.kind == Kind.F))

    @property
    def trains(self) -> bool:
        """Whether some are backwards."""
        return bool(np.any((self.ranges.kind == Kind.B) | (self.ranges.kind == Kind.I)))

    @property
    def inside(self) -> Bools:
        """Which were posted in any action."""
        inside: Bools = self.action >= 0
        return inside

    def usual(self, messages: Bools) -> bool:
        """Whether nearly all forwards hold some of the messages, and, but for kernels between, all backwards too.

        Of a rank with several chunks only those count that have any: experts need not be in all layers.
        """
        rows, ranges = np.unique(self.action[messages]), self.ranges
        part = ranges.stage.astype(np.int64) << 32 | (ranges.chunk + 1)
        alike = np.isin(part, part[rows])
        forward = alike & (ranges.kind == Kind.F)
        backward = alike & ((ranges.kind == Kind.B) | (ranges.kind == Kind.I))
        asked = np.zeros(len(ranges), bool)
        asked[rows] = True
        kinds = (forward, backward) if self.trains and not np.all(self.between[messages]) else (forward,)
        return all(kind.any() and (asked & kind).sum() >= USUAL * kind.sum() for kind in kinds)


def _posted(sent: Talk, ranges: Ranges, work: Units) -> _Posted:
    first, last = extent(ranges, work)
    host = sent.units.host
    action = owners(ranges.start, ranges.end, host)
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
