"""Whether a number is, or moved, beyond its limit, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose, sqrt

from bubblescope.gate.rules import Rule
from bubblescope.gate.significance import FALSE_ALARM, MISSED, Difference, difference
from bubblescope.model.chance import t_limit
from bubblescope.model.gate import Outcome
from bubblescope.model.metrics import Metric

__all__ = ["Decision", "against_baseline", "against_limit"]

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
    at = _equal(found.value, rule.limit)
    return Decision("fail" if (rule.inclusive if at else beyond > 0) else "pass")


def against_baseline(rule: Rule, found: Metric, baseline: Metric, tests: int = 1) -> Decision:
    """Whether the number moved farther than the rule allows, and by more than the noise of the steps.

    It fails where the change is over the limit and more than noise (one-sided, at `FALSE_ALARM` over the number of
    `tests` that the rule makes). It passes where the change is not over the limit, and the steps could have shown it:
    by more than noise (at `MISSED`), or because the noise is less than half of the limit. Else nothing can be said.
    """
    sign = 1 if rule.side == "above" else -1
    if rule.relative and not baseline.value > 0:
        return Decision("inconclusive", reason="a part of a baseline that is not above 0 tells nothing; use points")
    plain = difference(found, baseline)
    scale = baseline.value if rule.relative else 1.0
    limit = rule.limit * scale
    noise = plain.noise(FALSE_ALARM / tests)
    shown = Decision(
        "inconclusive", plain.value / scale, None if noise is None else noise / scale, _chance(plain, sign)
    )
    moved = sign * plain.value
    over = moved > limit and not _equal(moved, limit)
    if noise is None:
        return _with(shown, "inconclusive", _too_few(found, baseline))
    if over and moved > noise:
        return _with(shown, "fail")
    if not over and (2 * noise <= limit or _safely(rule, found, baseline, sign)):
        return _with(shown, "pass")
    return _with(shown, "inconclusive", _too_noisy(found, baseline, limit, over=over))


def _safely(rule: Rule, found: Metric, baseline: Metric, sign: int) -> bool:
    """Whether the change is below the limit by more than noise."""
    factor = 1 + sign * rule.limit if rule.relative else 1.0
    left = difference(found, baseline, factor)
    room = -sign * (left.value - (0.0 if rule.relative else sign * rule.limit))
    noise = left.noise(MISSED)
    return noise is not None and room >= noise


def _chance(plain: Difference, sign: int) -> float | None:
    chance = plain.chance_beyond()
    return chance if chance is None or sign * plain.value >= 0 else 1 - chance


def _equal(one: float, other: float) -> bool:
    """Whether two numbers differ by no more than the arithmetic of floating point makes them."""
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _with(shown: Decision, outcome: Outcome, reason: str = "") -> Decision:
    return Decision(outcome, shown.change, shown.noise, shown.chance, reason)


def _too_few(found: Metric, baseline: Metric) -> str:
    short = [f"{each.steps} in the {name}" for name, each in (("run", found), ("baseline", baseline)) if each.steps < 2]
    return f"too few steps to know the noise: {' and '.join(short)}, where it takes 2 at least; record more, as 5"


def _too_noisy(found: Metric, baseline: Metric, limit: float, *, over: bool) -> str:
    what = (
        "what looks like a change over the limit could be" if over else "a change as large as the limit could hide in"
    )
    text = f"{what} the noise of {found.steps} steps in the run and {baseline.steps} in the baseline"
    needed = _needed(found, baseline, limit)
    if needed is None:
        return f"{text}; their numbers vary too much for this limit"
    return f"{text}; about {needed} steps of each would tell"


def _needed(found: Metric, baseline: Metric, limit: float) -> int | None:
    """How many steps of each run it takes for noise under half of the limit; None where no usual number does."""
    spread = sqrt((found.spread or 0.0) ** 2 + (baseline.spread or 0.0) ** 2)
    room = limit / 2 - found.error - baseline.error
    counts = range(2, MOST_STEPS + 1)
    return next((n for n in counts if t_limit(FALSE_ALARM, 2 * n - 2) * spread / sqrt(n) <= room), None)
