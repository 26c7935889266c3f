"""`bubblescope schema`: the JSON Schema of a report, a what-if, a gate, a baseline, or of what files are."""

from __future__ import annotations

import click

from bubblescope.cli import console

__all__ = ["NAMES", "command"]

NAMES = ("report", "whatif", "info", "gate", "baseline")


@click.command("schema")
@click.argument("name", metavar="[report|whatif|info|gate|baseline]", type=click.Choice(NAMES), default="report")
def command(*, name: str) -> None:
    """Print the JSON Schema of a report or of another result.

    That is what `analyze --json`, `whatif --json`, `info --json`, `gate --json` and `baseline save` write; the
    report's, if nothing is said.
    """
    from bubblescope.report import json  # noqa: PLC0415  only a run needs it

    console.result(json.schema(name))
