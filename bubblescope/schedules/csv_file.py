"""Schedules that torch writes down as CSV: a line a rank, its actions in order from left to right.

PyTorch, torch/distributed/pipelining/schedules.py (`_dump_csv`, `_Action.from_str`). A cell is `2F4`, two
actions that run as one block, `(0F7;7B3)OVERLAP_F_B`, empty where the rank waits, or communication.
In files of an older form B is the input gradient and BW the full backward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bubblescope.errors import InputError
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Shape

__all__ = ["Written", "read"]

MOST_BYTES = 64_000_000
MOST_ACTIONS = 1_000_000
MOST = 1_000_000
"""Stages, and micro-batches."""

_ACTION = re.compile(r"([0-9]{1,9})(F|BW|B|I|W)([0-9]{1,9})", re.ASCII)
_BLOCK = re.compile(r"\(([^()]*)\)OVERLAP_F_B")
_ASIDE = re.compile(r"[0-9]{1,9}((SEND|RECV)_[FB][0-9]{1,9}|(UNSHARD|RESHARD|REDUCE_GRAD)[0-9]{0,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Written:
    """A schedule as it stands in a file: orders by rank, actions that run as one block with the next, and its size."""

    orders: dict[int, Order]
    together: frozenset[Action]
    shape: Shape


Where = tuple[int, int]
"""Line and cell, counted from 1."""


class _Cell(NamedTuple):
    """An action as written, and whether it runs as one block with the next."""

    stage: int
    letters: str
    microbatch: int
    where: Where
    joined: bool


def read(path: Path | str) -> Written:
    """Read a schedule; raises InputError where it is none, too large, or lacks actions."""
    name = str(path)
    rows = _rows(_text(name), name)
    older = _is_older({cell.letters for row in rows for cell in row})
    orders = {rank: tuple(_action(cell, older=older) for cell in row) for rank, row in enumerate(rows)}
    at = _places(orders, rows, name)
    stages, m = 1 + max(action.stage for action in at), 1 + max(action.microbatch for action in at)
    if stages % len(rows):
        raise InputError(f"{name} has {stages} stages on {len(rows)} lines: every rank holds equally many")
    _check_forwards(at, stages, m, name)
    _check_backwards(at, name)
    joined = (a for rank, row in enumerate(rows) for a, cell in zip(orders[rank], row, strict=True) if cell.joined)
    return Written(orders, frozenset(joined), Shape(len(rows), m, stages // len(rows)))


def _text(path: str) -> str:
    """The whole file, its lines ended alike."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} is larger than {MOST_BYTES // 10**6} MB, too large for a schedule")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no schedule: it is not text, at byte {error.start}") from error


def _rows(text: str, path: str) -> list[list[_Cell]]:
    """The actions of each line; empty lines at the end are none."""
    rows: list[list[_Cell]] = []
    count = 0
    for line, content in enumerate(text.rstrip("\n").split("\n"), start=1):
        rows.append([])
        for column, cell in enumerate(content.split(","), start=1):
            rows[-1] += _cells(cell.strip(' \t"'), (line, column), path)
        count += len(rows[-1])
        if count > MOST_ACTIONS:
            raise InputError(f"{path} holds more than {MOST_ACTIONS} actions")
    return rows


def _cells(text: str, where: Where, path: str) -> Iterator[_Cell]:
    if not text or _ASIDE.fullmatch(text):
        return
    block = _BLOCK.fullmatch(text)
    parts = block[1].split(";") if block else [text]
    for k, part in enumerate(parts, start=1):
        match = _ACTION.fullmatch(part.strip())
        if match is None:
            raise _bad(path, where, f"expected an action like 0F0, found {_short(text)!r}")
        stage, letters, microbatch = int(match[1]), match[2], int(match[3])
        if max(stage, microbatch) >= MOST:
            raise _bad(path, where, f"stages and micro-batches count up to {MOST}, found {part.strip()}")
        yield _Cell(stage, letters, microbatch, where, joined=k < len(parts))


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _bad(path: str, where: Where, problem: str) -> InputError:
    return InputError(f"{path}, line {where[0]}, cell {where[1]}: {problem}")


def _is_older(letters: set[str]) -> bool:
    """Whether B stands for the input gradient: older files know BW, or a W but no I."""
    return bool(letters & {"BW", "W"}) and "I" not in letters


def _action(cell: _Cell, *, older: bool) -> Action:
    letters = "B" if cell.letters == "BW" else "I" if older and cell.letters == "B" else cell.letters
    return Action(cell.stage, Kind[letters], cell.microbatch)


def _places(orders: Mapping[int, Order], rows: list[list[_Cell]], path: str) -> dict[Action, Where]:
    """Where each action stands; every rank has some, and none stands twice."""
    at: dict[Action, Where] = {}
    for rank, row in enumerate(rows):
        if not row:
            raise InputError(
                f"{path}, line {rank + 1}: no action", hint="a schedule has a line a rank, like 0F0,0F1,0B0"
            )
        for action, cell in zip(orders[rank], row, strict=True):
            first = at.setdefault(action, cell.where)
            if first is not cell.where:
                raise _bad(path, cell.where, f"{action} stands in line {first[0]}, cell {first[1]} already")
    return at


def _check_forwards(at: Mapping[Action, Where], stages: int, m: int, path: str) -> None:
    if sum(action.kind == Kind.F for action in at) == stages * m:
        return
    cells = (Action(stage, Kind.F, i) for stage in range(stages) for i in range(m))
    missing = next(action for action in cells if action not in at)
    raise InputError(f"{path} has stages 0 to {stages - 1} and micro-batches 0 to {m - 1}, but no {missing}")


def _check_backwards(at: Mapping[Action, Where], path: str) -> None:
    """In training every forward has its B, or its W and, but for stage 0, its I."""
    if all(action.kind == Kind.F for action in at):
        return
    for action, where in at.items():
        if action.kind != Kind.F:
            continue
        found = {kind for kind in (Kind.B, Kind.I, Kind.W) if action._replace(kind=kind) in at}
        if found not in ({Kind.B}, {Kind.I, Kind.W}) and not (action.stage == 0 and found == {Kind.W}):
            kinds = " and ".join(kind.name for kind in sorted(found)) or "none"
            raise _bad(path, where, f"the backward of {action} is B, or I and W; found {kinds}")
