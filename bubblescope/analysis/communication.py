"""Communication by group and operation: how much, how much of it nothing hides, how much is waiting, and how fast.

Of a matched group, transfer is a member's own end minus the latest start of any member; the rest
of its time it waited for the others. Calls are matched by group and by their order in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bubblescope.align.pairs import UNKNOWN, Pairing
from bubblescope.align.together import exchanges, whole_collectives
from bubblescope.analysis.bandwidth import bandwidths
from bubblescope.analysis.moving import told
from bubblescope.analysis.ranks import RankView
from bubblescope.model.columns import Bools, Columns, Ints, Times, column
from bubblescope.model.groups import serves
from bubblescope.model.job import Parties
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs
from bubblescope.model.traffic import Communication, Group

__all__ = ["communication", "unpaired"]

Key = tuple[Group, str]


@dataclass(frozen=True, eq=False)
class _Calls(Columns):
    """Calls of one kind.

    `transfer` is negative where nothing tells it; `bytes` are all that the call moves, `load` those that go
    one way, both negative where unknown; `members` is how many ranks take part, -1 where unknown.
    """

    start: Times = column(np.int64)
    end: Times = column(np.int64)
    transfer: Times = column(np.int64)
    bytes: Ints = column(np.int64)
    load: Ints = column(np.int64)
    members: Ints = column(np.int64)


@dataclass(slots=True)
class _Sums:
    """One operation in one group, over ranks and steps."""

    exposed: int = 0
    calls: list[_Calls] = field(default_factory=list)


def communication(views: Mapping[int, RankView], used: Sequence[int], parties: Parties) -> tuple[Communication, ...]:
    """Means a rank and step, the costliest first; `parties` are the members of calls that do not name them."""
    latest, known = _latest_starts(views, parties), told(views)
    sums: dict[Key, _Sums] = {}
    count = 0
    for rank, view in views.items():
        rows = [k for k, number in enumerate(view.timeline.steps.number.tolist()) if number in used]
        count += len(rows)
        for key, calls in _calls(view, latest[rank], known[rank], rows):
            entry = sums.setdefault(key, _Sums())
            entry.exposed += Spans.of(calls.start, calls.end).minus(view.lanes.busy).total
            entry.calls.append(calls)
    found = [_mean(key, entry, max(count, 1)) for key, entry in sums.items()]
    return tuple(sorted(found, key=lambda c: (-c.total_ns, c.group, c.op)))


def _mean(key: Key, entry: _Sums, count: int) -> Communication:
    calls = _Calls.concat(entry.calls)
    total = int(np.sum(calls.end - calls.start)) // count
    transfer = _sum(calls.transfer)
    moved = None if transfer is None else transfer // count
    size = _sum(calls.bytes)
    algorithm, bus = bandwidths(key[1], calls.members, calls.load, calls.transfer)
    members = set(calls.members.tolist())
    return Communication(
        group=key[0],
        op=key[1],
        calls=len(calls) / count,
        total_ns=total,
        exposed_ns=entry.exposed // count,
        wait_ns=None if moved is None else total - moved,
        transfer_ns=moved,
        bytes=None if size is None else size // count,
        group_size=members.pop() if len(members) == 1 and -1 not in members else None,
        algorithm_bandwidth=algorithm,
        bus_bandwidth=bus,
    )


def _sum(values: Ints) -> int | None:
    """The sum, None where any value is unknown."""
    return int(values.sum()) if bool(np.all(values >= 0)) else None


def _calls(view: RankView, latest: Times, known: Bools, steps: Sequence[int]) -> Iterator[tuple[Key, _Calls]]:
    """A rank's calls in the given steps, kind by kind.

    `latest` is the latest start among the members of a collective, `known` which messages tell when they moved.
    """
    timeline = view.timeline
    m = timeline.messages
    chosen = np.isin(m.step, steps)
    if chosen.any():
        group: Group = "other" if view.pipeline is None else "pp"
        yield (group, "send_recv"), _messages(m.take(chosen), view.pairing.take(chosen), known[chosen])
    number: dict[Key, int] = {}
    kinds = np.array([number.setdefault(_key(call), len(number)) for call in timeline.calls], np.int64)
    members = np.array([_members(call) for call in timeline.calls], np.int64)
    c = timeline.collectives
    inside = np.isin(c.step, steps)
    of_kind = kinds[c.call] if len(c) else np.empty(0, np.int64)
    for key, kind in sorted(number.items()):
        of_key = inside & (of_kind == kind)
        if of_key.any():
            start, end, size = c.start[of_key], c.end[of_key], c.bytes[of_key]
            moved = _transfer(start, end, latest[of_key])
            yield key, _Calls(start, end, moved, size, size, members[c.call[of_key]])


def _messages(halves: Messages, other: Pairing, known: Bools) -> _Calls:
    """Calls of sends and receives; a kernel that holds several is one, and moves bytes once the last is there."""
    _, first, of = np.unique(halves.kernel, return_index=True, return_inverse=True)
    start, end = halves.start[first], halves.end[first]
    ready, over = np.full((2, len(first)), UNKNOWN)
    np.maximum.at(ready, of, other.other)
    np.maximum.at(over, of, other.other_end)
    ready[of[~known]] = UNKNOWN
    sent, taken = (_bytes(halves, of, len(first), direction) for direction in (Messages.SEND, Messages.RECV))
    unclear = _bytes(halves, of, len(first), Messages.EITHER)
    for part in (sent, taken, unclear):
        part[of[halves.bytes < 0]] = -1
    # A half that lingers after the other one is over (gloo ends it when somebody asks) moves no bytes any more.
    moved = _transfer(start, np.where(ready == UNKNOWN, end, np.minimum(end, over)), ready)
    load, members = np.maximum(sent, taken) + unclear, np.full(len(first), 2)
    return _Calls(start, end, moved, np.where(sent < 0, -1, sent + taken + unclear), load, members)


def _bytes(halves: Messages, of: Ints, kernels: int, direction: int) -> Ints:
    """Bytes of the halves of one direction in each kernel; `of` is the kernel of each half."""
    size = np.zeros(kernels, np.int64)
    mine = halves.direction == direction
    np.add.at(size, of[mine], halves.bytes[mine])
    return size


def _transfer(start: Times, end: Times, latest: Times) -> Times:
    """From when the last member was there until the end; UNKNOWN where nobody tells when that was."""
    known = latest != UNKNOWN
    result: Times = np.where(known, (end - np.maximum(start, latest)).clip(0), UNKNOWN)
    return result


def _key(call: CommArgs) -> Key:
    return serves(call) or "other", call.op


def _members(call: CommArgs) -> int:
    """How many ranks take part in a call, -1 where it does not say."""
    if call.op in {"send", "recv"}:
        return 2
    return len(call.ranks) or (call.group_size if call.group_size > 0 else -1)


def _latest_starts(views: Mapping[int, RankView], parties: Parties) -> dict[int, Times]:
    """For each collective of each rank the latest start among its members, UNKNOWN where they cannot be matched."""
    timelines = {rank: view.timeline for rank, view in views.items()}
    called = {rank: timeline.collectives for rank, timeline in timelines.items()}
    result = {rank: np.full(len(c), UNKNOWN) for rank, c in called.items()}
    # Without kernels sends and receives end when their rank asks: of these nobody tells when they were over.
    seen = {rank: timeline for rank, timeline in timelines.items() if timeline.on_gpu}
    for rows in (*whole_collectives(timelines, parties), *exchanges(seen)):
        latest = max(int(called[rank].start[row]) for rank, row in rows)
        if latest <= min(int(called[rank].end[row]) for rank, row in rows):
            for rank, row in rows:
                result[rank][row] = latest
    return result


def unpaired(views: Mapping[int, RankView]) -> int:
    """Sends and receives of steps whose other half should be there and is not."""
    return sum(
        int(np.sum((view.pairing.other == UNKNOWN) & (m.direction != Messages.EITHER) & (m.step >= 0)))
        for view in views.values()
        for m in (view.timeline.messages,)
    )
