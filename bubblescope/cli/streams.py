"""Standard streams that are closed or full when the program starts or ends."""

from __future__ import annotations

import errno
import io
import os
import sys

__all__ = ["fill", "is_closed_pipe", "settle"]

STDIN, STDOUT, STDERR = 0, 1, 2


def fill() -> None:
    """Give streams that are closed a place, or the next file that is opened takes it and what is printed goes there.

    Writing to a stdout that was closed fails, as it must; what is told on a closed stderr goes nowhere.
    A stdout without a buffer gets one.
    """
    if sys.stdin is None:
        _hold(STDIN, os.O_RDONLY)
    if sys.stdout is None:
        _hold(STDOUT, os.O_RDONLY)
        sys.stdout = open(STDOUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  for good
    elif isinstance(sys.stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: would lose what a write leaves over
        sys.stdout = open(  # noqa: SIM115
            STDOUT, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False
        )
    if sys.stderr is None:
        _hold(STDERR, os.O_WRONLY)
        sys.stderr = open(STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def settle() -> None:
    """Let what could not be written go nowhere, or the interpreter complains at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_closed_pipe(error: OSError) -> bool:
    """Whether what was written had no reader any more."""
    # Windows reports EINVAL where a pipe's reader is gone.
    return error.errno == errno.EPIPE or (sys.platform == "win32" and error.errno == errno.EINVAL)


def _hold(number: int, flags: int) -> None:
    handle = os.open(os.devnull, flags)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
