"""What a gate shall do, from four layers: defaults, a file of the project, the environment, and what is stated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from bubblescope.errors import UsageError
from bubblescope.gate import config_files
from bubblescope.gate.config_files import ConfigFile, meant, named, quoted, seen_from
from bubblescope.model.settings import KEYS, OnMissing, Setting, Settings

__all__ = ["PREFIX", "resolve", "variable"]

PREFIX = "BUBBLESCOPE_GATE_"
"""How the variables of the environment begin that are settings."""

Layer = dict[str, Setting[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What may stand behind a key.

    Attributes:
        expected: what that is, in a message.
        accept: the value as settings hold it, None for what is wrong.
        parse: the text of a variable as a file would have it.
        words: the texts that are allowed, where they are few.
    """

    expected: str
    accept: Callable[[object], Any]
    parse: Callable[[str], object] = str.strip
    words: tuple[str, ...] = ()


def _path(value: object) -> Path | None:
    if not isinstance(value, str | os.PathLike):
        return None
    text = os.fspath(value)
    return Path(text) if isinstance(text, str) and text and "\0" not in text and _encodable(text) else None


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # half a letter; bytes that are no text are more than that
        return False
    return True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return None if _text(value) is None else (value,)
    if not isinstance(value, list | tuple) or not all(map(_text, value)):
        return None
    return tuple(value)


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _policy(value: object) -> object:
    return value if isinstance(value, str) and value in _POLICIES else None


def _split(text: str) -> object:
    """The pieces between commas and line ends; an empty text, which is wrong, where there are none."""
    return [piece.strip() for piece in re.split(r"[,\n]", text) if piece.strip()] or ""


_SWITCH: Mapping[str, bool] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _switch(text: str) -> object:
    return _SWITCH.get(text.strip().lower(), text)


_POLICIES: tuple[str, ...] = get_args(OnMissing)
_TEXTS = Kind(expected="a string or a list of strings", accept=_texts, parse=_split)
_FLAG = Kind(expected="true or false", accept=_flag, parse=_switch)
_KINDS: Mapping[str, Kind] = {
    "baseline": Kind(expected="the path of a file", accept=_path),
    "preset": Kind(expected="a string", accept=_text),
    "fail-on": _TEXTS,
    "warn-on": _TEXTS,
    "off": _TEXTS,
    "on-missing-baseline": Kind(expected="fail, warn or pass", accept=_policy, words=_POLICIES),
    "allow-mismatch": _FLAG,
    "allow-degraded": _FLAG,
}
_DEFAULTS: Mapping[str, object] = {"on-missing-baseline": "fail", "allow-mismatch": False, "allow-degraded": False}


def variable(key: str) -> str:
    """The variable of the environment that sets a key."""
    return PREFIX + key.upper().replace("-", "_")


def _option(key: str) -> str:
    return f"--{key}"


def resolve(
    stated: Mapping[str, object],
    *,
    directory: Path,
    environment: Mapping[str, str],
    file: Path | None = None,
    origin: Callable[[str], str] = _option,
) -> Settings:
    """The settings that hold; raises UsageError where any layer is wrong, also in what another layer replaces.

    A later layer replaces what an earlier one says of a key as a whole: defaults, the file, the environment, what is
    stated.

    Args:
        stated: options, or the arguments of a caller; keys may have underscores, and None is not stated.
        directory: the working directory.
        environment: its variables.
        file: the file to read instead of searching one.
        origin: what the origin of a stated key is called.
    """
    try:
        directory = Path(os.path.abspath(directory))  # noqa: PTH100  follows no links, so that `..` is what is meant
    except (OSError, ValueError) as error:
        raise UsageError("the working directory is gone", hint="change to one that exists") from error
    if file is None:
        found, looked = config_files.search(directory)
    else:
        found, looked = config_files.read(file, directory), ()
    layers = (
        {key: Setting(key=key, value=_DEFAULTS.get(key), origin="default") for key in KEYS},
        {} if found is None else _of_file(found, directory),
        dict(_of_environment(environment)),
        dict(_of_statements(stated, origin)),
    )
    merged: Layer = {key: setting for layer in layers for key, setting in layer.items()}
    return Settings(
        **{key.replace("-", "_"): setting for key, setting in merged.items()},
        file=None if found is None else found.shown,
        looked=looked,
    )


def _of_file(found: ConfigFile, directory: Path) -> Layer:
    layer = {}
    for key, value in found.values.items():
        accepted = _accepted(key, value, f"{key} in [{found.table}] of {named(found.shown)}")
        if isinstance(accepted, Path):
            accepted = Path(seen_from(found.directory / accepted, directory))
        layer[key] = Setting(key=key, value=accepted, origin=found.shown)
    return layer


def _of_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Setting[Any]]]:
    keys = {variable(key): key for key in KEYS}
    for name, text in environment.items():
        if not name.startswith(PREFIX) or not text.strip():
            continue
        if name not in keys:
            hint = meant(name.removeprefix(PREFIX), KEYS, variable)
            raise UsageError(f"no setting has the variable {named(name)}", hint=hint)
        key = keys[name]
        yield key, Setting(key=key, value=_accepted(key, _KINDS[key].parse(text), name), origin=name)


def _of_statements(stated: Mapping[str, object], origin: Callable[[str], str]) -> Iterator[tuple[str, Setting[Any]]]:
    for word, value in stated.items():
        key = word.replace("_", "-")
        if key not in KEYS:
            raise UsageError(f"no setting is called {quoted(word)}", hint=meant(word, KEYS))
        if value is not None:
            told = origin(key)
            where = told if told.endswith(key) else f"{key} of {told}"
            yield key, Setting(key=key, value=_accepted(key, value, where), origin=told)


def _accepted(key: str, value: object, where: str) -> Any:
    kind = _KINDS[key]
    accepted = kind.accept(value)
    if accepted is None:
        hint = meant(value, kind.words) if kind.words and isinstance(value, str) else None
        raise UsageError(f"{where} expects {kind.expected}, found {_told(value)}", hint=hint)
    return accepted


def _told(value: object) -> str:
    """What somebody wrote, short enough for a message."""
    if isinstance(value, str):
        return quoted(value) if value.strip() else "an empty string"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"the number {value}" if abs(value) < 10**20 else "a huge number"
    if isinstance(value, float):
        return f"the number {value!r}"
    if isinstance(value, list | tuple):
        return _told_list(value)
    if isinstance(value, Mapping):
        return "a table"
    return f"a {type(value).__name__}"


def _told_list(value: Sequence[object]) -> str:
    wrong = next((item for item in value if _text(item) is None), None)
    if wrong is None:
        return "a list"
    return f"a list with {'a list' if isinstance(wrong, list | tuple) else _told(wrong)} in it"
