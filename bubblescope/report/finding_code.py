"""What is said of the code of a finding."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code: `severity` and `meaning` are its row in docs/definitions.md, word for word."""

    name: str
    severity: str
    summary: str
    meaning: str
    effect: str
    remedy: str
    see: tuple[str, ...]
