"""The only place that prints: results to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from bubblescope.model.report import Report

__all__ = ["Progress", "bug", "drawn", "error", "instruct", "interrupted", "note", "result", "show"]

_PLAIN_WIDTH = 100
_SIZES = ("COLUMNS", "LINES")
_LARGEST_SIZE = 10_000


def result(data: bytes) -> None:
    """Write a result to stdout as it is."""
    click.echo(data, nl=False)


def show(report: Report) -> None:
    """Print a report's summary to stdout."""
    from bubblescope.report import terminal  # noqa: PLC0415  rich is slow to import, and --help needs none of it

    drawn(lambda console: terminal.render(report, console))


def drawn(draw: Callable[[Console], None]) -> None:
    """Print what is drawn to stdout, in colour where that is a terminal."""
    page = _Page(sys.stdout)
    console = _console(page)
    draw(console)
    text = page.getvalue()
    if not console.is_terminal:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    click.echo(text, nl=False, color=True)  # rich has decided about colour


def note(text: str) -> None:
    """Tell something that is no result."""
    _tell(_safe(text))


def instruct(line: str) -> None:
    """Give a CI system a command of its own, whose names are escaped already."""
    _tell(line)


def interrupted() -> None:
    """Tell that the user stopped the program, with nothing imported: an import may be what was stopped."""
    _tell("error: interrupted")


def error(message: str, *, hint: str | None = None) -> None:
    """Tell what went wrong, and what to do next."""
    from rich.text import Text  # noqa: PLC0415

    page = _Page(sys.stderr)
    console = _console(page)
    console.print(Text.assemble(("error: ", "bold red"), _safe(message)), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("hint: ", "bold cyan"), _safe(hint)), soft_wrap=True)
    _tell(page.getvalue().removesuffix("\n"), color=True)


def bug(problem: Exception) -> None:
    """Tell that bubblescope itself failed; the traceback only for who asks for it."""
    if os.environ.get("BUBBLESCOPE_DEBUG", "0") not in {"", "0"}:
        import traceback  # noqa: PLC0415

        _tell(_safe("".join(traceback.format_exception(problem))).rstrip("\n"))
    error(
        f"this is a bug in bubblescope: {type(problem).__name__}: {problem}",
        hint="run it again with BUBBLESCOPE_DEBUG=1 set and report what it prints",
    )


def _tell(text: str, *, color: bool | None = None) -> None:
    """Write lines to stderr; where nobody can be told, the result is still worth having."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True, color=color)


class _Page(io.StringIO):
    """Takes what rich prints for a stream, for rich itself would end the program with 1 where nobody reads it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()


def _safe(text: str) -> str:
    """The text with its lines, but without characters that command a terminal."""
    from bubblescope.report.wording import visible  # noqa: PLC0415

    return "\n".join(map(visible, text.split("\n")))


def _console(stream: TextIO) -> Console:
    """A console that reads no markup, and is wide enough for the tables where no terminal says its width."""
    from rich.console import Console  # noqa: PLC0415

    # rich reads these itself, and fails at what it takes for digits.
    environment = {name: value for name, value in os.environ.items() if name not in _SIZES or _is_size(value)}
    wide = None if stream.isatty() or "COLUMNS" in environment else _PLAIN_WIDTH
    return Console(file=stream, width=wide, markup=False, emoji=False, highlight=False, _environ=environment)


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= _LARGEST_SIZE


class Progress:
    """Tells how far reading is, once it takes long: a bar for a person, lines for a log.

    Call it with the bytes done and the bytes in all. A bar needs both streams to be terminals;
    where stdout is piped the pipe's reader prints too, and a bar would tear its lines.
    """

    def __init__(self, *, wanted: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = self._told = clock()
        self._bar: Bar | None = None
        self._report = self._reporter(wanted=wanted)

    def _reporter(self, *, wanted: bool) -> Callable[[int, int], None] | None:
        if not wanted:
            return None
        if not sys.stderr.isatty():
            return self._tell_line
        return self._move_bar if sys.stdout.isatty() else None

    def __call__(self, done: int, total: int) -> None:
        """Take note of the progress."""
        if self._report is not None:
            self._report(done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _tell_line(self, done: int, total: int) -> None:
        if self._clock() - self._told < 10 or not total:
            return
        self._told = self._clock()
        _tell(f"bubblescope: read {done / 1e6:.0f} of {total / 1e6:.0f} MB ({done / total:.0%})")

    def _move_bar(self, done: int, total: int) -> None:
        if self._bar is None:
            if self._clock() - self._started < 1:
                return
            self._bar = _start_bar()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)


def _start_bar() -> Bar:
    from rich import progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("reading"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TimeRemainingColumn(),
    )
    bar = progress.Progress(*columns, console=_console(sys.stderr), transient=True)
    bar.add_task("", total=None)
    bar.start()
    return bar
