"""Reports and baselines as files: what `analyze --json` and `baseline save` wrote, read back."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.gate.condense import condense
from bubblescope.model.baseline import Baseline
from bubblescope.model.report import Report

__all__ = ["Known", "read", "reference"]

Known = Baseline | Report
"""What a file can hold that is no trace."""

_HEAD = re.compile(rb'\s*\{\s*"schema"\s*:\s*"bubblescope\.(\w+)/(\d+)"')
_MAKE = "a baseline is a file that bubblescope baseline save writes"
_LARGEST = 256 << 20
"""Bytes of the largest file that is read: a report of ten thousand ranks has a few dozen megabytes."""


def read(path: str) -> Known | None:
    """The report or baseline in a file; None where it is neither, or nothing that can be opened like a file.

    Raises:
        InputError: it says that it is one, and cannot be read as such.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe can be read but once, and a trace may be in it
            return None
        with Path(path).open("rb") as file:
            if _HEAD.match(file.read(4096)) is None:
                return None
        return _in(path)
    except (OSError, ValueError):
        return None  # whoever reads traces tells what is wrong with the path


def reference(path: str) -> Baseline | None:
    """The baseline in a file, or that of a report; None where there is no such file.

    Raises:
        InputError: the file is there, and is no baseline.
    """
    try:
        if not Path(path).exists():
            return None
        found = _in(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path} cannot be read: {why}", hint=_MAKE) from error
    if found is None:
        raise InputError(f"{path}: expected a baseline, found something else", hint=_MAKE)
    return condense(found) if isinstance(found, Report) else found


def _in(path: str) -> Known | None:
    """What is in a file or a pipe; raises OSError where it cannot be read, ValueError where it cannot be a path."""
    with Path(path).open("rb") as file:
        data = file.read(_LARGEST + 1)
    if b"\n<<<<<<< " in b"\n" + data:
        raise InputError(
            f"{path} holds both sides of a merge", hint="take one of them, or save the baseline of what was merged"
        )
    head = _HEAD.match(data)
    return None if head is None else _decoded(path, data, head[1].decode(), head[2].decode())


def _decoded(path: str, data: bytes, kind: str, version: str) -> Known:
    import msgspec  # noqa: PLC0415  a gate on traces needs none

    types: dict[str, type[Known]] = {"baseline": Baseline, "report": Report}
    if len(data) > _LARGEST:
        raise InputError(f"{path}: a {kind} of over {_LARGEST >> 20} MB is none of ours")
    if kind not in types:
        raise InputError(f"{path}: expected a report or a baseline, found a {kind}")
    if version != "1":
        raise InputError(
            f"{path}: version {version} of a {kind} is newer than this program",
            hint="use the bubblescope that wrote it",
        )
    try:
        return msgspec.json.decode(data, type=types[kind])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: a damaged {kind}: {error}", hint="write it again, or take it from version control"
        ) from error
