"""Communication by group and operation: how much, how much of it nothing hides, and how much is waiting.

Of a matched group, transfer is a member's own end minus the latest start of any member; the rest
of its time it waited for the others. Calls are matched by group and by their order in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bubblescope.align.pairs import UNKNOWN, Pairing
from bubblescope.align.together import whole_collectives
from bubblescope.analysis.ranks import RankView
from bubblescope.model.columns import Ints, Times
from bubblescope.model.groups import serves
from bubblescope.model.report import Communication, Group
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs

__all__ = ["communication"]

Key = tuple[Group, str]


@dataclass(slots=True)
class _Sums:
    """Totals of one operation in one group over ranks and steps."""

    calls: int = 0
    total: int = 0
    exposed: int = 0
    transfer: int | None = 0
    bytes: int | None = 0


def communication(views: Mapping[int, RankView], used: Sequence[int]) -> tuple[Communication, ...]:
    """Means a rank and step, the costliest first."""
    latest = _latest_starts(views)
    sums: dict[Key, _Sums] = {}
    count = 0
    for rank, view in views.items():
        rows = [k for k, number in enumerate(view.timeline.steps.number.tolist()) if number in used]
        count += len(rows)
        for key, call in _calls(view, latest[rank], rows):
            _add(sums.setdefault(key, _Sums()), view, call)
    found = [_mean(key, entry, max(count, 1)) for key, entry in sums.items()]
    return tuple(sorted(found, key=lambda c: (-c.total_ns, c.group, c.op)))


Calls = tuple[Times, Times, Times, Ints]
"""Start, end, nanoseconds of transfer (UNKNOWN where nothing tells it), and bytes of calls of one kind."""


def _add(entry: _Sums, view: RankView, calls: Calls) -> None:
    start, end, transfer, size = calls
    entry.calls += len(start)
    entry.total += int(np.sum(end - start))
    entry.exposed += Spans.of(start, end).minus(view.lanes.busy).total
    moving = int(transfer.sum()) if bool(np.all(transfer != UNKNOWN)) else None
    entry.transfer = None if entry.transfer is None or moving is None else entry.transfer + moving
    total = int(size.sum()) if bool(np.all(size >= 0)) else None
    entry.bytes = None if entry.bytes is None or total is None else entry.bytes + total


def _mean(key: Key, entry: _Sums, count: int) -> Communication:
    total = entry.total // count
    transfer = None if entry.transfer is None else entry.transfer // count
    return Communication(
        group=key[0],
        op=key[1],
        calls=entry.calls / count,
        total_ns=total,
        exposed_ns=entry.exposed // count,
        wait_ns=None if transfer is None else total - transfer,
        transfer_ns=transfer,
        bytes=None if entry.bytes is None else entry.bytes // count,
    )


def _calls(view: RankView, latest: Times, steps: Sequence[int]) -> Iterator[tuple[Key, Calls]]:
    """A rank's calls in the given steps, kind by kind; `latest` is the latest start among a call's members."""
    timeline = view.timeline
    m = timeline.messages
    chosen = np.isin(m.step, steps)
    if chosen.any():
        group: Group = "other" if view.pipeline is None else "pp"
        yield (group, "send_recv"), _messages(m.take(chosen), view.pairing.take(chosen))
    keys = [_key(call) for call in timeline.calls]
    c = timeline.collectives
    inside = np.isin(c.step, steps)
    for key in sorted(set(keys)):
        of_key = np.array([k == key for k in keys], bool)[c.call] & inside if len(c) else inside
        if of_key.any():
            start, end = c.start[of_key], c.end[of_key]
            yield key, (start, end, _transfer(start, end, latest[of_key]), c.bytes[of_key])


def _messages(halves: Messages, other: Pairing) -> Calls:
    """Calls of sends and receives; a kernel that holds several is one, and moves bytes once the last is there."""
    _, first, of = np.unique(halves.kernel, return_index=True, return_inverse=True)
    start, end = halves.start[first], halves.end[first]
    ready, over, size = np.copy(other.other[first]), np.copy(other.other_end[first]), np.zeros(len(first), np.int64)
    np.maximum.at(ready, of, other.other)
    np.maximum.at(over, of, other.other_end)
    np.add.at(size, of, halves.bytes)
    for total, part in ((ready, other.other), (over, other.other_end)):
        total[of[part == UNKNOWN]] = UNKNOWN
    size[of[halves.bytes < 0]] = -1
    # A half that lingers after the other one is over (gloo ends it when somebody asks) moves no bytes any more.
    return start, end, _transfer(start, np.minimum(end, over), ready), size


def _transfer(start: Times, end: Times, latest: Times) -> Times:
    """From when the last member was there until the end; UNKNOWN where nobody tells when that was."""
    known = latest != UNKNOWN
    result: Times = np.where(known, (end - np.maximum(start, latest)).clip(0), UNKNOWN)
    return result


def _key(call: CommArgs) -> Key:
    return serves(call) or "other", call.op


def _latest_starts(views: Mapping[int, RankView]) -> dict[int, Times]:
    """For each collective of each rank the latest start among its members, UNKNOWN where they cannot be matched."""
    called = {rank: view.timeline.collectives for rank, view in views.items()}
    result = {rank: np.full(len(c), UNKNOWN) for rank, c in called.items()}
    for rows in whole_collectives({rank: view.timeline for rank, view in views.items()}):
        latest = max(int(called[rank].start[row]) for rank, row in rows)
        if latest <= min(int(called[rank].end[row]) for rank, row in rows):
            for rank, row in rows:
                result[rank][row] = latest
    return result


def unpaired(views: Mapping[int, RankView]) -> int:
    """Sends and receives whose other half should be there and is not."""
    return sum(
        int(np.sum((view.pairing.other == UNKNOWN) & (view.timeline.messages.direction != Messages.EITHER)))
        for view in views.values()
    )
