"""Help is fast because it imports nothing, and complete because nothing is left out."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import click
import pytest

from bubblescope.cli.group import COMMANDS, root
from tests.cli.commands import walk

HEAVY = ["asyncio", "importlib.metadata", "msgspec", "numpy", "orjson", "pandas", "rich", "isal", "multiprocessing"]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([*name.split(), "--help"] for name, _ in walk())])
def test_help_imports_nothing_heavy(arguments):
    """Help and version need neither tables of numbers nor colours."""
    code = f"import sys; from bubblescope.cli import run; run({arguments!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    assert not set(HEAVY) & set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_what_the_table_says(name):
    """The line in the table is the first sentence of the command's own help."""
    command = import_module(f"bubblescope.cli.{name}").command
    assert command.name == name
    assert command.help.splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("name", [name for name, _ in walk()])
def test_every_command_explains_itself(name, bubblescope):
    """Each command, also one of a command, has a help that begins with how it is called and says what it does."""
    command = dict(walk())[name]
    seen = bubblescope(*name.split(), "-h")
    assert seen.code == 0
    assert seen.out.startswith(f"Usage: bubblescope {name} ")
    assert command.help.splitlines()[0] in " ".join(seen.out.split())
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_root_lists_every_command(bubblescope):
    """The help of the program names all commands with their purpose."""
    seen = bubblescope("--help")
    assert all(name in seen.out and line in seen.out for name, line in COMMANDS.items())
    assert list(root.list_commands(None)) == list(COMMANDS)


def test_help_shows_examples_first_and_groups_options(bubblescope):
    """Examples come before options, and each option stands under its heading."""
    seen = bubblescope("analyze", "-h")
    order = ["Usage:", "Examples:", "Which part of the run:", "What the traces cannot tell", "Running:", "Output:"]
    places = [seen.out.index(part) for part in order]
    assert places == sorted(places)


def test_completion_answers_the_shell(bubblescope, monkeypatch):
    """The shell's question is answered with a script, not with a run."""
    monkeypatch.setenv("_BUBBLESCOPE_COMPLETE", "zsh_source")
    seen = bubblescope()
    assert seen.code == 0
    assert "compdef" in seen.out
