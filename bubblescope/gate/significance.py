"""How much of a difference between two runs may be noise: Welch's t-test over their steps.

The steps of a run are the sample: a mean of n of them with a standard deviation s is known to s / sqrt(n). Welch, The
generalization of Student's problem when several different population variances are involved, Biometrika 34 (1947), with
the degrees of freedom of Satterthwaite, Biometrics Bulletin 2 (1946). That takes steps to be independent, and tells
nothing of what differs between runs and not between steps, as the place of a job on a cluster: limits are for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bubblescope.model.chance import t_limit, t_tail
from bubblescope.model.metrics import Metric

__all__ = ["FALSE_ALARM", "MISSED", "Difference", "difference", "equal"]

FALSE_ALARM = 0.01
"""How likely so much noise may be for a change to count as one."""
MISSED = 0.05
"""How likely a change beyond a limit may look as small as what passes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two means, or of one mean and a multiple of the other.

    `error` is its standard error with `freedom` degrees of freedom, both None where a run has fewer than two steps;
    `systematic` is by how much the clocks may be wrong about it, which no number of steps makes smaller.
    """

    value: float
    error: float | None
    freedom: float | None
    systematic: float = 0.0

    def noise(self, chance: float = FALSE_ALARM) -> float | None:
        """What the difference must exceed to be more than noise, one way; None where nothing tells it."""
        if self.error is None or self.freedom is None:
            return None
        return self.systematic + (self.error * t_limit(chance, self.freedom) if self.error else 0.0)

    def chance(self, sign: int) -> float | None:
        """How likely a difference so far to one side is where there is none; None where nothing tells it.

        Args:
            sign: 1 for above, -1 for below.
        """
        if self.error is None or self.freedom is None:
            return None
        beyond = max(abs(self.value) - self.systematic, 0.0) * (1 if sign * self.value > 0 else -1)
        if not self.error:
            return 0.0 if beyond > 0 else 1.0
        return t_tail(beyond / self.error, self.freedom)


def equal(one: float, other: float) -> bool:
    """Whether two numbers differ by no more than the arithmetic of floating point makes them."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def difference(found: Metric, baseline: Metric, factor: float = 1.0) -> Difference:
    """What `found` is over `factor` times the baseline."""
    past = factor * baseline.value
    value = 0.0 if equal(found.value, past) else found.value - past
    systematic = found.error + factor * baseline.error
    if found.spread is None or baseline.spread is None:
        return Difference(value, None, None, systematic)
    parts = [
        (found.spread**2 / found.steps, found.steps),
        ((factor * baseline.spread) ** 2 / baseline.steps, baseline.steps),
    ]
    variance = sum(part for part, _ in parts)
    if not variance:
        return Difference(value, 0.0, float(found.steps + baseline.steps - 2), systematic)
    # Squares of variances may vanish where variances do not.
    freedom = 1 / sum((part / variance) ** 2 / (steps - 1) for part, steps in parts)
    return Difference(value, math.sqrt(variance), freedom, systematic)
