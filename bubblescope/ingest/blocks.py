"""The blocks of a trace, whichever format they come from: one time base, tables in order, launches alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from bubblescope.model.columns import Ints
from bubblescope.model.trace import Annotations, Kernels, Launches, Ops

__all__ = ["EPOCH", "Blocks", "launches_work", "natural", "on_time_base", "real_launches", "renumber"]

EPOCH = 10**18  # ns; a wall clock shows more since 2001, and no machine has been up for so long
_LAST = 2**63 - 1
_LAUNCHES = re.compile(r"(?i)launch|memcpy|memset|enqueue")

K = TypeVar("K")
Blocks = list[Ops | Annotations | Launches | Kernels]


def launches_work(name: str) -> bool:
    """Whether a call of the runtime puts work on a GPU, going by its name."""
    return _LAUNCHES.search(name) is not None


def real_launches(calls: Launches, kernels: Kernels, names: Sequence[str]) -> Launches:
    """Those calls of the runtime that put work on a GPU, going by what they started or else by their name."""
    by_name = np.array([launches_work(name) for name in names], dtype=np.bool_)
    started = np.isin(calls.correlation, kernels.correlation[kernels.correlation >= 0])
    ours = started | by_name[calls.name] if len(calls) else started
    return calls if ours.all() else calls.take(ours)


def on_time_base(blocks: Blocks, base: int | None) -> tuple[Blocks, bool, int]:
    """The blocks counted from the epoch if the file allows; whether it does; how many events lie beyond all time.

    `base` are the nanoseconds since the epoch at which the file begins to count, None where it does not say. The list
    is given up, block after block, so that memory never holds all of them twice.
    """
    late = sum(int((block.start > EPOCH).sum()) for block in blocks)
    events = sum(map(len, blocks))
    absolute = base is not None or 2 * late > events
    shift = base or 0
    moved: Blocks = []
    while blocks:
        block = blocks.pop(0)
        fits = block.end <= _LAST - shift
        ours = block if fits.all() else block.take(fits)
        moved.append(ours.replace(start=ours.start + shift, end=ours.end + shift) if shift else ours)
    return moved, absolute, events - sum(map(len, moved))


def renumber(blocks: Blocks, column: str, table: Sequence[K], rank: Callable[[K], Any]) -> tuple[Blocks, list[K]]:
    """Keep of a table what the blocks refer to, in order, whatever the order of the events was."""
    ours = [getattr(block, column, None) for block in blocks]
    used = np.zeros(len(table) + 1, dtype=np.bool_)  # the last place catches -1, which stays -1
    for numbers in ours:
        if numbers is not None:
            used[numbers] = True
    kept = sorted(np.flatnonzero(used[:-1]).tolist(), key=lambda number: rank(table[number]))
    places: Ints = np.full(len(used), -1, dtype=np.int32)
    places[kept] = np.arange(len(kept))
    renumbered: Blocks = [
        block if numbers is None else block.replace(**{column: places[numbers]})
        for block, numbers in zip(blocks, ours, strict=True)
    ]
    return renumbered, [table[number] for number in kept]


def natural(ids: Sequence[str]) -> list[tuple[int, str]]:
    """A key that orders tuples of ids by their value where they are numbers."""
    return [(int(text), text) if text.isdecimal() and len(text) < 30 else (-1, text) for text in ids]
