"""Blocks of equally long numpy columns: the shape in which events live.

A million events as Python objects cost hundreds of bytes each; as columns they cost the
width of their fields, cross a process border in one copy, and are searched at the speed of numpy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Columns", "Floats", "Ints", "Pairs", "Times", "column", "distinct", "pairs"]

D = TypeVar("D", bound=np.integer[Any])
Times = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def column(dtype: type[np.generic], *, absent: int | None = None) -> Any:
    """A dataclass field that holds a column of `dtype`; with `absent` it may be left out, and is filled with that."""
    described = {"dtype": np.dtype(dtype), "absent": absent}
    return (
        dataclasses.field(metadata=described) if absent is None else dataclasses.field(default=None, metadata=described)
    )


def distinct(values: npt.NDArray[D]) -> npt.NDArray[D]:
    """The different values, sorted.

    `numpy.unique` hashes since 2.3, which takes ten to twenty times as long on values that hardly repeat.
    """
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Different pairs, by `first`, then `second`; `index` is the pair of each row, `count` how many rows a pair has."""

    first: Ints
    second: Ints
    index: Ints
    count: Ints


def pairs(first: Ints, second: Ints) -> Pairs:
    """The different pairs of two columns; `numpy.unique` with an axis takes several times as long."""
    order = np.lexsort((second, first))
    ones, others = first[order], second[order]
    new = np.append(True, (ones[1:] != ones[:-1]) | (others[1:] != others[:-1]))[: len(order)]
    begin = np.flatnonzero(new)
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(new) - 1
    return Pairs(ones[begin], others[begin], index, np.diff(begin, append=len(order)))


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Base of the column blocks; a subclass lists its fields with `column(dtype)`.

    Anything that numpy can turn into an array is accepted and stored in the declared dtype;
    columns of unequal length raise ValueError.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            given = np.full(len(self), field.metadata["absent"]) if given is None else given
            value = np.ascontiguousarray(given, dtype=field.metadata["dtype"])
            object.__setattr__(self, field.name, value)
        lengths = {field.name: len(getattr(self, field.name)) for field in dataclasses.fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of {type(self).__name__} differ in length: {lengths}")

    def __len__(self) -> int:
        return len(getattr(self, dataclasses.fields(self)[0].name))

    def take(self, index: Any) -> Self:
        """The rows that a mask or an index array selects, in its order."""
        return type(self)(*(getattr(self, f.name)[index] for f in dataclasses.fields(self)))

    def replace(self, **changes: Any) -> Self:
        """The same rows with some columns exchanged."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def empty(cls) -> Self:
        """A block of no rows."""
        return cls(*(() for _ in dataclasses.fields(cls)))

    @classmethod
    def concat(cls, blocks: Iterable[Self]) -> Self:
        """The rows of all blocks, one after the other."""
        blocks = list(blocks)
        if not blocks:
            return cls.empty()
        names = [f.name for f in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(b, name) for b in blocks]) for name in names))
