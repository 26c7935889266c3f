"""The settings of a gate, each with where it was said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Generic, Literal, TypeVar

__all__ = ["KEYS", "OnMissing", "Setting", "Settings"]

Value_co = TypeVar("Value_co", covariant=True)

OnMissing = Literal["fail", "warn", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[Value_co]):
    """One setting: its key as files and options write it, its value, and where that was said.

    `origin` is `default`, the file as seen from the working directory, a variable of the environment, an option, or
    what a caller in Python calls itself.
    """

    key: str
    value: Value_co
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a gate; what nobody said is None where it has no default.

    Attributes:
        baseline: a path, to be read from the working directory.
        file: the file that was read, as seen from the working directory; None where there is none.
        looked: the directories that were searched for one, likewise; empty where the file was named.
    """

    baseline: Setting[Path | None]
    preset: Setting[str | None]
    fail_on: Setting[tuple[str, ...] | None]
    warn_on: Setting[tuple[str, ...] | None]
    off: Setting[tuple[str, ...] | None]
    on_missing_baseline: Setting[OnMissing]
    allow_mismatch: Setting[bool]
    allow_degraded: Setting[bool]
    file: str | None = None
    looked: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Setting[object]]:
        """The settings in their order."""
        return (getattr(self, key.replace("-", "_")) for key in KEYS)


KEYS = tuple(field.name.replace("_", "-") for field in fields(Settings) if field.name not in {"file", "looked"})
"""The keys, in their order."""
