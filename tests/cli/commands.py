"""The commands of the program, those within commands too."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bubblescope.cli.group import root

__all__ = ["walk"]


def walk(group: click.Group = root, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, with its name as it is typed: `config`, `config show`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield f"{above}{name}", command
        if isinstance(command, click.Group):
            yield from walk(command, f"{above}{name} ")
