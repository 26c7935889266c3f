"""What each action of a step waited for: its transfer, its receive's posting, its host; and the gaps inside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np
import numpy.typing as npt

from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.means import means
from bubblescope.analysis.moving import begun
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.model.actions import Action
from bubblescope.model.columns import Ints, Times
from bubblescope.model.timeline import Messages
from bubblescope.schedules.replay import Delays

__all__ = ["Waits", "waits"]

Lengths = npt.NDArray[np.float64]

CLIPPED, SAME = 0.9, 1e-6
"""Share of receives that start with their sends from which on that is the recorder's doing, and the share of the window
that counts as the same moment."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What delayed a pipeline in a step, nanoseconds by action; where several ranks share a position their mean.

    `wire` are the transfers; `host` is how late the host was before an action, `inside` in gaps within it.
    """

    wire: Delays
    host: Mapping[Action, float]
    inside: Mapping[Action, float]


def waits(views: Mapping[int, RankView], step: PipelineStep) -> Waits:
    """Read off the messages and gaps of the ranks of a step."""
    seen = [_Waits.of(views[rank], mine, step.window_of(rank).start) for rank, mine in step.steps.items()]
    transfer, posted, host, inside = (
        means((row for one in seen for row in one.rows(part)), lambda action: action)
        for part in ("transfer", "posted", "host", "inside")
    )
    blocking = any(views[rank].blocking for rank in step.steps)
    known = dict.fromkeys(posted, 0.0) if _clipped(views, step) else posted
    return Waits(Delays(transfer=transfer, posted=known, blocking=blocking), host, inside)


def _clipped(views: Mapping[int, RankView], step: PipelineStep) -> bool:
    """Whether the receives were recorded from when both sides were there, so that nothing tells when they were posted.

    Some recorders write down when bytes moved: there nearly all receives start with their sends.
    """
    starts = [_starts(views[rank], mine) for rank, mine in step.steps.items()]
    received, sent = (np.concatenate(part) for part in zip(*starts, strict=True))
    return len(sent) > 0 and float(np.mean(np.abs(received - sent) <= SAME * step.window.length)) > CLIPPED


def _starts(view: RankView, step: RankStep) -> tuple[Times, Times]:
    """When the receives of a rank in a step started, and when their sends did."""
    rows = _received(view, step)
    return view.timeline.messages.start[rows], view.pairing.other[rows]


@dataclass(frozen=True, slots=True, eq=False)
class _Waits:
    """What each action of a rank in a step waited for, in nanoseconds; NaN where there is no such message.

    `transfer` is how long its input moved, `posted` how long after the action before its receive was posted,
    `host` how late the host was, `inside` how long nothing ran within it.
    """

    step: RankStep
    transfer: Lengths
    posted: Lengths
    host: Lengths
    inside: Lengths

    def rows(self, part: str) -> Iterable[tuple[Action, float]]:
        values = getattr(self, part)
        return [(a, v) for a, v in zip(self.step.order, values.tolist(), strict=True) if not isnan(v)]

    @classmethod
    def of(cls, view: RankView, step: RankStep, window: int) -> _Waits:
        """Read off the messages and gaps of a rank; `window` is when the pipeline began."""
        actions, gaps = step.actions, view.gaps[step.step]
        ended = np.maximum.accumulate(actions.end)
        before = np.concatenate(([window], ended[:-1]))
        transfer, posted, arrived = _inputs(view, step, before)
        host = (gaps.end - gaps.arrived).astype(np.float64)
        if len(host) and not isnan(arrived[0]):
            host[0] = max(0.0, actions.start[0] - window - max(arrived[0], 0.0))
        extent = (ended - np.maximum(actions.start, before)).astype(np.float64).clip(0)
        follows = step.leaders != np.arange(len(actions))
        extent[follows] += (gaps.end - gaps.start)[follows]  # a gap inside a block is one inside an action
        return cls(step, transfer, posted, host, extent - step.durations)


def _received(view: RankView, step: RankStep) -> Ints:
    """The receives of a step whose sends are known."""
    messages, pairing = view.timeline.messages, view.pairing
    rows = np.flatnonzero((messages.direction == Messages.RECV) & np.isin(pairing.action, step.rows))
    known: Ints = rows[pairing.other[rows] != UNKNOWN]
    return known


def _inputs(view: RankView, step: RankStep, before: Times) -> tuple[Lengths, Lengths, Lengths]:
    """For each action how long its input moved, and how long after `before` it was asked for and had arrived."""
    messages, pairing = view.timeline.messages, view.pairing
    rows = _received(view, step)
    at = np.searchsorted(step.rows, pairing.action[rows])
    transfer, posted, arrived = np.full((3, len(step.rows)), np.nan)
    start, end = messages.start[rows], messages.end[rows]
    transfer[at] = (end - begun(view, rows, before[at])[0]).clip(0)
    posted[at] = start - before[at]
    arrived[at] = end - before[at]
    return transfer, posted, arrived
