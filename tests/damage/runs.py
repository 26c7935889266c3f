"""The program run in this process on files that may hold anything: exit code, output, and a limit of time."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bubblescope.cli import run

__all__ = ["LIMIT", "Hung", "Outcome", "analyzed", "bounded"]

LIMIT = 30
"""Seconds of the processor that no small file may take; those of the clock depend on who else uses the machine."""

ALLOWED = (0, 3, 4)


class Hung(BaseException):
    """The limit of time is over; no `Exception`, so that nothing on the way takes it for an error of its own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script sees."""

    code: int
    out: bytes
    err: str

    @property
    def fault(self) -> str | None:
        """Why this is no way to end, None where it is one."""
        if self.code not in ALLOWED:
            return f"exit {self.code}: {self.err}"
        if "Traceback" in self.err:
            return self.err
        return None


@contextlib.contextmanager
def bounded(seconds: int = LIMIT) -> Iterator[None]:
    """Raise `Hung` after so many seconds of work.

    Where even that is not heard, as in an endless loop of C, or where nothing works any more, the process ends.
    """

    def ring(_number: int, _frame: object) -> None:
        raise Hung(f"no answer within {seconds} s of work")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(20 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def analyzed(paths: Sequence[Path | str], *options: str) -> Outcome:
    """`bubblescope analyze PATHS OPTIONS`, in one process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), bounded():
        code = run(["analyze", *map(str, paths), "--jobs", "1", *options])
        sys.stdout.flush()
    return Outcome(code, out.buffer.getvalue(), err.buffer.getvalue().decode())
