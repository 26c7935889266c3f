"""How wide the columns of a table are where it is wider than the page: no word is broken while another can give way.

A number and its unit stay together, unless there is no other way.
"""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from bubblescope.report.table import Table

__all__ = ["GAP", "fitted"]

GAP = 2
"""Columns of a page between two of a table."""

_SMALL = 8  # what a column lacks to be in one line, and gets before others share the rest


def fitted(table: Table, room: int) -> tuple[Table, tuple[int, ...] | None]:
    """The table for a page `room` letters wide, and the widths of its columns; None where the words do not fit.

    Cells break between words. Where that is not enough, columns that can be spared are left out, and the table says so.
    """
    out = 0
    kept = table
    while (widths := _widths(kept, room)) is None and out < len(table.spare):
        out += 1
        kept = _without(table, table.spare[:out])
    return kept, widths or _widths(kept, room, together=False)


def _widths(table: Table, room: int, *, together: bool = True) -> tuple[int, ...] | None:
    columns = [(table.headers[k], *(row[k] for row in table.rows)) for k in range(len(table.headers))]
    natural = [max(map(cell_len, cells)) for cells in columns]
    sides = table.align if together else "l" * len(columns)
    least = [min(_least(cells, side), room // 2) for cells, side in zip(columns, sides, strict=True)]
    rest = room - GAP * (len(columns) - 1) - sum(least)
    if rest < 0:
        return None
    return _spread(least, natural, rest)


def _least(cells: tuple[str, ...], side: str) -> int:
    """The longest word of a column; of numbers, which are those on the right, the longest cell below the header."""
    longest = max(map(_longest, cells))
    return longest if side == "l" else max(longest, *map(cell_len, cells[1:]), 0)


def _longest(cell: str) -> int:
    """The longest word of a cell."""
    return max(map(cell_len, cell.split()), default=0)


def _spread(least: list[int], natural: list[int], rest: int) -> tuple[int, ...]:
    """The least widths and what they get of the rest, those first that need the least more."""
    widths = list(least)
    wanting = sorted(range(len(least)), key=lambda k: natural[k] - least[k])
    for served, k in enumerate(wanting):
        share = rest if natural[k] - least[k] <= _SMALL else rest // (len(wanting) - served)
        more = max(min(natural[k] - least[k], share), 0)
        widths[k] += more
        rest -= more
    return tuple(widths)


def _without(table: Table, spared: tuple[str, ...]) -> Table:
    """The table without some columns, of which it tells."""
    kept = [k for k, header in enumerate(table.headers) if header not in spared]
    gone = [header for header in spared if header in table.headers]
    said = f"left out, as the page is narrow: {', '.join(gone)}" if gone else None
    return replace(
        table,
        align="".join(table.align[k] for k in kept),
        headers=tuple(table.headers[k] for k in kept),
        rows=tuple(tuple(row[k] for k in kept) for row in table.rows),
        more="\n".join(filter(None, (table.more, said))) or None,
    )
