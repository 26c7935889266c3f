"""What a rule knows of a run, and how it asks what a change would bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from bubblescope.analysis.study import Study
from bubblescope.forecast.forecaster import LIMIT, Forecaster
from bubblescope.model import writing as words
from bubblescope.model.changes import Changes, Trouble
from bubblescope.model.report import Cause, Proposal, Report
from bubblescope.model.whatif import Forecast, Run
from bubblescope.schedules.family import Family
from bubblescope.schedules.registry import FAMILIES

__all__ = ["Basis", "Context", "Gain", "Rule", "gained", "proposal", "sentences"]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change saves of a step: a share of it, nanoseconds; `change` is the what-if, None if it is none."""

    share: float
    ns: int
    change: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a proposal rests on: how its size can be worked out, what stands against it, and who says so."""

    formula: str
    limits: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """A run that advice is wanted for.

    `run` is the run as it was measured, None where it cannot be replayed; `ask` forecasts a change, each once, and
    answers None where that cannot be. `sure` is whether the numbers bear out any claim.
    """

    found: Study
    report: Report
    run: Run | None
    ask: Callable[[Changes], Forecast | None]
    sure: bool

    @classmethod
    def of(cls, found: Study, report: Report, forecaster: Forecaster | None) -> Context:
        """A forecaster whose replay misses the run by more than `LIMIT` is none."""
        sure = report.bubble.trusted
        if forecaster is None or abs(forecaster.error) > LIMIT:
            return cls(found, report, None, lambda _: None, sure)

        @cache
        def ask(changes: Changes) -> Forecast | None:
            told = forecaster.forecast(changes)
            return None if told.problem is not None or told.run is None or told.gain is None else told

        return cls(found, report, forecaster.measured, ask, sure)

    @property
    def family(self) -> Family | None:
        """The schedule of the run, if it is known."""
        name = None if self.run is None else self.run.schedule
        return next((family for family in FAMILIES if family.name == name), None)

    @property
    def on_gpu(self) -> bool:
        """Whether a trace shows the work of a GPU."""
        return any(timeline.on_gpu for timeline in self.found.job.timelines.values())

    def cause(self, name: str) -> Cause | None:
        """A cause of the bubble."""
        return next((cause for cause in self.report.bubble.causes if cause.cause == name), None)

    def points(self, name: str) -> float:
        """Points of a cause, 0 where it is not known."""
        cause = self.cause(name)
        return 0.0 if cause is None else cause.points

    def costs(self, *names: str) -> str:
        """What causes cost, in words: `5.9 of the bubble's 28.7 points`."""
        whole = self.report.bubble.measured
        mine = words.points(sum(map(self.points, names)))
        return mine if whole is None else f"{mine.split()[0]} of the bubble's {words.points(whole)}"

    def without(self, trouble: Trouble, beside: frozenset[Trouble] = frozenset()) -> Gain | None:
        """What a run without a trouble saves, beyond what it saves without those beside it."""
        whole = self.ask(Changes(without=beside | {trouble}))
        if not beside:
            return None if whole is None else gained(whole)
        rest = self.ask(Changes(without=beside))
        if whole is None or rest is None:
            return None
        return Gain((whole.gain or 0.0) - (rest.gain or 0.0), (whole.gain_ns or 0) - (rest.gain_ns or 0), None)

    def becomes(self, told: Forecast | None) -> str:
        """`the bubble goes from 28.7% to 17.1%`; nothing where no claim is borne out."""
        if told is None or told.run is None or self.run is None or not self.sure:
            return ""
        return f"the bubble goes from {words.percent(self.run.bubble)} to {words.percent(told.run.bubble)}"

    def saves(self, gain: Gain | None) -> str:
        """`8.1% of a step`; nothing where no claim is borne out."""
        return "" if gain is None or not self.sure else f"{words.percent(max(0.0, gain.share))} of a step"

    def keeps(self, told: Forecast | None, also: str = "") -> str:
        """What a change does to memory, where that is known and anything, and what else is to be known."""
        facts = list(filter(None, [self._kept(told), also]))
        text = ", and ".join(facts)
        return f"{text[0].upper()}{text[1:]}." if text else ""

    def _kept(self, told: Forecast | None) -> str:
        if told is None or told.run is None or self.run is None or not self.sure:
            return ""
        before, after = self.run.memory, told.run.memory
        if before is None or after is None:
            return ""
        facts = []
        if round(after.activations, 1) != round(before.activations, 1):
            facts.append(f"activations of {after.activations:.3g} micro-batches instead of {before.activations:.3g}")
        if after.weights is not None and before.weights is not None and after.weights != before.weights:
            facts.append(f"{after.weights / before.weights:.3g} times the weights")
        return f"the fullest rank then keeps {words.enumerate_words(facts)}" if facts else ""


Rule = Callable[[Context], Iterator[Proposal]]
"""A rule yields nothing where it has nothing to say."""


def gained(told: Forecast) -> Gain:
    """What a forecast saves."""
    return Gain(told.gain or 0.0, told.gain_ns or 0, told.change)


def proposal(code: str, title: str, detail: str, gain: Gain | None, basis: Basis) -> Proposal:
    """A proposal with its gain."""
    return Proposal(
        code=code,
        title=title,
        detail=detail,
        gain_ns=None if gain is None else gain.ns,
        gain=None if gain is None else gain.share,
        formula=basis.formula,
        limits=basis.limits,
        source=basis.source,
        change=None if gain is None else gain.change,
    )


def sentences(*parts: str) -> str:
    """The parts that say anything, one after the other."""
    return " ".join(filter(None, parts))
