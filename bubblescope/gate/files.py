"""Reports and baselines as files: what `analyze --json` and `baseline save` wrote, read back."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.gate.condense import condense
from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import Metric
from bubblescope.model.report import Report

__all__ = ["Known", "read", "reference"]

Known = Baseline | Report
"""What a file can hold that is no trace."""

_HEAD = re.compile(rb'\s*\{\s*"schema"\s*:\s*"bubblescope\.(\w+)/(\d+)"')
_LARGEST_NUMBER = 1e30
"""More than any time, rate or count can be; its square is still a number."""
_LARGEST = 256 << 20
"""Bytes of the largest file that is read: a report of ten thousand ranks has a few dozen megabytes."""


def read(path: str) -> Known | None:
    """The report or baseline in a file; None where it is neither, or nothing that can be opened like a file.

    Raises:
        InputError: it says that it is one, and cannot be read as such.
    """
    place = Path(path)
    try:
        if not stat.S_ISREG(place.stat().st_mode):  # a pipe can be read but once, and a trace may be in it
            return None
        with place.open("rb") as file:
            head = _HEAD.match(file.read(4096))
            if head is None:
                return None
            file.seek(0)
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        return None  # whoever reads traces tells what is wrong with the path
    return _decoded(path, data, head[1].decode(), head[2].decode())


def reference(path: str) -> Baseline | None:
    """The baseline in a file, or that of a report; None where there is no such file.

    Raises:
        InputError: the file is there, and is no baseline.
    """
    try:
        if not Path(path).exists():
            return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be a file: {error}") from error
    found = read(path)
    if found is None:
        raise InputError(
            f"{path}: expected a baseline, found something else", hint="bubblescope baseline save makes one"
        )
    return condense(found) if isinstance(found, Report) else found


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
        found = msgspec.json.decode(data, type=types[kind])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: a damaged {kind}: {error}", hint="write it again, or take it from version control"
        ) from error
    odd = next((each for each in found.metrics if not _sound(each)), None)
    if odd is not None:
        raise InputError(
            f"{path}: a damaged {kind}: {odd.metric} cannot have a value of {odd.value}, a spread of {odd.spread} "
            f"and an error of {odd.error} in {odd.steps} steps",
            hint="write it again, or take it from version control",
        )
    return found


def _sound(metric: Metric) -> bool:
    """Whether a number is one that can be reckoned with."""
    spread = metric.spread or 0.0
    return (
        1 <= metric.steps <= _LARGEST_NUMBER
        and (metric.steps > 1 or metric.spread is None)
        and abs(metric.value) <= _LARGEST_NUMBER
        and 0 <= spread <= _LARGEST_NUMBER
        and 0 <= metric.error <= _LARGEST_NUMBER
    )
