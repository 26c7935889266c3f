"""A table as every output draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; `align` has l or r for each column, `strong` lists the rows that stand out.

    A `detail` is read on demand; where an output can fold things away, it folds it. `spare` names the columns that a
    narrow page may leave out, the first ones first.
    """

    title: str
    denominator: str
    align: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[int] = frozenset()
    more: str | None = None
    spare: tuple[str, ...] = ()
    detail: bool = False

    def map(self, change: Callable[[str], str]) -> Table:
        """The same table with every string changed."""
        return replace(
            self,
            title=change(self.title),
            denominator=change(self.denominator),
            headers=tuple(map(change, self.headers)),
            rows=tuple(tuple(map(change, row)) for row in self.rows),
            spare=tuple(map(change, self.spare)),
            more=None if self.more is None else change(self.more),
        )
