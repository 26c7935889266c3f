"""What was mended while a file was read, what had to be left out of it, and whether its end is missing.

Places are bytes of the text, after inflating where the file is gzip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bubblescope.model.trace import Finding, Severity

__all__ = ["Repairs"]

_MOST_NAMED = 3


class Repairs:
    """Counts repairs. Of what is left out it remembers the first few places, so that a broken file fills no memory."""

    def __init__(self) -> None:
        self._mended: Counter[str] = Counter()
        self._first: int | None = None
        self._lost: list[str] = []
        self._losses = 0
        self._ends: list[str] = []

    @property
    def cut(self) -> bool:
        """Whether the end of the file is missing."""
        return bool(self._ends)

    @property
    def lost(self) -> int:
        """How many pieces of the file were left out, not counting what its missing end would have held."""
        return self._losses

    def only(self, kind: str) -> bool:
        """Whether nothing was left out, and nothing mended but what is of this kind."""
        return not self._losses and not self._ends and self._mended.keys() <= {kind}

    def absorb(self, later: Repairs, begin: int) -> None:
        """Take over what was mended in the text that follows, whose places count from `begin`."""
        if later._first is not None:
            self.mend(begin + later._first, later._mended)

    def mend(self, at: int, kinds: Mapping[str, int]) -> None:
        """Note repairs that lost nothing: how many of each kind, the first of them at `at` or behind it."""
        if kinds:
            self._mended.update(kinds)
            self._first = at if self._first is None else min(at, self._first)

    def drop(self, at: int, length: int, why: str) -> None:
        """Note `length` bytes at `at` that were left out."""
        self._losses += 1
        if len(self._lost) < _MOST_NAMED:
            self._lost.append(f"{length} at byte {at} ({why})")

    def end(self, what: str) -> None:
        """Note that the file ends before what it holds does."""
        self._ends.append(what)

    def findings(self, path: Path) -> list[Finding]:
        """What a reader of the numbers must know of it; `repaired` is a warning only where something was lost."""
        found = []
        if self._mended or self._losses:
            severity: Severity = "warning" if self._losses else "info"
            found.append(Finding("repaired", severity, self._message(), str(path)))
        if self._ends:
            found.append(Finding("truncated", "warning", "; ".join(dict.fromkeys(self._ends)), str(path)))
        return found

    def _message(self) -> str:
        parts = []
        if self._mended:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in self._mended.most_common())
            parts.append(f"mended {kinds}, from byte {self._first} on")
        if self._losses:
            more = f", and {self._losses - len(self._lost)} more" if self._losses > len(self._lost) else ""
            pieces = "piece" if self._losses == 1 else "pieces"
            parts.append(f"left out {self._losses} {pieces}, in bytes: {', '.join(self._lost)}{more}")
        return "the text is damaged: " + "; ".join(parts)
