"""`bubblescope schema`: the JSON Schema of the report."""

from __future__ import annotations

import click

from bubblescope.cli import console

__all__ = ["command"]


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of the report that `analyze --json` writes."""
    from bubblescope.report import json  # noqa: PLC0415  only a run needs it

    console.result(json.schema())
