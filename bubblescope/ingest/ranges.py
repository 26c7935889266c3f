"""Ranges that a trace gives in halves: an event that begins one (`B`), another that ends it (`E`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bubblescope.model.columns import Ints

__all__ = ["Halves", "Ranges"]

Columns = dict[str, npt.NDArray[Any]]

_MERGED = ("sequence", "forward_thread", "correlation", "comm")
_DEPTH = 1000  # open ranges looked through for a name; more are no nesting but damage


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges found, as columns, and how many halves found no partner."""

    columns: Columns
    unpaired: int


class Halves:
    """Collects the halves of a file, in any order.

    `merged` are columns of which the end is asked, too: -1 where a half does not say.
    """

    def __init__(self, merged: Sequence[str] = _MERGED) -> None:
        self._merged = merged
        self._parts: list[Columns] = []

    def add(self, columns: Columns) -> None:
        """Append halves: `time`, `closes`, `thread`, `name` and columns to hand through."""
        self._parts.append(columns)

    def absorb(self, other: Halves, places: Mapping[str, Ints]) -> None:
        """Append the halves of another collection, whose numbers of the columns `places` are renumbered by these."""
        for part in other._parts:
            self.add({name: places[name][column] if name in places else column for name, column in part.items()})

    def pair(self, nameless: int) -> Ranges | None:
        """Each end with the latest open beginning of its thread; None if there are no halves.

        An end that carries a name closes the latest beginning of that name. `nameless` is the number of the
        empty name, with which an end closes the latest beginning of any. What the end says of the range is
        taken where the beginning says nothing.
        """
        if not self._parts:
            return None
        halves = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        begin, end = _match(halves, nameless)
        columns = {name: column[begin] for name, column in halves.items() if name not in ("time", "closes")}
        for name in self._merged:
            columns[name] = np.where(columns[name] < 0, halves[name][end], columns[name])
        columns["start"], columns["end"] = halves["time"][begin], halves["time"][end]
        return Ranges(columns, unpaired=len(halves["time"]) - 2 * len(begin))


def _partner(stack: list[tuple[int, int]], name: int, nameless: int) -> int | None:
    """Where in the stack the beginning lies that an end of this name closes."""
    if not stack or name == nameless:
        return len(stack) - 1 if stack else None
    least = max(0, len(stack) - _DEPTH)
    return next((at for at in range(len(stack) - 1, least - 1, -1) if stack[at][1] == name), None)


def _match(halves: Columns, nameless: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows of beginnings and of their ends."""
    order = np.argsort(halves["time"], kind="stable")
    rows = zip(order.tolist(), *(halves[name][order].tolist() for name in ("closes", "thread", "name")), strict=True)
    stacks: dict[int, list[tuple[int, int]]] = {}
    pairs: list[tuple[int, int]] = []
    for row, closes, thread, name in rows:
        stack = stacks.setdefault(thread, [])
        if not closes:
            stack.append((row, name))
        elif (place := _partner(stack, name, nameless)) is not None:
            pairs.append((stack.pop(place)[0], row))
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
