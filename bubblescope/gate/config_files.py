"""The file that holds the settings of a project: where it lies, and what stands in its table for the gate."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bubblescope.errors import UsageError
from bubblescope.model.settings import KEYS

__all__ = ["LARGEST", "ConfigFile", "meant", "named", "read", "search", "seen_from"]

LARGEST = 1_000_000
"""Bytes that a file may have: far more than settings need, and little enough to be read by accident."""

_OWN, _SHARED = "bubblescope.toml", "pyproject.toml"
_SHARED_TABLE = ("tool", "bubblescope")
_GATE = "gate"

# tomllib takes time and memory that grow with the square of the parts of a key: 20 kB of `a.a.a...` are a second.
# Nothing begins after a backslash: so no text is gone through twice.
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_ENDLESS_KEY = re.compile(rf"(?<![\w\\-])(?:{_PART}[ \t]*+\.[ \t]*+){{100}}", re.ASCII)
_PLACE = re.compile(r"(.*?) ?\(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file that was read.

    Attributes:
        shown: its path as seen from the working directory.
        directory: where it lies; its paths are relative to that.
        table: the name of its table for the gate.
        values: what stands there, unchecked.
    """

    shown: str
    directory: Path
    table: str
    values: Mapping[str, object]


def search(directory: Path) -> tuple[ConfigFile | None, tuple[str, ...]]:
    """The nearest file from a directory upwards, and the directories that were looked at.

    The search ends after the root of a repository. A pyproject.toml without a table for bubblescope does not count.
    """
    looked = []
    for place in (directory, *directory.parents):
        looked.append(os.path.relpath(place, directory))
        for name in (_OWN, _SHARED):
            found = _found(place / name, directory)
            if found is not None:
                return found, tuple(looked)
        if os.path.lexists(place / ".git"):
            break
    return None, tuple(looked)


def _found(path: Path, directory: Path) -> ConfigFile | None:
    if not os.path.lexists(path):
        return None
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113  pathlib's raise in odd directories
        raise UsageError(f"{named(seen_from(path, directory))} is not a file")  # a pipe would never end
    tables = _tables(path, directory)
    return None if tables is None else _config(path, directory, tables)


def read(path: Path, directory: Path) -> ConfigFile:
    """The file that somebody named; one without a table for bubblescope sets nothing."""
    tables = _tables(directory / path, directory)
    return _config(directory / path, directory, {} if tables is None else tables)


def _tables(path: Path, directory: Path) -> Mapping[str, object] | None:
    """What the file has for bubblescope; None where that is nothing."""
    document = _parsed(path, named(seen_from(path, directory)))
    if path.name != _SHARED:
        return document
    tool = document.get(_SHARED_TABLE[0])
    if not isinstance(tool, Mapping) or _SHARED_TABLE[1] not in tool:
        return None
    return _table(tool[_SHARED_TABLE[1]], ".".join(_SHARED_TABLE), named(seen_from(path, directory)))


def _config(path: Path, directory: Path, tables: Mapping[str, object]) -> ConfigFile:
    shown = seen_from(path, directory)
    above = _SHARED_TABLE if path.name == _SHARED else ()
    table = ".".join((*above, _GATE))
    for key in tables:
        if key != _GATE:
            where = f"in [{'.'.join(above)}]" if above else "at the top level"
            hint = _misplaced(key, table) or meant(key, (_GATE,))
            raise UsageError(f"{named(shown)} has an unknown key {quoted(key)} {where}", hint=hint)
    values = _table(tables.get(_GATE, {}), table, named(shown))
    for key in values:
        if key not in KEYS:
            raise UsageError(f"{named(shown)} has an unknown key {quoted(key)} in [{table}]", hint=meant(key, KEYS))
    return ConfigFile(shown=shown, directory=path.parent, table=table, values=values)


def _table(value: object, name: str, file: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{file} must hold a table [{name}], found a value of that name")
    return value


def _misplaced(key: str, table: str) -> str | None:
    """What to do about a key that is right elsewhere."""
    if key.replace("_", "-") in KEYS:
        return f"put it into [{table}]"
    if key in _SHARED_TABLE:
        return f"its table is [{table}]; [{'.'.join(_SHARED_TABLE)}] is for {_SHARED}"
    return None


def _parsed(path: Path, name: str) -> dict[str, Any]:
    text = _text(path, name)
    if _ENDLESS_KEY.search(text):
        raise UsageError(f"{name} has a key of 100 parts and more, which no setting has")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{name} is not read: its values are nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{name} is not valid TOML{_told(str(error), text)}") from error


def _told(message: str, text: str) -> str:
    """` at line 3, column 5: what is wrong`."""
    place = _PLACE.fullmatch(message)
    if place is None:
        return f": {_short(message)}"
    where = f"line {place[2]}, column {place[3]}" if place[2] else f"line {text.count(chr(10)) + 1}, where it ends"
    return f" at {where}: {_short(place[1])}"


def _text(path: Path, name: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  as short, and nothing is looked up before
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL, or half a letter
        raise UsageError(f"cannot read {name}: no file can have that name") from error
    if len(data) > LARGEST:
        raise UsageError(f"{name} is too large: settings need less than {LARGEST // 1_000_000} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not valid TOML at line {line}: it is not UTF-8") from error


def seen_from(path: Path, directory: Path) -> str:
    """The path from a directory on, or from the root where that is shorter."""
    try:
        near = os.path.relpath(path, directory)
    except ValueError:  # on another drive, or no path at all
        return str(path)
    return near if len(near) <= len(str(path)) else str(path)


def named(path: str) -> str:
    """A path in a message: as it is, or quoted where it would not show."""
    return path if path.isprintable() else repr(path)


def quoted(key: str) -> str:
    """A word that somebody wrote, in a message."""
    return repr(_short(key))


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."


def meant(word: str, known: Collection[str], name: Callable[[str], str] = str) -> str:
    """What to write in place of an unknown word; `name` says how a known one is written."""
    near = get_close_matches(word[:100].lower().replace("_", "-"), known, n=1)
    return f"did you mean {name(near[0])}?" if near else f"known: {', '.join(map(name, known))}"
