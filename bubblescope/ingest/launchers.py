"""Which process of the host launched the kernels of each GPU, where a file holds several processes.

A kernel names its GPU, and its launch by a number. In a file that was merged of several ranks these numbers collide, so
that a kernel may have a launch in each of them. The process is the one that can have launched nearly all kernels of the
GPU. Where several can, what tells is, in this order: names that say the rank; a mark that the ids of a rank share; ids
of processes that were moved by one offset a rank, so that host and GPU of a rank are neighbours among all ids; a file
in which one rank stands behind the other; and that no kernel begins before its launch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bubblescope.ingest.owners import MOST
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.trace import Kernels, Launches

__all__ = ["UNTOLD", "AmbiguousError", "Calls", "Gpus", "launchers", "named"]

UNTOLD = -1
"""The process of a kernel of which nothing tells who launched it."""

_NEARLY = 0.9
"""Share of those kernels of a GPU that have any launch, for which a process must have one."""

_FEW = 0.01
"""Share of the kernels of a GPU that may be left untold, where several processes used it."""

_SLACK = 1_000_000
"""ns. Profilers match the clocks of host and GPU to some microseconds (`queues.py`)."""

_LOOKED_AT = 4_000_000
"""Kernels times processes that are looked at: as many of a GPU's kernels as that allows, evenly spread."""

_FEWEST = 20

Shares = npt.NDArray[np.float64]
Stretch = tuple[int, int, int]


class AmbiguousError(Exception):
    """Nothing tells which process launched the kernels of some GPU."""


@dataclass(frozen=True, eq=False)
class Calls:
    """The launches of a file in its order, with the process of each as a number of `pids`.

    `ranks` are those that names of the processes say; None where they say none.
    """

    rows: Launches
    process: Ints
    pids: Sequence[str]
    ranks: Sequence[int | None]

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Rows with a number by process, then number; and where those of each process begin."""
        rows = np.flatnonzero(self.rows.correlation >= 0)
        rows = rows[np.lexsort((self.rows.correlation[rows], self.process[rows]))]
        return rows, np.searchsorted(self.process[rows], np.arange(len(self.pids) + 1))

    def of(self, process: int) -> Ints:
        """Places of the launches of a process in the file, in the order of their numbers."""
        rows, begins = self._order
        return rows[begins[process] : begins[process + 1]]

    def numbers(self, process: int) -> Times:
        """The numbers of these launches."""
        return self.rows.correlation[self.of(process)]


@dataclass(frozen=True, slots=True, eq=False)
class Gpus:
    """The GPUs of a file: rows of the kernels of each, the process that these name, and the rank that its names say."""

    rows: Sequence[Ints]
    pids: Sequence[str]
    ranks: Sequence[int | None]


def launchers(kernels: Kernels, gpus: Gpus, calls: Calls) -> Ints:
    """The process that launched each kernel, as a number of `calls.pids`, or UNTOLD.

    Raises:
        AmbiguousError: several processes may have launched the same kernels.
    """
    result = np.full(len(kernels), UNTOLD)
    known = (kernels.correlation >= 0) & np.isin(kernels.correlation, calls.rows.correlation)
    started = np.isin(calls.rows.correlation, kernels.correlation[known])
    asking = np.unique(calls.process[started]).tolist()
    if len(asking) > MOST:
        raise AmbiguousError(f"the launches of {len(asking)} processes have the numbers of their kernels")
    launched = [number for number, rows in enumerate(gpus.rows) if known[rows].any()]
    if len(asking) == 1:
        for number in launched:
            result[gpus.rows[number]] = asking[0]
        return result
    fitting = _fitting(kernels, gpus, calls, asking, known) if asking else {}
    told = named(gpus, calls, asking), _by_turns(gpus, fitting, calls)
    for number in launched:
        rows, fits = gpus.rows[number], fitting[number]
        if fits:
            result[rows] = _one_of(fits, [way[number] for way in told if number in way])
        else:
            result[rows] = _row_by_row(kernels.correlation[rows], calls, asking)
    return result


Fits = Mapping[int, bool]
"""The processes that have launches for nearly all kernels of a GPU, and whether none of these launches is too late."""


def _one_of(fits: Fits, said: Sequence[int]) -> int:
    """The process of a GPU: the only one that fits, or the first of those that something says, or that is in time."""
    ways = [list(fits), [who for who in said if who in fits][:1], [who for who, in_time in fits.items() if in_time]]
    found = next((way[0] for way in ways if len(way) == 1), None)
    if found is None:
        raise AmbiguousError(f"the launches of {len(fits)} processes have the numbers of the same kernels")
    return found


def _fitting(kernels: Kernels, gpus: Gpus, calls: Calls, asking: Sequence[int], known: Bools) -> Mapping[int, Fits]:
    """The processes that can have launched nearly all those kernels of each GPU that have a launch.

    None can have launched more kernels of one number than it has launches, where those of all processes are as many as
    the kernels. A launch is too late if its kernel had begun; as the clock of a GPU may be off, that comes last.
    """
    most = max(_FEWEST, _LOOKED_AT // (len(asking) * len(gpus.rows)))
    samples = [rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)] for rows in gpus.rows]
    looked, edges = np.concatenate(samples), np.cumsum([0, *map(len, samples)])
    wanted, launched = kernels.correlation[looked], known[looked]
    crowd = [
        _count(np.sort(kernels.correlation[rows]), kernels.correlation[sample])
        for rows, sample in zip(gpus.rows, samples, strict=True)
    ]
    counts = [_count(calls.numbers(who), wanted) for who in asking]
    shared = np.concatenate(crowd) == np.sum(counts, axis=0)
    least = _NEARLY * _sums(launched, edges)
    found: dict[int, dict[int, bool]] = {number: {} for number in range(len(gpus.rows))}
    for who, count in zip(asking, counts, strict=True):
        numbers = calls.numbers(who)
        at = calls.of(who)[np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)]
        can = launched & (count > 0) & ~(shared & (np.concatenate(crowd) > count))
        in_time = can & (calls.rows.start[at] <= kernels.start[looked] + _SLACK)
        enough, soon = _sums(can, edges) >= least, _sums(in_time, edges) >= least
        for number in np.flatnonzero(enough & (least > 0)).tolist():
            found[number][who] = bool(soon[number])
    return found


def _count(ordered: Times, wanted: Times) -> Ints:
    """How often each number stands in an ordered column."""
    count: Ints = np.searchsorted(ordered, wanted, "right") - np.searchsorted(ordered, wanted, "left")
    return count


def _sums(hit: Bools, edges: Ints) -> Shares:
    total = np.append(0, np.cumsum(hit))
    sums: Shares = (total[edges[1:]] - total[edges[:-1]]).astype(np.float64)
    return sums


def named(gpus: Gpus, calls: Calls, asking: Sequence[int]) -> Mapping[int, int]:
    """The process of each GPU, as names and ids say; empty where they say nothing."""
    return _by_names(gpus, calls, asking) or _by_marks(gpus, calls, asking) or _by_ids(gpus, calls, asking)


def _by_names(gpus: Gpus, calls: Calls, asking: Sequence[int]) -> Mapping[int, int]:
    """The process of each GPU whose names say the same rank, where those of no two processes do."""
    said = {calls.ranks[who]: who for who in asking}
    if len(said) < len(asking):
        return {}
    return {n: said[rank] for n, rank in enumerate(gpus.ranks) if rank is not None and rank in said}


_MARKS = tuple(map(re.compile, (r"(.*?)\d+\D*", r"\D*\d+(.*)")))
"""What stands before the last number of an id, or behind its first."""

_LONGEST = 100
"""Characters of an id that may hold a mark."""


def _by_marks(gpus: Gpus, calls: Calls, asking: Sequence[int]) -> Mapping[int, int]:
    """The process of each GPU, where all ids of a rank begin, or end, with a mark of its own (`r0_7000` and `r0_0`)."""
    for mark in _MARKS:
        marked = {_mark(mark, calls.pids[who]): who for who in asking}
        whose = [marked.get(_mark(mark, pid)) for pid in gpus.pids]
        if 1 < len(asking) == len(marked) and None not in whose:
            return {number: who for number, who in enumerate(whose) if who is not None}
    return {}


def _mark(mark: re.Pattern[str], text: str) -> str:
    match = mark.fullmatch(text) if len(text) <= _LONGEST else None
    return text if match is None else match[1]


def _by_ids(gpus: Gpus, calls: Calls, asking: Sequence[int]) -> Mapping[int, int]:
    """The process of each GPU, where the ids of both take turns."""
    texts = [
        *((text, False, number) for number, text in enumerate(gpus.pids)),
        *((calls.pids[who], True, who) for who in asking),
    ]
    if len(asking) < 2 or not all(text.isdecimal() and len(text) < 30 for text, *_ in texts):
        return {}
    ids = sorted((int(text), of_host, number) for text, of_host, number in texts)
    of_host = [kind for _, kind, _ in ids]
    if of_host[0] == of_host[-1] or any(one and other for one, other in pairwise(of_host)):
        return {}
    result, owner = {}, UNTOLD
    for _, kind, number in ids if of_host[0] else reversed(ids):  # the process stands before its GPUs, or behind them
        if kind:
            owner = number
        else:
            result[number] = owner
    return result


def _by_turns(gpus: Gpus, fitting: Mapping[int, Fits], calls: Calls) -> Mapping[int, int]:
    """The process of each GPU, where the file has one rank behind the other."""
    hosts = _stretches({who: calls.of(who) for fits in fitting.values() for who in fits})
    ran = _stretches({number: gpus.rows[number] for number, fits in fitting.items() if fits})
    if hosts is None or ran is None or len(hosts) != len(ran):
        return {}
    return {number: who for (*_, number), (*_, who) in zip(ran, hosts, strict=True)}


def _stretches(rows_of: Mapping[int, Ints]) -> list[Stretch] | None:
    """Where the rows of each begin and end, in order; None where they overlap."""
    found = sorted((int(rows.min()), int(rows.max()), number) for number, rows in rows_of.items())
    return found if all(one[1] < other[0] for one, other in pairwise(found)) else None


def _row_by_row(wanted: Times, calls: Calls, asking: Sequence[int]) -> Ints:
    """The process of each kernel of a GPU that several used: by its number, or else by its place in the file."""
    result, count = np.full(len(wanted), UNTOLD), np.zeros(len(wanted), np.int64)
    for who in asking:
        has = np.isin(wanted, calls.numbers(who))
        result[has] = who
        count += has
    result[count != 1] = UNTOLD
    hosts = _stretches({who: calls.of(who) for who in asking})
    borders = None if hosts is None else _borders(wanted, len(hosts))
    if hosts is not None and borders is not None:
        turn = np.searchsorted(borders, np.arange(len(wanted)), "right")
        result = np.where(count > 1, np.array([who for *_, who in hosts])[turn], result)
    if np.sum((result == UNTOLD) & (count > 0)) > _FEW * len(wanted):
        raise AmbiguousError("several processes used one GPU, and their launches have the same numbers")
    return result


def _borders(wanted: Times, parts: int) -> Ints | None:
    """Where the parts of a file begin but the first, if numbers come once in each; None where the parts mix."""
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    turn, count = np.arange(len(order)) - np.searchsorted(ordered, ordered), _count(ordered, ordered)
    once = [order[(count == parts) & (ordered >= 0) & (turn == part)] for part in range(parts)]
    if not len(once[0]):
        return None
    ends, begins = (np.array([pick(rows) for rows in once]) for pick in (np.max, np.min))
    borders: Ints = begins[1:]
    return borders if np.all(ends[:-1] < borders) else None
