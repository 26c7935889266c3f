"""The formats of a report: a new one is a module with a function and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from bubblescope.errors import UsageError

if TYPE_CHECKING:
    from bubblescope.model.report import Report

__all__ = ["FORMATS", "Format", "guess", "render"]


@dataclass(frozen=True, slots=True)
class Format:
    """Where the renderer is, a function from a Report to bytes, and the suffixes that ask for it."""

    module: str
    function: str
    suffixes: tuple[str, ...]


FORMATS = {
    "table": Format("bubblescope.report.terminal", "plain", (".txt", ".log")),
    "json": Format("bubblescope.report.json", "render", (".json",)),
    "markdown": Format("bubblescope.report.markdown", "render", (".md", ".markdown")),
    "csv": Format("bubblescope.report.csv", "render", (".csv",)),
}


def guess(target: str | None) -> str:
    """The format that an output file's name asks for; a table where there is no suffix to read."""
    suffix = PurePath(target or "").suffix.lower()
    if not suffix:
        return "table"
    for name, form in FORMATS.items():
        if suffix in form.suffixes:
            return name
    known = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
    raise UsageError(f"no format is known for {target!r}", hint=f"add --format, or use one of {known}")


def render(name: str, report: Report) -> bytes:
    """The report in the format of that name."""
    form = FORMATS[name]
    function = cast("Callable[[Report], bytes]", getattr(import_module(form.module), form.function))
    return function(report)
