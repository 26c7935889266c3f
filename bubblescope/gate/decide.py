"""Whether a number is, or moved, beyond its limit, and how sure that is."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from bubblescope.gate.presets import PRESETS
from bubblescope.gate.rules import Rule, parse
from bubblescope.gate.significance import FALSE_ALARM, MISSED, difference, equal
from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Outcome
from bubblescope.model.metrics import Metric

__all__ = ["Decision", "against_baseline", "against_limit", "undecided"]

_LEAST = 1e-12
"""A baseline below is nothing that a change could be a part of."""
MOST_STEPS = 200
"""More steps than anybody records: beyond it the advice is another one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a rule; `change`, `noise` and `chance` as in `bubblescope.model.gate.Check`."""

    outcome: Outcome
    change: float | None = None
    noise: float | None = None
    chance: float | None = None
    reason: str = ""


def against_limit(rule: Rule, found: Metric) -> Decision:
    """Whether this run's own mean is beyond the limit. Nothing is inferred from it, so no noise stands against it."""
    beyond = found.value - rule.limit if rule.side == "above" else rule.limit - found.value
    at = equal(found.value, rule.limit)
    return Decision("fail" if (rule.inclusive if at else beyond > 0) else "pass")


def against_baseline(rule: Rule, found: Metric, baseline: Metric, tests: int = 1) -> Decision:
    """Whether the number moved farther than the rule allows, and by more than the noise of the steps.

    It fails where the change is over the limit and more than noise (one-sided, at `FALSE_ALARM` over the number of
    `tests` that the rule makes). It passes where the change is not over the limit, and the steps could have shown it:
    by more than noise (at `MISSED`), or because the noise is less than half of the limit. Else nothing can be said.
    """
    if rule.relative and baseline.value < _LEAST:
        return Decision("inconclusive", reason="a part of a baseline that is not above 0 tells nothing; use points")
    plain, scale = difference(found, baseline), _scale(rule, baseline)
    noise = plain.noise(FALSE_ALARM / tests)
    return Decision(
        _outcome(rule, found, baseline, tests),
        plain.value / scale,
        None if noise is None else noise / scale,
        plain.chance(_sign(rule)),
        _why_open(rule, found, baseline, tests),
    )


def _sign(rule: Rule) -> int:
    return 1 if rule.side == "above" else -1


def _scale(rule: Rule, baseline: Metric) -> float:
    """What a change is told as a fraction of."""
    return baseline.value if rule.relative else 1.0


def _is_over(rule: Rule, found: Metric, baseline: Metric) -> bool:
    moved, limit = _sign(rule) * difference(found, baseline).value, rule.limit * _scale(rule, baseline)
    return moved > limit and not equal(moved, limit)


def _outcome(rule: Rule, found: Metric, baseline: Metric, tests: int) -> Outcome:
    plain, limit = difference(found, baseline), rule.limit * _scale(rule, baseline)
    noise = plain.noise(FALSE_ALARM / tests)
    if noise is None:
        return "inconclusive"
    if _is_over(rule, found, baseline):
        return "fail" if _sign(rule) * plain.value > noise else "inconclusive"
    return "pass" if 2 * noise <= limit or _is_safe(rule, found, baseline) else "inconclusive"


def _is_safe(rule: Rule, found: Metric, baseline: Metric) -> bool:
    """Whether the change is below the limit by more than noise."""
    factor = 1 + _sign(rule) * rule.limit if rule.relative else 1.0
    left = difference(found, baseline, factor)
    room = -_sign(rule) * (left.value - (0.0 if rule.relative else _sign(rule) * rule.limit))
    noise = left.noise(MISSED)
    return noise is not None and room >= noise


def _why_open(rule: Rule, found: Metric, baseline: Metric, tests: int) -> str:
    """Why nothing can be said, and what would help; empty where something can."""
    if _outcome(rule, found, baseline, tests) != "inconclusive":
        return ""
    if any(each.spread is None and each.steps > 1 for each in (found, baseline)):
        return "nothing tells how much the steps differ"
    short = [f"{each.steps} in the {name}" for name, each in (("run", found), ("baseline", baseline)) if each.steps < 2]
    if short:
        return f"too few steps to know the noise: {' and '.join(short)}, where it takes 2 at least; record more, as 5"
    if found.error + baseline.error > rule.limit * _scale(rule, baseline) / 2:
        return "what the clocks of the hosts leave open is over half of the limit, however many steps there are"
    what = "a change as large as the limit could hide in"
    if _is_over(rule, found, baseline):
        what = "what looks like a change over the limit could be"
    text = f"{what} the noise of {found.steps} steps in the run and {baseline.steps} in the baseline"

    def tells(steps: int) -> bool:
        """Whether so many steps of both, with the same means and spreads, would be enough."""
        return _outcome(rule, replace(found, steps=steps), replace(baseline, steps=steps), tests) != "inconclusive"

    needed = bisect_left(range(MOST_STEPS + 1), True, lo=2, key=tells)
    if needed > MOST_STEPS:
        return f"{text}; their numbers vary too much for this limit"
    return f"{text}; if they go on like this, about {needed} steps of each tell"


def undecided(numbers: Baseline) -> str:
    """Why the rules of the preset `default` would be open for a run just like this one; empty where they would not."""
    for text, level in PRESETS["default"].items():
        rule = parse(text)
        metric = numbers.metric(*rule.subject)
        if level != "error":
            continue
        if metric is None:
            return f"{text}: the run has no {rule.kind.title}; state other rules, as step_time:+5%"
        found = against_baseline(rule, metric, metric)
        if found.outcome != "pass":
            return f"{text}: {found.reason}"
    return ""
