"""Tables that events refer to by number: names, threads, lanes, communication calls; and growing columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from bubblescope.ingest.events import Arguments
from bubblescope.model.columns import Columns, Ints
from bubblescope.model.trace import CommArgs

__all__ = [
    "LONGEST",
    "MOST_RANKS",
    "Comms",
    "Names",
    "Pairs",
    "Rows",
    "Table",
    "Triples",
    "parse_ranks",
    "plausible_ranks",
    "whole",
]

LONGEST = 1 << 14
"""Characters of a text that are kept: no name says more, and a damaged file may hold anything."""

MOST_RANKS = 1_000_000
"""No job has as many; a number from here on is no rank but damage."""

_LONGEST_RANKS = 8 * MOST_RANKS
"""Characters of the longest list of ranks: six digits, a comma and a blank each."""

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Columns)


class Table(dict[K, int], Generic[K]):
    """Numbers its keys as they come: `table[key]` is the number of `key`, known or new."""

    def __missing__(self, key: K) -> int:
        number = self[key] = len(self)
        return number

    def numbers(self, keys: Iterable[K], count: int) -> Ints:
        """The numbers of `count` keys."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int32, count=count)

    def absorb(self, other: Table[K]) -> Ints:
        """Take over the keys of another table: the new number of each old one, and -1 at place -1."""
        return np.array([*map(self.__getitem__, other), -1], dtype=np.int32)


class Names(Table[str]):
    """Numbers names; what is too long for one counts as its beginning, and is not held."""

    def __missing__(self, key: str) -> int:
        return super().__missing__(key) if len(key) <= LONGEST else self[key[:LONGEST]]


class Pairs:
    """Numbers pairs of ids as texts, so that 7 and "7" are one."""

    def __init__(self) -> None:
        self.texts: Table[tuple[str, str]] = Table()
        self._known: dict[Any, dict[Any, int]] = {}  # two look-ups cost less than to make a pair and look that up

    def numbers(self, first: Sequence[Any], second: Sequence[Any]) -> Ints:
        """The number of each pair."""
        known = self._known
        try:
            numbers = [known[one][other] for one, other in zip(first, second, strict=True)]
        except KeyError:
            for one, other in dict.fromkeys(zip(first, second, strict=True)):
                known.setdefault(one, {})[other] = self.texts[str(one)[:LONGEST], str(other)[:LONGEST]]
            return self.numbers(first, second)
        return np.fromiter(numbers, np.int32, len(numbers))


class Triples:
    """Numbers triples of ids, as `Pairs` does pairs."""

    def __init__(self) -> None:
        self.texts: Table[tuple[str, str, str]] = Table()
        self._known: dict[Any, dict[Any, dict[Any, int]]] = {}

    def numbers(self, first: Sequence[Any], second: Sequence[Any], third: Sequence[Any]) -> Ints:
        """The number of each triple."""
        known = self._known
        try:
            numbers = [known[one][two][three] for one, two, three in zip(first, second, third, strict=True)]
        except KeyError:
            for one, two, three in dict.fromkeys(zip(first, second, third, strict=True)):
                texts = (str(one)[:LONGEST], str(two)[:LONGEST], str(three)[:LONGEST])
                known.setdefault(one, {}).setdefault(two, {})[three] = self.texts[texts]
            return self.numbers(first, second, third)
        return np.fromiter(numbers, np.int32, len(numbers))


class Comms:
    """The communication calls of a file, each different one once."""

    def __init__(self) -> None:
        self.table: Table[CommArgs] = Table()
        self._ranks: dict[str, tuple[int, ...]] = {}

    def numbers(self, args: list[Arguments]) -> Ints:
        """For each event's arguments the number of its call, or -1 if it is none."""
        calls = [
            (row, self.table[self._call(arg)])
            for row, arg in enumerate(args)
            if not (arg.collective is None and arg.group is None and arg.src is None and arg.dst is None)
        ]
        numbers = np.full(len(args), -1, dtype=np.int32)
        for row, number in calls:
            numbers[row] = number
        return numbers

    def _call(self, arg: Arguments) -> CommArgs:
        return CommArgs(
            op=_unquoted(arg.collective or ""),
            group=_unquoted(arg.group or ""),
            description=_unquoted(arg.description),
            ranks=self._group(arg.ranks),
            group_size=arg.group_size,
            src=_rank(arg.src),
            dst=_rank(arg.dst),
            elements=max(arg.elements_in, arg.elements_out, -1),
            dtype=_unquoted(arg.dtype),
            seq=arg.seq,
        )

    def _group(self, ranks: str | list[int]) -> tuple[int, ...]:
        if isinstance(ranks, list):
            return plausible_ranks(ranks)
        if len(ranks) > _LONGEST_RANKS:  # nor is it held
            return ()
        if ranks not in self._ranks:
            self._ranks[ranks] = parse_ranks(ranks)
        return self._ranks[ranks]


class Rows(Generic[C]):
    """A block of columns that grows by arrays.

    A column is one stretch of bytes that grows in place: a list of parts would be held twice while they are joined, and
    leave memory full of holes.
    """

    def __init__(self, block: type[C]) -> None:
        self._block = block
        self._grown: dict[str, bytearray] = {}
        self._types: dict[str, np.dtype[Any]] = {}
        self.columns = [field.name for field in dataclasses.fields(block)]

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Append rows; a column is of one type."""
        for name, part in columns.items():
            kind = self._types.setdefault(name, part.dtype)
            self._grown.setdefault(name, bytearray()).extend(np.ascontiguousarray(part, kind).data.cast("B"))

    def absorb(self, other: Rows[C], places: Mapping[str, Ints]) -> None:
        """Append the rows of another block, which is given up, renumbered by `places` in the columns of these names."""
        for name in list(other._types):
            part = other._taken(name)
            self.add(**{name: places[name][part] if name in places else part})

    def finish(self) -> C:
        """The block, which is given up here."""
        if not self._types:
            return self._block.empty()
        return self._block(**{name: self._taken(name) for name in list(self._types)})

    def _taken(self, name: str) -> npt.NDArray[Any]:
        return np.frombuffer(self._grown.pop(name), self._types.pop(name))


def whole(value: Any, limit: int = 1 << 31) -> int | None:
    """A natural number below `limit`, also as text; else None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 30:
        value = int(value)
    return value if type(value) is int and 0 <= value < limit else None


def parse_ranks(text: str) -> tuple[int, ...]:
    """The ranks of "[0, 1]"; none if the list was cut short with "..." or is no list of ranks."""
    if len(text) > _LONGEST_RANKS:
        return ()
    fields = _bare(text).removeprefix("[").removesuffix("]").split(",")
    try:
        return plausible_ranks([int(field) for field in fields])
    except ValueError:
        return ()


def plausible_ranks(ranks: list[int]) -> tuple[int, ...]:
    """The same; none if one of them cannot be a rank, for then the list means something else."""
    return tuple(ranks) if all(0 <= rank < MOST_RANKS for rank in ranks) else ()


def _rank(number: int | None) -> int:
    return number if number is not None and 0 <= number < MOST_RANKS else -1


def _unquoted(text: str) -> str:
    return _bare(text)[:LONGEST]


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
