"""Marks of steps that stand closer than steps: a profiler that was told of every micro-batch, or of every half step."""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints, Times, distinct
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.steps import Marks, marked_steps, occupied

__all__ = ["narrow", "said_of"]


def narrow(ranges: Ranges, step: Ints, recurrences: Times, optimizer: Ints) -> bool:
    """Whether several marks share a step.

    They do where the names of actions recur in fewer places than there are marks; where half of those that train hold
    more backwards than forwards; or where an optimizer ran in fewer than half of those that train. Marks that hold
    several micro-batches, as many forwards as backwards, are believed all the same: an optimizer may wait for several
    batches.

    Args:
        ranges: actions in time order.
        step: the row of the mark that each is in, or NONE.
        recurrences: host moments at which a named action comes again.
        optimizer: the row of the mark that each unit of the optimizer is in, or NONE.
    """
    inside = step != NONE
    if len(recurrences):
        return 2 * len(distinct(step[inside])) >= 3 * (len(recurrences) + 1)
    training = distinct(step[inside & (ranges.kind != Kind.F)])
    if not len(training):
        return False
    forwards, backwards = (
        np.bincount(step[inside & np.isin(ranges.kind, kinds)], minlength=training[-1] + 1)[training]
        for kinds in ((Kind.F,), (Kind.B, Kind.I))
    )
    torn = int((backwards > forwards).sum())
    if torn >= max(2, len(training) / 2):  # one may be what a recording began in
        return True
    batches = int(((forwards == backwards) & (forwards > 1)).sum())
    seldom = 0 < 2 * int(np.isin(training, optimizer).sum()) < len(training)
    return seldom and (torn > 1 or 2 * batches < len(training))


def said_of(trace: RankTrace, steps: Marks, moments: Times) -> tuple[Finding, ...]:
    """A word where the steps found are far fewer than the marks that hold these host moments, of actions or of work."""
    held = occupied(marked_steps(trace), moments)
    if 3 * len(steps) > 2 * held or not len(steps):
        return ()
    message = (
        f"{held} marked steps hold the actions of {len(steps)}, so that the marks are of micro-batches or other parts "
        "of steps; actions and optimizer tell where steps begin. Call step() of the profiler once a step"
    )
    return (Finding("narrow-marks", "info", message),)
