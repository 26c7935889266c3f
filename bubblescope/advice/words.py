"""Numbers and names in the texts of proposals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["counted", "duration", "listed", "percent", "points", "ranks", "ratio", "sentences"]

_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
_MOST = 6


def percent(share: float) -> str:
    """0.2871 -> 28.7%."""
    return f"{_plain(100 * share)}%"


def points(share: float) -> str:
    """0.0144 -> 1.4 points."""
    text = _plain(100 * share)
    return f"{text} point{'' if text == '1.0' else 's'}"


def _plain(value: float) -> str:
    text = f"{value:.1f}"
    return "0.0" if float(text) == 0 else text


def ratio(value: float) -> str:
    """1.3912 -> 1.39."""
    return f"{value:.2f}"


def duration(ns: float) -> str:
    """Nanoseconds in the unit that leaves one to three digits before the point."""
    for unit, scale in _UNITS:
        if abs(ns) >= scale:
            value = ns / scale
            return f"{value:.{0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2}f} {unit}"
    return f"{ns:.0f} ns"


def counted(count: int, noun: str) -> str:
    """`3 ranks`, `1 rank`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def ranks(numbers: Iterable[int]) -> str:
    """`rank 3`, `ranks 2 and 5`; what is beyond six is only counted."""
    found = sorted(set(numbers))
    shown = [str(number) for number in found[:_MOST]]
    more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    return f"rank{'' if len(found) == 1 else 's'} {listed([*shown, *more])}"


def sentences(*parts: str) -> str:
    """The parts that say anything, one after the other."""
    return " ".join(filter(None, parts))
