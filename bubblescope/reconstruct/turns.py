"""Forwards that follow each other without a message: where a pipeline turns back on a rank.

Between a stage and the next one on the same rank nothing is sent, so that messages do not part their
forwards. The operators do: the stretch shows the operators of both, one after the other, and each of
the two forwards stands alone elsewhere. That alone may be a stage with twice the layers of another; but
then no backward goes through half of it only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from bubblescope.model.columns import Ints, Times, distinct, pairs
from bubblescope.model.trace import Ops
from bubblescope.reconstruct.ranges import NONE

__all__ = ["turns"]

MOST = 64
"""Different stretches of a trace beyond which there is no pattern in them."""

Text = tuple[int, ...]
"""The names of the operators of a stretch, in order."""


def turns(forward: Ops, cuts: Times, partner: Ints, call: Ints) -> Times:
    """Host moments at which, between two cuts, the second of two forwards begins.

    Args:
        forward: operators of forwards.
        cuts: host moments that no forward reaches over, sorted.
        partner: for each backward operator its forward operator, or NONE.
        call: for each backward operator its backward call; NONE where it goes through a forward again.
    """
    linked = distinct(partner[partner != NONE])
    linked = linked[np.argsort(forward.start[linked], kind="stable")]
    stretch = np.searchsorted(cuts, forward.start[linked])
    edges = np.flatnonzero(np.diff(stretch, prepend=NONE, append=NONE))
    stretches = [linked[a:b] for a, b in pairwise(edges.tolist())]
    texts = [tuple(forward.name[rows].tolist()) for rows in stretches]
    parted = dict(_composed(set(texts)))
    if not parted:
        return np.empty(0, np.int64)
    halves = _halved(stretches, texts, parted, partner, call)
    moments = [
        int(forward.start[rows[parted[text]]]) - 1
        for rows, text in zip(stretches, texts, strict=True)
        if text in halves
    ]
    return np.array(moments, np.int64)


def _composed(texts: set[Text]) -> Iterator[tuple[Text, int]]:
    """(text, length of its first part) of every text that is two others, one after the other."""
    if len(texts) > MOST:
        return
    for text in texts:
        for first in texts:
            if len(first) < len(text) and text[: len(first)] == first and text[len(first) :] in texts:
                yield text, len(first)
                break


def _halved(
    stretches: list[Ints], texts: list[Text], parted: Mapping[Text, int], partner: Ints, call: Ints
) -> set[Text]:
    """The composed texts of which some backward call goes through one part only."""
    which = np.full(int(max(partner.max(), *(rows.max() for rows in stretches))) + 1, NONE)  # stretch of each operator
    side = np.zeros(len(which), np.int64)  # 1 in a first part, 2 in a second
    for i, (rows, text) in enumerate(zip(stretches, texts, strict=True)):
        if text in parted:
            which[rows] = i
            side[rows] = np.where(np.arange(len(rows)) < parted[text], 1, 2)
    known = np.flatnonzero((partner != NONE) & (call != NONE))
    known = known[which[partner[known]] != NONE]
    found = pairs(call[known], which[partner[known]])
    seen = np.zeros(len(found.first), np.int64)
    np.bitwise_or.at(seen, found.index, side[partner[known]])
    return {texts[i] for i in found.second[seen != 3].tolist()}
