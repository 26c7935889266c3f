"""When the bytes of a message began to move: once both halves were posted, as far as the traces tell it.

Without kernels (gloo) a receive ends when its rank asks whether it is there. Of one that was posted before the
rank was free nobody tells when it arrived: those that made the rank wait would tell, but only these took long.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.ranks import RankView
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.timeline import Messages

__all__ = ["begun", "told"]

SLACK = 5e-6
"""Share of a step by which a rank may seem to ask before it was free: so exact is a time in a float of seconds."""


def begun(view: RankView, rows: Ints, free: Times) -> tuple[Times, Bools]:
    """When the bytes of some receives began to move, and whether that is the beginning or only bounds it from above.

    Args:
        view: the rank that receives.
        rows: rows of its `Messages`, whose other halves are known.
        free: for each of them since when the rank had nothing else to do.
    """
    posted = np.maximum(view.timeline.messages.start[rows], view.pairing.other[rows])
    if view.timeline.on_gpu:
        return posted, np.ones(len(rows), bool)
    return np.maximum(posted, free), posted + _slack(view) >= free


def _slack(view: RankView) -> int:
    steps = view.timeline.steps
    return int(SLACK * np.max(steps.end - steps.start, initial=0))


def told(views: Mapping[int, RankView]) -> dict[int, Bools]:
    """For each message of each rank whether the traces tell when its bytes moved."""
    result = {rank: view.pairing.other != UNKNOWN for rank, view in views.items()}
    for rank, view in views.items():
        messages, pairing = view.timeline.messages, view.pairing
        if not view.timeline.on_gpu:
            received = np.flatnonzero(result[rank] & (messages.direction == Messages.RECV))
            result[rank][received] = begun(view, received, _free(view)[pairing.action[received]])[1]
    for rank, view in views.items():  # what a receive tells holds for its send
        messages, pairing = view.timeline.messages, view.pairing
        for target in np.unique(pairing.partner[messages.direction == Messages.SEND]).tolist():
            if target in views and not views[target].timeline.on_gpu:
                sent = np.flatnonzero((messages.direction == Messages.SEND) & (pairing.partner == target))
                result[rank][sent] &= result[target][pairing.row[sent]]
    return result


def _free(view: RankView) -> Times:
    """For each action since when its rank had nothing else to do: the end of the actions and the optimizer before."""
    actions, optimizer = view.timeline.actions, view.timeline.optimizer
    earlier = np.concatenate(([UNKNOWN], np.maximum.accumulate(actions.end)))[: len(actions)]
    last = np.concatenate(([UNKNOWN], optimizer.end))
    updated: Times = last[np.searchsorted(optimizer.end, actions.start, "right")]
    return np.maximum(earlier, updated)
