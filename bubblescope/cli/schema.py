"""`bubblescope schema`: the JSON Schema of a report, or of a what-if."""

from __future__ import annotations

import click

from bubblescope.cli import console

__all__ = ["NAMES", "command"]

NAMES = ("report", "whatif")


@click.command("schema")
@click.argument("name", metavar="[report|whatif]", type=click.Choice(NAMES), default="report")
def command(*, name: str) -> None:
    """Print the JSON Schema of a report or of a what-if.

    That is what `analyze --json` and `whatif --json` write; the report's, if nothing is said.
    """
    from bubblescope.report import json  # noqa: PLC0415  only a run needs it

    console.result(json.schema(name))
