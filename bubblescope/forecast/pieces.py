"""What of the measured actions each action of a changed run is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bubblescope.forecast.cover import Shares, cover
from bubblescope.forecast.measured import Measured
from bubblescope.model.actions import Action, Kind
from bubblescope.model.changes import Recompute

__all__ = ["WEIGHT_SHARE", "Cut", "Pieces", "Place", "StageShares", "pieces"]

WEIGHT_SHARE = 0.5
"""The part of a full backward that is its weight gradient, where the run does not split it.

By FLOPs it is 24 h of 48 h + 8 s, for hidden size h and sequences of s tokens (Zero Bubble, arXiv 2401.10241, table 1).
"""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

StageShares = Callable[[int, Kind], Shares]
"""The measured stages that a new one consists of, and the share of the work of each, by new stage and kind."""


class Place(NamedTuple):
    """Where a piece comes from and goes: the new action's position and stage, the measured one's kind and stage."""

    position: int
    stage: int
    kind: Kind
    measured: int


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Rows that each say: so much of that measured action, so many steps later, is in that new action.

    Attributes:
        new: number of the new action.
        column: of the measured one.
        later: steps by which a micro-batch beyond the measured ones is taken from a later step.
        place: number of its place among `places`.
        work: share of its useful time.
        inside: share of its gaps.
        mean: weights that add up to 1 over the pieces of an action, for what does not grow with it.
        places: all of them.
    """

    new: Ints
    column: Ints
    later: Ints
    place: Ints
    work: Floats
    inside: Floats
    mean: Floats
    places: tuple[Place, ...]


class _Piece(NamedTuple):
    new: int
    column: int
    later: int
    place: int
    work: float
    inside: float
    mean: float


def pieces(cut: Cut, positions: Mapping[Action, int]) -> Pieces:
    """Take new actions apart; `positions` are theirs, in the order of their numbers."""
    places: dict[Place, int] = {}
    rows = [
        row
        for number, (action, position) in enumerate(positions.items())
        for row in _weighted(number, position, action, list(cut.parts(action)), places)
    ]
    columns = np.array(rows, np.float64).reshape(-1, len(_Piece._fields)).T
    new, column, later, place = columns[:4].astype(np.int64)
    work, inside, mean = columns[4:]
    return Pieces(new, column, later, place, work, inside, mean, tuple(places))


class _Part(NamedTuple):
    """A measured action in a new one: shares of stage, kind and micro-batch; `again` if it is a forward run again."""

    action: Action
    column: int
    later: int
    stage: float
    kind: float
    batch: float
    again: bool


def _weighted(
    number: int, position: int, action: Action, parts: list[_Part], places: dict[Place, int]
) -> Iterator[_Piece]:
    counted = sum(part.stage * part.batch for part in parts if not part.again)
    batch = {(part.later, part.action.microbatch): part.batch for part in parts}
    whole = sum(batch.values())
    for part in parts:
        place = Place(position, action.stage, part.action.kind, part.action.stage)
        share = part.stage * part.kind * part.batch
        mean = 0.0 if part.again else part.stage * part.batch / counted
        yield _Piece(number, part.column, part.later, places.setdefault(place, len(places)), share, share / whole, mean)


@dataclass(frozen=True, eq=False)
class Cut:
    """Finds the measured actions that a new one is made of.

    Attributes:
        run: the measured steps.
        m: their micro-batches a step.
        size: of a new micro-batch, in measured ones.
        slices: of a new micro-batch.
        shares: which measured stages a new one consists of.
        recompute: whether backwards run their forwards again, where that changes.
    """

    run: Measured
    m: int
    size: float
    slices: int
    shares: StageShares
    recompute: Recompute | None

    def parts(self, action: Action) -> Iterator[_Part]:
        """The measured actions that a new one is made of."""
        for index, batch in cover(action.microbatch, self.size):
            later, i = divmod(index, self.m)
            for stage, of_stage in self.shares(action.stage, action.kind):
                for kind, of_kind, again in self._kinds(stage, action.kind, i):
                    for part, of_slice in self._slices(action.slice):
                        measured = Action(stage, kind, i, part)
                        column = self.run.column.get(measured)
                        if column is not None:
                            yield _Part(measured, column, later, of_stage, of_kind, batch * of_slice, again)

    @cached_property
    def _known(self) -> dict[tuple[int, int], set[Kind]]:
        """The measured kinds of each stage and micro-batch: some schedules split a part of their backwards."""
        kinds: dict[tuple[int, int], set[Kind]] = {}
        for action in self.run.column:
            kinds.setdefault((action.stage, action.microbatch), set()).add(action.kind)
        return kinds

    @cached_property
    def _measured_slices(self) -> list[int]:
        return sorted({action.slice for action in self.run.column})

    def _kinds(self, stage: int, kind: Kind, i: int) -> Iterator[tuple[Kind, float, bool]]:
        """The measured kinds that a new one consists of, with their shares, and whether it is a forward run again."""
        known = self._known.get((stage, i), set())
        if kind in known or kind == Kind.F:
            yield kind, 1.0, False
        elif kind == Kind.B:
            yield Kind.I, 1.0, False
            yield Kind.W, 1.0, False
        else:
            yield Kind.B, WEIGHT_SHARE if kind == Kind.W else 1 - WEIGHT_SHARE, False
        if kind in {Kind.B, Kind.I} and self.recompute is not None:
            yield Kind.F, 1.0 if self.recompute == "on" else -1.0, True

    def _slices(self, part: int) -> Iterator[tuple[int, float]]:
        """The measured slices that a new one consists of; of whole micro-batches there is one."""
        if len(self._measured_slices) == self.slices:
            yield part, 1.0
        else:
            yield from ((old, 1 / self.slices) for old in self._measured_slices)
