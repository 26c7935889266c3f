"""From what a user names to the files to read: files, directories, globs that no shell expanded, pipes."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bubblescope.errors import InputError
from bubblescope.ingest.folders import passing
from bubblescope.ingest.reports import Told, exported
from bubblescope.ingest.sniff import Format, sniff
from bubblescope.model.trace import Finding

__all__ = ["Found", "Listed", "expand", "listed"]

_MOST_NAMED = 20
_DEEPEST = 4  # levels of folders below a directory that is named
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """The traces to read, in the order in which they were named, and what was passed over."""

    paths: tuple[Path, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """All files that were named, each with what it looks like, and what a reader must know of them."""

    files: tuple[Told, ...]
    findings: tuple[Finding, ...] = ()


def listed(args: Sequence[str]) -> Listed:
    """All files that `args` name, those included that are no trace or cannot be opened, in the order of `expand`.

    Raises:
        InputError: A path does not exist, a directory cannot be listed, or no file is in any.
    """
    files = _distinct([path for arg in dict.fromkeys(args) for path in _named(arg)])
    if not files:
        raise _no_trace(args, [])
    left = _leftovers(files)
    told: list[Told] = [(path, _unfinished(path) if path in left else _looks_like(path)) for path in files]
    try:
        kept, findings = exported(told)
    except InputError as error:
        return Listed(tuple(told), (Finding("skipped", "warning", error.message),))
    return Listed(tuple(kept), tuple(findings))


def _looks_like(path: Path) -> Format:
    """What a file is, also one that nobody may read."""
    try:
        return sniff(path)
    except (InputError, OSError) as error:
        return Format("foreign", f"nothing that can be opened: {error}", "Check its permissions.")


def expand(args: Sequence[str]) -> Found:
    """The traces among the files that `args` name.

    A directory stands for its files and those of its subdirectories, in an order in which rank 2 comes
    before rank 10. Files that are no trace are passed over, with a finding each. A pipe is copied to a
    file, as a trace is read more than once. A report of Nsight Systems is exported, and its export read.

    Raises:
        InputError: A path does not exist or cannot be read, a report cannot be exported, or no trace is
            among the files.
    """
    files = list(dict.fromkeys(path for arg in dict.fromkeys(args) for path in _named(arg)))
    files, leftovers = _without_leftovers(files)
    told, findings = exported([(path, sniff(path)) for path in files])
    foreign = [(path, found) for path, found in told if not found.readable]
    paths = _distinct([path for path, found in told if found.readable])
    if not paths:
        raise _no_trace(args, foreign)
    return Found(paths, (*findings, *leftovers, *(_skipped(path, found) for path, found in foreign)))


def _without_leftovers(files: list[Path]) -> tuple[list[Path], list[Finding]]:
    """The files without those that a profiler writes to until it is done, where what it wrote is there too."""
    left = _leftovers(files)
    message = "passed over, for a killed run left it unfinished, and {} is there"
    findings = [Finding("skipped", "info", message.format(path.with_suffix("").name), str(path)) for path in left]
    return [path for path in files if path not in left], findings


def _leftovers(files: Sequence[Path]) -> dict[Path, None]:
    """Those that a killed run left beside the finished file, in their order."""
    there = set(files)
    return dict.fromkeys(path for path in files if path.suffix == ".tmp" and path.with_suffix("") in there)


def _unfinished(path: Path) -> Format:
    name = path.with_suffix("").name
    return Format("foreign", f"what a killed run left unfinished of {name}", "Nothing: the finished file is read.")


def _named(arg: str) -> list[Path]:
    if not arg:
        raise InputError("expected the name of a trace, found an empty one", hint="Is a variable of the script unset?")
    try:
        return _files(arg)
    except OSError as error:
        raise InputError(f"{arg}: cannot be read: {error.strerror or error}", hint="Check the path.") from error


def _files(arg: str) -> list[Path]:
    if arg == "-":
        return [_standard_input()]
    path = Path(arg)
    if path.is_dir():
        return sorted(_inside(path), key=_natural)
    if path.is_file():
        return [path]
    if path.exists():
        return [_piped(path)]
    if _GLOB.search(arg):
        return _matching(arg)
    raise InputError(f"{arg}: expected a file or a directory, found neither", hint="Check the path.")


def _matching(pattern: str) -> list[Path]:
    matches = sorted(map(Path, glob.glob(pattern, recursive=True)), key=_natural)  # noqa: PTH207 - takes absolute patterns
    files = [file for match in matches for file in (_files(str(match)) if match.is_dir() else [match])]
    files = [file for file in files if file.is_file()]  # a pipe must be named to be waited for
    if not files:
        raise InputError(f"{pattern}: expected files of this pattern, found none", hint="Check the pattern.")
    return files


def _standard_input() -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        found = "none" if sys.stdin is None else "a terminal"
        raise InputError(f"-: expected a trace on standard input, found {found}", hint="Pipe a trace into it.")
    return _spooled("-", sys.stdin.buffer, "stdin")


def _piped(path: Path) -> Path:
    kind = path.stat().st_mode
    if not stat.S_ISFIFO(kind):
        found = "a socket" if stat.S_ISSOCK(kind) else "a device"
        raise InputError(f"{path}: expected a trace, found {found}", hint="Name a file, a directory or a pipe.")
    with path.open("rb") as pipe:
        return _spooled(str(path), pipe, path.name)


def _spooled(arg: str, pipe: IO[bytes], name: str) -> Path:
    """What comes out of a pipe as a file, which goes when the program does."""
    folder = passing()
    try:
        with (folder / name).open("wb") as file:
            shutil.copyfileobj(pipe, file, 2**20)
    except OSError as error:
        raise InputError(
            f"{arg}: cannot be copied to {folder}: {error.strerror or error}",
            hint="TMPDIR names the folder for temporary files.",
        ) from error
    return folder / name


def _inside(directory: Path) -> Iterator[Path]:
    """Files of a directory and of those below it; hidden ones are no business of anyone, and links may lead in circles.

    What is no file, as a pipe, is passed over, for reading it might never end.
    """
    for folder, folders, names in os.walk(directory, onerror=_refuse):
        depth = len(Path(folder).relative_to(directory).parts)
        folders[:] = [name for name in folders if not name.startswith(".") and depth < _DEEPEST]
        files = (Path(folder, name) for name in names if not name.startswith("."))
        yield from (file for file in files if file.is_file())


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror}", hint="Check its permissions.") from error


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
        return InputError(
            f"{', '.join(args) or 'no path'}: expected traces, found no files",
            hint=f"Name traces; in a directory, hidden files and those over {_DEEPEST} folders deep are not looked at.",
        )
    if len(foreign) == 1:
        path, found = foreign[0]
        return InputError(f"{path}: expected a trace, found {found.looks_like}", hint=found.hint)
    lines = [f"\n  {path}: {found.looks_like}" for path, found in foreign[:_MOST_NAMED]]
    more = f"\n  and {len(foreign) - _MOST_NAMED} more" if len(foreign) > _MOST_NAMED else ""
    rank = ("nsys-rep", "sqlite")  # what holds a recording after all goes before what does not
    path, first = min(foreign, key=lambda told: rank.index(told[1].kind) if told[1].kind in rank else len(rank))
    alike = all(found.hint == first.hint for _, found in foreign)
    hint = first.hint if alike else f"Of {path}: {first.hint}\nbubblescope info says what to do with each."
    return InputError(f"expected traces, found none among {len(foreign)} files:{''.join(lines)}{more}", hint=hint)
