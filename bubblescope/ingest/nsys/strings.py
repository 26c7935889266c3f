"""Texts of an export by their ids: most names stand once in a table of the file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import numpy as np

from bubblescope.ingest.nsys.database import ABSENT, Database
from bubblescope.ingest.nsys.schema import STRINGS
from bubblescope.model.columns import Ints, Times, distinct

__all__ = ["Strings", "decoded"]

K = TypeVar("K", bound=Hashable)

_AT_ONCE = 500  # ids of one query: SQLite takes 999 parameters at least
_FEW = 8  # where more than one id in so many is wanted, going through the table is quicker


def decoded(text: bytes) -> str:
    """A text of the file; what is no UTF-8 shows as a sign for it."""
    return text.decode("utf-8", "replace")


class Strings:
    """The texts of a file by id; an id that is not there is the empty text."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keyed = database.is_key(STRINGS.name, "id")

    def of(self, ids: Times) -> dict[int, bytes]:
        """The texts of some different ids, sorted."""
        if not len(ids):
            return {}
        wanted = set(ids.tolist())
        found: dict[int, bytes] = {}
        for where, parameters in self._queries(ids):
            for rows in self._database.rows(STRINGS, where, parameters):
                pairs = zip(rows.numbers["id"].tolist(), rows.texts["value"], strict=True)
                found.update((number, text) for number, text in pairs if number in wanted and text is not None)
        return found

    def like(self, pattern: str) -> dict[int, str]:
        """The texts that begin as a pattern of SQL says, by id."""
        return {
            number: decoded(text)
            for rows in self._database.rows(STRINGS, '"value" LIKE ?', (pattern,))
            for number, text in zip(rows.numbers["id"].tolist(), rows.texts["value"], strict=True)
            if text is not None
        }

    def numbered(self, ids: Times, number: Callable[[bytes], int]) -> Ints:
        """For each id what `number` makes of its text, which it is asked once for each; ABSENT has the empty text."""
        different = distinct(ids)
        texts = self.of(different[different != ABSENT])
        known: Ints = np.fromiter(
            (number(texts.get(id_, b"")) for id_ in different.tolist()), dtype=np.int64, count=len(different)
        )
        return known[np.searchsorted(different, ids)] if len(ids) else np.empty(0, np.int64)

    def _queries(self, ids: Times) -> Iterable[tuple[str, list[int]]]:
        low, high = int(ids[0]), int(ids[-1])
        if not self._keyed or high - low < _FEW * len(ids):
            return [('"id" BETWEEN ? AND ?', [low, high])]
        parts = [ids[at : at + _AT_ONCE].tolist() for at in range(0, len(ids), _AT_ONCE)]
        return [(f'"id" IN ({",".join("?" * len(part))})', part) for part in parts]
