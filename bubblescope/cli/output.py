"""Where a result goes: to stdout, or to a file that is whole or not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bubblescope import atomic
from bubblescope.cli import console
from bubblescope.errors import UsageError
from bubblescope.report import registry

if TYPE_CHECKING:
    from bubblescope.model.report import Report

__all__ = ["Output"]


@dataclass(frozen=True, slots=True)
class Output:
    """The format asked for, None to guess, and the file, None for stdout."""

    format: str | None = None
    target: str | None = None
    force: bool = False
    quiet: bool = False

    def check(self) -> None:
        """Refuse what cannot be written before the work is done, not after."""
        self._format()
        if self.target is None:
            return
        if not self.target:
            raise UsageError("an output takes the name of a file, found an empty one")
        try:
            self._check_path(Path(self.target))
        except OSError as error:
            raise UsageError(f"cannot write {self.target}: {error.strerror or error}") from error

    def _check_path(self, path: Path) -> None:
        if path.is_dir():
            raise UsageError(f"{self.target} is a directory", hint="-o takes the name of a file")
        if path.is_file() and not self.force:  # a device or a pipe loses nothing
            raise UsageError(f"{self.target} exists already", hint="-f overwrites it")
        if not path.parent.is_dir():
            raise UsageError(f"cannot write {self.target}: there is no such directory")

    def write(self, report: Report) -> None:
        """Write the report in its format."""
        if self.target is not None:
            self.check()
            write_file(self.target, registry.render(self._format(), report))
            if not self.quiet:
                console.note(f"Wrote {self.target}")
        elif self._format() == "table":
            console.show(report)
        else:
            console.result(registry.render(self._format(), report))

    def _format(self) -> str:
        return self.format or registry.guess(self.target)


def write_file(target: str, data: bytes) -> None:
    """Write a file whole; raises UsageError where that cannot be done."""
    path = Path(target)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # /dev/null must stay what it is
        else:
            atomic.write(path.resolve(), data)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error
