"""From what a user names to the files to read: files, directories, globs that no shell expanded, standard input."""

from __future__ import annotations

import atexit
import glob
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.ingest.sniff import Format, sniff
from bubblescope.model.trace import Finding

__all__ = ["Found", "expand"]

_MOST_NAMED = 20
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """The traces to read, in the order in which they were named, and what was passed over."""

    paths: tuple[Path, ...]
    findings: tuple[Finding, ...] = ()


def expand(args: Sequence[str]) -> Found:
    """The traces among the files that `args` name.

    A directory stands for its files and those of its subdirectories, in an order in which rank 2 comes
    before rank 10. Files that are no trace are passed over, with a finding each.

    Raises:
        InputError: A path does not exist or cannot be read, or no trace is among the files.
    """
    files = list(dict.fromkeys(path for arg in args for path in _files(arg)))
    formats = [sniff(path) for path in files]
    foreign = [(path, found) for path, found in zip(files, formats, strict=True) if not found.readable]
    paths = _distinct([path for path, found in zip(files, formats, strict=True) if found.readable])
    if not paths:
        raise _no_trace(args, foreign)
    return Found(paths, tuple(_skipped(path, found) for path, found in foreign))


def _files(arg: str) -> list[Path]:
    if arg == "-":
        return [_spooled()]
    path = Path(arg)
    if path.is_dir():
        return sorted(_inside(path), key=_natural)
    if path.exists():
        return [path]
    if _GLOB.search(arg):
        matches = sorted(map(Path, glob.glob(arg, recursive=True)), key=_natural)  # noqa: PTH207 - takes absolute patterns
        if matches:
            return [file for match in matches for file in (_files(str(match)) if match.is_dir() else [match])]
        raise InputError(f"{arg}: expected files of this pattern, found none", hint="Check the pattern.")
    raise InputError(f"{arg}: expected a file or a directory, found neither", hint="Check the path.")


def _spooled() -> Path:
    """Standard input as a file, as a trace is read more than once; it goes when the program does."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("-: expected a trace on standard input, found a terminal", hint="Pipe a trace into it.")
    folder = Path(tempfile.mkdtemp(prefix="bubblescope-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 2**20)
    return path


def _inside(directory: Path) -> Iterator[Path]:
    """Files of a directory and of its subdirectories; hidden ones are no business of anyone."""
    try:
        for entry in directory.iterdir():
            if entry.name.startswith("."):
                continue
            if entry.is_file():
                yield entry
            elif entry.is_dir():
                yield from (file for file in entry.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"{error.filename}: cannot be read: {error.strerror}", hint="Check its permissions."
        ) from error


def _natural(path: Path) -> list[list[tuple[int, int, str]]]:
    """A key that orders numbers in names by their value."""
    return [
        [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", part) if piece]
        for part in path.parts
    ]


def _distinct(paths: list[Path]) -> tuple[Path, ...]:
    """Each file once, however often and by whatever path it was named."""
    seen: dict[Path, Path] = {}
    for path in paths:
        seen.setdefault(path.resolve(), path)
    return tuple(seen.values())


def _skipped(path: Path, found: Format) -> Finding:
    return Finding("skipped", "info", f"passed over, for it is no trace: it looks like {found.looks_like}", str(path))


def _no_trace(args: Sequence[str], foreign: list[tuple[Path, Format]]) -> InputError:
    if not foreign:
        return InputError(f"{', '.join(args) or 'no path'}: expected traces, found no files", hint="Name traces.")
    if len(foreign) == 1:
        path, found = foreign[0]
        return InputError(f"{path}: expected a trace, found {found.looks_like}", hint=found.hint)
    lines = [f"\n  {path}: {found.looks_like}" for path, found in foreign[:_MOST_NAMED]]
    more = f"\n  and {len(foreign) - _MOST_NAMED} more" if len(foreign) > _MOST_NAMED else ""
    hint = next((found.hint for _, found in foreign if found.kind == "sqlite"), foreign[0][1].hint)
    return InputError(f"expected traces, found none among {len(foreign)} files:{''.join(lines)}{more}", hint=hint)
