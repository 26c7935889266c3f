"""How a number of two runs is written: its values, by how much it changed, and what of that could be noise.

Shares change by points, ratios by their difference, times and rates by a percentage of what they were.
"""

from __future__ import annotations

from bubblescope.model.comparison import Change
from bubblescope.report import wording as words

__all__ = ["moved", "noise", "shows"]


def moved(change: Change, *, bare: bool = False) -> str:
    """By how much it changed: +11.6 points (`bare` +11.6, where the table names the unit), +0.33, +33.9%."""
    return words.ABSENT if change.change is None else _signed(_amount(change, change.change, bare=bare))


def noise(change: Change, *, bare: bool = False) -> str:
    """What the change must exceed to be more than noise."""
    return words.ABSENT if change.noise is None else _amount(change, change.noise, bare=bare)


def shows(change: Change) -> bool:
    """Whether anything of the change can be seen in what is printed of it."""
    return moved(change).strip("+-0. points%") != "" or (change.before is None) != (change.after is None)


def _amount(change: Change, number: float, *, bare: bool) -> str:
    if change.unit == "share":
        return words.bare_points(number) if bare else words.points(number)
    if change.unit == "ratio":
        return words.plain(number, 2)
    return words.percent(number / abs(change.before)) if change.before else words.ABSENT


def _signed(text: str) -> str:
    """With a plus where it grew; nothing before what rounds to 0."""
    grew = not text.startswith("-") and any(digit in text for digit in "123456789")
    return f"+{text}" if grew else text
