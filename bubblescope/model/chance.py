"""How likely a difference is by chance alone: tails of distributions, and the correction for many comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, inf, isnan, lgamma, log, log1p

__all__ = ["binomial_tail", "f_tail", "holm", "t_limit", "t_tail"]

_MOST_FREEDOM = 1e5  # beyond it Student's t is the normal distribution to every digit that is shown


def t_tail(t: float, freedom: float) -> float:
    """The chance that Student's t with `freedom` degrees of freedom lies above t; 1 without any freedom."""
    if freedom <= 0 or isnan(t):
        return 1.0
    if t == inf:
        return 0.0
    freedom = min(freedom, _MOST_FREEDOM)
    tail = 0.5 * _beta(freedom / (freedom + t * t), freedom / 2, 0.5)
    return tail if t >= 0 else 1 - tail


@cache
def t_limit(chance: float, freedom: float) -> float:
    """The t that is exceeded with that chance, below one half; infinite where no finite t is as rare."""
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > chance:
        low, high = high, 2 * high
        if high > 1e12:
            return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > chance else (low, middle)
    return high


def f_tail(ratio: float, upper: float, lower: float) -> float:
    """The chance that a ratio of variances with these degrees of freedom lies above `ratio` (Fisher's F)."""
    if upper <= 0 or lower <= 0 or isnan(ratio):
        return 1.0
    if ratio == inf:
        return 0.0
    return _beta(lower / (lower + upper * ratio), lower / 2, upper / 2) if ratio > 0 else 1.0


def binomial_tail(hits: int, tries: int, share: float) -> float:
    """The chance of at least so many hits in so many tries that each hit with probability `share`."""
    return 1.0 if hits <= 0 else _beta(share, hits, tries - hits + 1)


def holm(chances: Sequence[float]) -> list[float]:
    """The chances corrected for how many they are: none of what is left below a level is chance, but for that level.

    Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    order = sorted(range(len(chances)), key=lambda k: chances[k])
    corrected, least = [1.0] * len(chances), 0.0
    for place, k in enumerate(order):
        least = max(least, min(1.0, chances[k] * (len(chances) - place)))
        corrected[k] = least
    return corrected


def _beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction would converge slowly; DLMF 8.17.4
        return 1 - _beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return min(1.0, front * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / ...)) by Lentz's method."""
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, 20_000):
        k = term // 2
        if term % 2:
            part = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        else:
            part = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        d = 1 / ((1 + part * d) or tiny)
        c = (1 + part / c) or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return 1 / value
