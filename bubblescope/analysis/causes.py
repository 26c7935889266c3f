"""Why the bubble is what it is: the step replayed with one more of its troubles at a time.

The order of the actions is kept throughout. T(k) is the length of the k-th replay:

    T0  the ranks' mean useful time
    T1  every action as long as the mean of its kind, transfers free      T1 - T0      structural
    T2  times the profile of its stage                                    T2 - T1      imbalance
    T3  times the profile that the stage has in this replica              T3 - T2      straggler
    T4  every action as long as it was                                    T4 - T3      jitter
    T5  with the transfers as they were                                   T5 - T4      p2p
    T6  with the host's gaps, inside actions and before them              T6 - T5      host
                                                                          window - T6  residual

Differences of one chain add up to window - T0, so the shares add up to the measured bubble. Replaying
with selected changes is the method of ByteDance's straggler analysis, arXiv 2505.05713, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import fmean

import numpy as np
import numpy.typing as npt

from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.profiles import Profiles
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import RankStep
from bubblescope.analysis.study import Study
from bubblescope.model import report
from bubblescope.model.actions import Action
from bubblescope.model.columns import Times
from bubblescope.model.timeline import Messages
from bubblescope.schedules.replay import NO_DELAYS, Deadlock, Delays, replay

__all__ = ["CAUSES", "LIMIT", "ladder"]

CAUSES = ("structural", "imbalance", "straggler", "jitter", "p2p", "host", "residual")
LIMIT = 0.05
"""Share of the window beyond which what the causes leave over makes them untrusted (arXiv 2505.05713, section 6)."""

Lengths = npt.NDArray[np.float64]
Durations = Mapping[Action, float]


def ladder(found: Study, measured: float | None, formula: float | None) -> tuple[report.Cause, ...]:
    """The causes, means over the used steps and their pipelines.

    () where a stage is unseen, where nothing tells a rank's chunks apart, and where the order deadlocks.

    `points` of the structural part are the formula, those of the others their share times 1 - formula, so that
    all but the structural part add up to measured - formula; the residual takes what rounding leaves.
    """
    if measured is None or not found.whole or found.job.untold_chunks:
        return ()
    profiles = Profiles.of(found.whole)
    try:
        rungs = [_rungs(found, step, profiles) for step in found.whole]
    except Deadlock:
        return ()
    windows = [step.window.length for step in found.whole]
    spent = [np.diff([*rung, window]) for rung, window in zip(rungs, windows, strict=True)]
    shares = _by_step(found.whole, [parts / window for parts, window in zip(spent, windows, strict=True)])
    lengths = _by_step(found.whole, spent)
    return _causes(lengths, shares, measured, formula)


def _causes(lengths: Lengths, shares: Lengths, measured: float, formula: float | None) -> tuple[report.Cause, ...]:
    points = shares.copy()
    if formula is not None:
        points *= 1 - formula
        points[0] = formula
    points[-1] = measured - points[:-1].sum()
    shares[-1] = measured - shares[:-1].sum()
    rows = zip(CAUSES, lengths.tolist(), shares.tolist(), points.tolist(), strict=True)
    return tuple(report.Cause(cause=name, ns=round(ns), share=share, points=part) for name, ns, share, part in rows)


def _by_step(steps: Sequence[PipelineStep], values: Sequence[Lengths]) -> Lengths:
    """Means over the steps of the means over their pipelines, as the measured bubble is."""
    of: dict[int, list[Lengths]] = {}
    for step, value in zip(steps, values, strict=True):
        of.setdefault(step.step, []).append(value)
    result: Lengths = np.mean([np.mean(rows, axis=0) for rows in of.values()], axis=0)
    return result


def _rungs(found: Study, step: PipelineStep, profiles: Profiles) -> list[float]:
    """T0 to T6 of a pipeline in a step, in nanoseconds."""
    own, last, orders, together = step.durations, found.job.last_stage, step.replayed, step.together
    mean = means(own.items(), lambda action: action.kind)

    def by(profile: Callable[[Action], float]) -> dict[Action, float]:
        return {action: mean[action.kind] * profile(action) for action in own}

    def length(durations: Durations, delays: Delays = NO_DELAYS) -> float:
        return replay(orders, durations, last_stage=last, together=together, delays=delays).makespan

    common, mine = profiles.common, profiles.own[step.pipeline]
    rungs = [
        fmean(step.useful_by_position.values()),
        length(by(lambda _: 1.0)),
        length(by(lambda action: common[action.stage, action.kind])),
        length(by(lambda action: mine[action.stage, action.kind])),
        length(own),
    ]
    wire, late, extents = _delays(found, step)
    extents = {**own, **extents}  # an input gradient of stage 0 has none
    try:
        return [*rungs, length(own, wire), length(extents, late)]
    except Deadlock:  # where every gap has another reason too, sends are thought to block that could not
        free, unheld = replace(wire, blocking=False), replace(late, blocking=False)
        return [*rungs, length(own, free), length(extents, unheld)]


def _delays(found: Study, step: PipelineStep) -> tuple[Delays, Delays, dict[Action, float]]:
    """What delayed a step: its transfers; these and its host; and how long each action took with its own gaps.

    Where several ranks share a position their mean counts.
    """
    seen = [_Waits.of(found.views[rank], mine, step.window.start) for rank, mine in step.steps.items()]
    transfer, posted, host, extent = (
        means((row for waits in seen for row in waits.rows(part)), lambda action: action)
        for part in ("transfer", "posted", "host", "extent")
    )
    blocking = any(found.views[rank].blocking for rank in step.steps)
    wire = Delays(transfer=transfer, posted=posted, blocking=blocking)
    return wire, replace(wire, host=host), extent


@dataclass(frozen=True, slots=True, eq=False)
class _Waits:
    """What each action of a rank in a step waited for, in nanoseconds; NaN where there is no such message.

    `transfer` is how long its input moved, `posted` how long after the action before its receive was posted,
    `host` how late the host was, `extent` how long it took with the gaps inside it.
    """

    step: RankStep
    transfer: Lengths
    posted: Lengths
    host: Lengths
    extent: Lengths

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
        return cls(step, transfer, posted, host, extent)


def _inputs(view: RankView, step: RankStep, before: Times) -> tuple[Lengths, Lengths, Lengths]:
    """For each action how long its input moved, and how long after `before` it was asked for and had arrived."""
    messages, pairing = view.timeline.messages, view.pairing
    rows = np.flatnonzero((messages.direction == Messages.RECV) & np.isin(pairing.action, step.rows))
    rows = rows[pairing.other[rows] != UNKNOWN]
    at = np.searchsorted(step.rows, pairing.action[rows])
    transfer, posted, arrived = np.full((3, len(step.rows)), np.nan)
    start, end = messages.start[rows], messages.end[rows]
    begun = np.maximum(start, pairing.other[rows])
    if not view.timeline.on_gpu:
        # Without kernels a receive ends when its rank asks for it: what it took while the rank was busy is not known.
        begun = np.maximum(begun, before[at])
    transfer[at] = (end - begun).clip(0)
    posted[at] = start - before[at]
    arrived[at] = end - before[at]
    return transfer, posted, arrived
