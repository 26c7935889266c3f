"""The findings of a report: what the rules propose, what is broken first.

A run is mended before it is designed anew, as a design is judged by a run that works: troubles that cost 1 % of a step
or more come first, then those that only save something together, then changes of the design, then what is small; each
the largest gain first.
"""

from __future__ import annotations

from dataclasses import replace

from bubblescope.advice.context import Context
from bubblescope.advice.rules import RULES, Kind
from bubblescope.advice.together import hidden
from bubblescope.advice.whole import spent
from bubblescope.analysis.study import Study
from bubblescope.forecast.forecaster import Forecaster
from bubblescope.model.report import Proposal, Report

__all__ = ["LEAST", "SMALL", "advise"]

LEAST = 0.005
"""A gain below this share of a step is not worth a proposal."""
SMALL = 0.01
"""A trouble below this share of a step does not come before the design."""


def advise(found: Study, report: Report, forecaster: Forecaster | None) -> tuple[Proposal, ...]:
    """Proposals for a run, the first first; `forecaster` is None where the run cannot be replayed.

    Where the numbers are not to be trusted no gain is claimed, and where the replay misses the run nothing is replayed.
    """
    context = Context.of(found, report, forecaster)
    made: list[tuple[Kind, Proposal]] = [(row.kind, proposal) for row in RULES for proposal in row.rule(context)]
    made = [(kind, each) for kind, each in made if each.gain is None or each.gain >= LEAST]
    made += [("trouble", each) for each in hidden(context, {each.code for _, each in made})]
    parts = spent(report)
    other = parts is not None and parts.overshadowed
    ranked = [each for _, each in sorted(made, key=lambda one: _place(*one, overshadowed=other))]
    return tuple(ranked if context.sure else [replace(each, gain=None, gain_ns=None) for each in ranked])


def _place(kind: Kind, each: Proposal, *, overshadowed: bool) -> tuple[int, float]:
    """Where a proposal stands: what matters more than the bubble, troubles, that no bubble matters, design, small."""
    gain = each.gain or 0.0
    if kind == "instead":
        return (0 if overshadowed else 2), 0.0
    if each.gain is not None and gain < SMALL:
        return 4, -gain
    return (1 if kind == "trouble" else 3), -gain
