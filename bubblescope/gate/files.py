"""Reports and baselines as files: what `analyze --json` and `baseline save` wrote, read back."""

from __future__ import annotations

import re
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.gate.condense import condense
from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import METRICS, Metric
from bubblescope.model.report import Report

__all__ = ["Known", "read", "reference"]

Known = Baseline | Report
"""What a file can hold that is no trace."""

_MAKE = "a baseline is a file that bubblescope baseline save writes"
_AGAIN = "write it again, or take it from version control"
_BOM = b"\xef\xbb\xbf"
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_OURS = re.compile(rb'"schema"\s*:\s*"bubblescope\.')
_SCHEMA = re.compile(r"bubblescope\.(\w+)/(\d+)")
_SMALL = 1 << 20
"""Bytes of a file that is looked through for what it is, wherever it says so: tools that sort keys put that last."""
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
            head = file.read(_SMALL)
        return _in(path) if _OBJECT.match(head) and _OURS.search(head) else None
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
        data = file.read(_LARGEST + 1).removeprefix(_BOM)
    if b"\n<<<<<<< " in b"\n" + data:
        hint = "take one of them, or save the baseline of what was merged"
        raise InputError(f"{path} holds both sides of a merge", hint=hint)
    if not _OBJECT.match(data):
        return None
    if len(data) > _LARGEST:
        raise InputError(f"{path}: over {_LARGEST >> 20} MB are no report of ours")
    return _decoded(path, data)


def _decoded(path: str, data: bytes) -> Known | None:
    import msgspec  # noqa: PLC0415  a gate on traces needs none

    kinds: dict[str, type[Known]] = {"baseline": Baseline, "report": Report}
    try:
        said = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("schema", msgspec.Raw(b'""'))
        schema = _SCHEMA.fullmatch(msgspec.json.decode(said, type=str))
        if schema is None:
            return None
        if schema[1] not in kinds:
            raise InputError(f"{path}: expected a report or a baseline, found a {schema[1]}", hint=_MAKE)
        if schema[2] != "1":
            hint = "use the bubblescope that wrote it"
            raise InputError(f"{path}: a {schema[1]} of version {schema[2]}, which this program cannot read", hint=hint)
        found = msgspec.json.decode(data, type=kinds[schema[1]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if not _OURS.search(data):
            return None
        raise InputError(f"{path} is damaged: {error}", hint=_AGAIN) from error
    return _known(path, found)


def _known(path: str, found: Known) -> Known:
    """The same without numbers that only a later version knows; raises InputError where one stands twice."""
    twice = [name for name, count in Counter(each.name for each in found.metrics).items() if count > 1]
    if twice:
        raise InputError(f"{path} is damaged: {twice[0]} stands in it more than once", hint=_AGAIN)
    known = tuple(each for each in found.metrics if each.metric in METRICS)
    odd = next((each for each in known if not _is_possible(each)), None)
    if odd is not None:
        raise InputError(f"{path} is damaged: {odd.name} cannot be {odd.value:g}", hint=_AGAIN)
    return replace(found, metrics=known)


def _is_possible(metric: Metric) -> bool:
    """Whether the value is one of its unit; what is exposed may outlast a step that was cut short."""
    unit = METRICS[metric.metric].unit
    if unit == "share":
        return abs(metric.value) <= 1 or metric.metric == "exposed"
    return metric.value >= 0
