"""The command line: `main` runs a command and turns whatever happens into an exit code.

0  ok                      3  an input is missing, unreadable or unusable
1  a gate rule failed      4  the inputs cannot decide the question
2  wrong usage            70  a bug of bubblescope     130  interrupted
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from bubblescope.cli import console, streams
from bubblescope.cli.group import root
from bubblescope.errors import BubblescopeError

__all__ = ["main", "run"]

USAGE = 2
BUG = 70
INTERRUPTED = 130

_COMPLETION = "_BUBBLESCOPE_COMPLETE"


def main() -> NoReturn:
    """The entry point of `bubblescope`."""
    _prepare()
    streams.fill()
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first is told
        code = INTERRUPTED
    streams.settle()
    gc.freeze()  # or the collector walks over all there is once more
    sys.exit(code)


def _prepare() -> None:
    """Spend no time on what a command of a second has no use for; before numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrix here is large, and a process of one thread can fork
    gc.set_threshold(100_000, 50, 100)  # imports make many objects and hardly a cycle


def run(arguments: Sequence[str]) -> int:
    """Run a command line, print what went wrong, and return the exit code."""
    try:
        return _invoke(arguments)
    except BubblescopeError as error:
        console.error(error.message, hint=error.hint)
        return error.exit_code
    except click.ClickException as error:
        console.error(error.format_message(), hint=_help_hint(error))
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        console.interrupted()
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one place where a bug becomes an exit code
        if isinstance(error, OSError) and _while_printing(error):
            return _unwritten(error)
        console.bug(error)
        return BUG


def _invoke(arguments: Sequence[str]) -> int:
    """What click's own `main` does, but without its exit codes: 1 for a closed pipe would mean a failed gate."""
    instruction = os.environ.get(_COMPLETION)
    if instruction:
        from click.shell_completion import shell_complete  # noqa: PLC0415  a shell asks for it, nobody else

        return shell_complete(root, {}, "bubblescope", _COMPLETION, instruction)
    try:
        with root.make_context("bubblescope", list(arguments)) as context:
            root.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return 0


def _help_hint(error: click.ClickException) -> str | None:
    context = getattr(error, "ctx", None)
    return None if context is None else f"see {context.command_path} --help"


def _while_printing(error: OSError) -> bool:
    """Whether stdout refused: everything for it goes through click's `echo`, and nothing else does."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _unwritten(error: OSError) -> int:
    if streams.is_closed_pipe(error):
        return 0  # the reader had enough
    why = "stdout is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    console.error(f"cannot write the output: {why}")
    return USAGE
