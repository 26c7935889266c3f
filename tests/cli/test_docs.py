"""The page about the command line says everything, and nothing that is not there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from bubblescope import errors
from bubblescope.cli.group import COMMANDS
from bubblescope.report.registry import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_and_options_are_documented(name):
    """Every command and every spelling of its options is on the page."""
    assert f"| `{name}" in PAGE
    options = [
        option for option in import_module(f"bubblescope.cli.{name}").command.params if isinstance(option, click.Option)
    ]
    spellings = {spelling for option in options for spelling in option.opts}
    assert not {spelling for spelling in spellings if not re.search(rf"`{spelling}[ `]", PAGE)}


def test_no_option_is_made_up():
    """Every option on the page exists."""
    real = {
        name
        for command in COMMANDS
        for o in import_module(f"bubblescope.cli.{command}").command.params
        for name in o.opts
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= {*real, "--help", "--version"}


def test_exit_codes_and_suffixes_are_documented():
    """Every exit code and every suffix that is read has its place."""
    codes = {getattr(errors, name).exit_code for name in errors.__all__}
    assert all(f"\n| {code} |" in PAGE for code in codes | {0, 1, 130})
    assert all(f"`{suffix}`" in PAGE for form in FORMATS.values() for suffix in form.suffixes)
