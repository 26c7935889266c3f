"""The settings of a gate with where each comes from: as a page, as JSON (`bubblescope.config/1`) and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bubblescope.model.settings import Setting, Settings
from bubblescope.report import csv
from bubblescope.report import json as writing
from bubblescope.report.pages import Page
from bubblescope.report.table import Table
from bubblescope.report.wording import ABSENT

__all__ = ["json", "page", "table"]

_UNSAID = "No file sets anything: no bubblescope.toml, and no pyproject.toml with [tool.bubblescope]."
_EMPTY = "[]"
_NO_RULE = "No rule holds with these settings: fail-on takes some, and a baseline brings those of the preset default."


Rules = Sequence[tuple[str, str, str]]
"""Each rule with its level and who asked for it."""


def page(settings: Settings, rules: Rules) -> Page:
    """The page: which file was read, a line for each setting, or for each text of a list, and the rules that hold."""
    rows = tuple(row for setting in settings for row in _rows(setting))
    shown = Table("Settings", "of the gate; an option of the command replaces any of them", "lll", _HEADERS, rows)
    held = Table("Rules", "that hold with these settings", "lll", ("rule", "level", "from"), tuple(rules))
    tables, notes = (shown, *([held] if rules else [])), () if rules else (_NO_RULE,)
    if settings.file is not None:
        return Page(headline=f"Settings are read from {settings.file}.", tables=tables, notes=notes)
    return Page(headline=_UNSAID, facts=(("Looked in", ", ".join(settings.looked)),), tables=tables, notes=notes)


_HEADERS = ("key", "value", "from")


def _rows(setting: Setting[object]) -> Iterator[tuple[str, str, str]]:
    """The lines of a setting; the first has its name."""
    first, *more = _texts(setting.value)
    yield setting.key, first, setting.origin
    yield from (("", text, "") for text in more)


def _texts(value: object) -> tuple[str, ...]:
    """The value as files write it, but without quotation marks; each text of a list by itself."""
    if value is None:
        return (ABSENT,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, tuple):
        return value or (_EMPTY,)
    return (str(value),)


def json(settings: Settings, rules: Rules) -> bytes:
    """The settings by their keys, the file or where one was looked for, and the rules that hold."""
    return writing.written(
        {
            "schema": "bubblescope.config/1",
            "file": settings.file,
            "looked": list(settings.looked),
            "settings": {
                setting.key: {"value": _data(setting.value), "origin": setting.origin} for setting in settings
            },
            "rules": [{"rule": rule, "level": level, "origin": origin} for rule, level, origin in rules],
        }
    )


def _data(value: object) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value


def table(settings: Settings) -> bytes:
    """Key, value and origin; a list has a row for each of its texts, and an empty one a row without a value."""
    rows = (
        (setting.key, value, setting.origin)
        for setting in settings
        for value in (_data(setting.value) or [None] if isinstance(setting.value, tuple) else [_data(setting.value)])
    )
    return csv.table(("key", "value", "origin"), rows)
