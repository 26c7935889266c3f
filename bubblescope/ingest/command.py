"""The commands that turn a report of Nsight Systems into an export."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

__all__ = ["REPLACING", "export_again", "export_command", "no_option"]

REPLACING = "--force-overwrite=true"
"""The option by which nsys replaces what is there."""


def export_command(
    report: Path, output: Path | None = None, options: Sequence[str] = ("--include-json=true",)
) -> list[str]:
    """The command by which `nsys` exports a report, by default to a file of its name beside it.

    NCCL's peers and message sizes stand in the JSON of NVTX payloads, which `nsys` leaves out unless it is told.
    """
    target = output or report.with_suffix(".sqlite")
    return ["nsys", "export", "--type", "sqlite", *options, "--output", no_option(target), no_option(report)]


def export_again(export: Path) -> str:
    """The command that makes an export anew from the report of its name, in place of what is there."""
    report = export.with_suffix(".nsys-rep")
    return shlex.join(export_command(report, export, ("--include-json=true", REPLACING)))


def no_option(path: Path) -> str:
    """A path that is not taken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
