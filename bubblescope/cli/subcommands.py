"""A command that holds commands: `bubblescope config show`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from bubblescope.cli import console
from bubblescope.errors import UsageError

__all__ = ["Subcommands"]


class Subcommands(click.Group):
    """A group that points out a near name, and whose help alone is no success."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help where nothing was asked for; a script that forgot the command must not pass."""
        if not args and not ctx.resilient_parsing:
            console.note(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.commands, n=1)
            hint = f"did you mean {ctx.command_path} {near[0]}?" if near else f"see {ctx.command_path} --help"
            raise UsageError(f"{ctx.command_path} has no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)
