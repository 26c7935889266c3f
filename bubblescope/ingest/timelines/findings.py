"""What a timeline holds that is no part of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bubblescope.model.trace import Finding

__all__ = ["Ignored"]

_MOST = 1000
_NAMED = 5
_LONGEST = 40


class Ignored:
    """Counts slices by names that mean nothing to us; a damaged file does not fill the memory with them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._more = 0

    def add(self, names: Iterable[str]) -> None:
        """Count some slices."""
        for name in names:
            if name in self._counts or len(self._counts) < _MOST:
                self._counts[name] += 1
            else:
                self._more += 1

    def findings(self, path: Path) -> list[Finding]:
        """What to say of them, if there are any."""
        if not self._counts:
            return []
        shown = [f"{name[:_LONGEST]!r} ({count})" for name, count in self._counts.most_common(_NAMED)]
        more = ", ..." if len(self._counts) > _NAMED else ""
        message = f"{self._counts.total() + self._more} slices are no part of the pipeline by their names: "
        return [
            Finding("ignored-slices", "info", f"{message}{', '.join(shown)}{more}; they count as idle time", str(path))
        ]
