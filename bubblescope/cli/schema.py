"""`bubblescope schema`: the JSON Schema of each kind of JSON that a command writes."""

from __future__ import annotations

import click

from bubblescope.cli import console

__all__ = ["NAMES", "command"]

NAMES = ("report", "whatif", "info", "gate", "baseline", "comparison")


@click.command("schema")
@click.argument("name", metavar=f"[{'|'.join(NAMES)}]", type=click.Choice(NAMES), default="report")
def command(*, name: str) -> None:
    """Print the JSON Schema of what a command writes with --json.

    `report` is that of analyze, and what is printed if nothing is said; `whatif`, `info` and `gate`
    are those of the commands of that name, `baseline` is that of baseline save, `comparison` that of
    compare.
    """
    from bubblescope.report import json  # noqa: PLC0415  only a run needs it

    console.result(json.schema(name))
