"""`bubblescope config show`: the settings of the gate, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from bubblescope.cli import pages
from bubblescope.cli.options import GroupedCommand, GroupedOption, config_option, output_options
from bubblescope.cli.output import Output
from bubblescope.cli.subcommands import Subcommands

if TYPE_CHECKING:
    from bubblescope.model.settings import Settings

__all__ = ["command", "resolved", "show", "stated"]


def stated(context: click.Context) -> dict[str, object]:
    """The settings that the command line itself states: no defaults of options, and no empty lists for unsaid ones."""
    from bubblescope.model.settings import KEYS  # noqa: PLC0415  only a run needs it

    names = {key.replace("-", "_") for key in KEYS} & context.params.keys()
    return {
        name: context.params[name]
        for name in sorted(names)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def resolved(options: Mapping[str, object], config: Path | None) -> Settings:
    """The settings that hold where the command runs."""
    from bubblescope.gate.settings import resolve  # noqa: PLC0415  tomllib is not for --help

    return resolve(options, directory=Path(), environment=os.environ, file=config)


@click.group("config", cls=Subcommands)
def command() -> None:
    """Show the settings of the gate and where each comes from."""


@command.command("show", cls=GroupedCommand)
@click.option("--preset", metavar="NAME", cls=GroupedOption, heading="Settings", help="As if this were the preset.")
@config_option
@output_options
def show(*, config: Path | None, preset: str | None, output: Output, progress: bool) -> None:  # noqa: ARG001
    """Show every setting of the gate with its value and origin.

    Each comes from the default, from the nearest bubblescope.toml or pyproject.toml, or from a
    variable BUBBLESCOPE_GATE_... of the environment; the last of them that states it wins. Options
    of a command win over all. Below stand the rules that hold with them.

    \b
    Examples:
      bubblescope config show
      bubblescope config show --config ci/bubblescope.toml --json
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    settings = resolved(stated(click.get_current_context()), config)
    from bubblescope.gate.policy import rules_of  # noqa: PLC0415  what rules take is not for --help

    rules = [(each.rule.text, each.level, each.origin) for each in rules_of(settings)]
    from bubblescope.report import settings as shown  # noqa: PLC0415  rich and orjson are not for --help

    result = pages.Result(
        page=lambda: shown.page(settings, rules),
        json=lambda: shown.json(settings, rules),
        csv=lambda: shown.table(settings),
    )
    pages.write(output, result)
