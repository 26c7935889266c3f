"""The group of commands: a table of names, so that `--help` imports none of them."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from bubblescope._version import __version__
from bubblescope.cli import console
from bubblescope.errors import UsageError

__all__ = ["COMMANDS", "LazyGroup", "root"]

# Name, one line of help; the module bubblescope.cli.NAME holds it as `command`.
COMMANDS = {
    "analyze": "Measure the bubble of a training run and tell where it comes from.",
    "gate": "Pass or fail a run: by limits, or against a baseline.",
    "baseline": "Save a run's numbers as a baseline, show one, or tell two apart.",
    "whatif": "Forecast what a training run would gain from a change.",
    "compare": "Compare two runs: what changed, and what changed it.",
    "info": "Say what trace files hold, what is wrong and what they lack.",
    "simulate": "Simulate a schedule and set it beside its formula.",
    "explain": "Explain a metric, a cause, a finding, a what-if or a schedule.",
    "schema": "Print the JSON Schema of what a command writes with --json.",
    "config": "Show the settings of the gate and where each comes from.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        return cast(click.Command, import_module(f"bubblescope.cli.{cmd_name}").command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; a near name or a forgotten `analyze` is pointed out."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(f"no command is called {args[0]!r}", hint=_meant(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table itself, where click would import every command for its help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _meant(name: str) -> str:
    near = get_close_matches(name, COMMANDS, n=1)
    if near:
        return f"did you mean {near[0]}?"
    if Path(name).exists():
        return f"did you mean bubblescope analyze {name}?"
    return "see bubblescope --help"


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 a gate failed, 2 usage, 3 unusable input, 4 undecided, 70 a bug, 130 interrupted.",
)
@click.version_option(__version__, "--version", "-V", prog_name="bubblescope", message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Find the pipeline bubble in the traces of a training run.

    How much GPU time the run loses to it, how much its schedule owes in theory, and where the
    rest comes from.

    \b
    Examples:
      bubblescope analyze traces/
      bubblescope analyze traces/ --json -o report.json
      bubblescope baseline save traces/ -o bubble.json
      bubblescope gate traces/ --baseline bubble.json
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    if context.invoked_subcommand is None:
        # A script that forgot the command must not pass as one that succeeded.
        console.note(context.get_help())
        context.exit(2)
