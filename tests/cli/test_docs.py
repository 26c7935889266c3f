"""The page about the command line says everything, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from bubblescope import errors
from bubblescope.cli.group import COMMANDS
from bubblescope.report.registry import FORMATS
from tests.cli.commands import walk

COMMANDS_OF = {name: [command for typed, command in walk() if typed.split()[0] == name] for name in COMMANDS}
PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")


def options(command: click.Command) -> set[str]:
    """Every spelling of the options of a command."""
    return {
        spelling
        for each in command.params
        if isinstance(each, click.Option)
        for spelling in (*each.opts, *each.secondary_opts)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_and_options_are_documented(name):
    """Every command, and every spelling of its options, is on the page."""
    assert f"| `{name}" in PAGE
    spellings = {spelling for command in COMMANDS_OF[name] for spelling in options(command)}
    assert not {spelling for spelling in spellings if not re.search(rf"`{spelling}[ `]", PAGE)}


@pytest.mark.parametrize("name", [name for name, command in walk() if not isinstance(command, click.Group)])
def test_commands_have_a_section_or_a_row(name):
    """Every command that can be run is in the table, in full where it is a command of a command."""
    assert re.search(rf"^\| .*`{name}[ `]", PAGE, re.MULTILINE)


def test_no_option_is_made_up():
    """Every option on the page exists."""
    real = {name for _, command in walk() for name in options(command)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= {*real, "--help", "--version"}


def test_exit_codes_and_suffixes_are_documented():
    """Every exit code and every suffix that is read has its place."""
    codes = {getattr(errors, name).exit_code for name in errors.__all__}
    assert all(f"\n| {code} |" in PAGE for code in codes | {0, 1, 130})
    assert all(f"`{suffix}`" in PAGE for form in FORMATS.values() for suffix in form.suffixes)
