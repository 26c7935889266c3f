"""An export of Nsight Systems, rank by rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.blocks import Blocks, natural, on_time_base, real_launches, renumber
from bubblescope.ingest.command import export_again
from bubblescope.ingest.described import described
from bubblescope.ingest.metadata import named
from bubblescope.ingest.nsys.database import Database
from bubblescope.ingest.nsys.findings import of_file, of_rank
from bubblescope.ingest.nsys.nvtx import Ranges, ranges
from bubblescope.ingest.nsys.owned import Owned
from bubblescope.ingest.nsys.ranks import held, identities, owners
from bubblescope.ingest.nsys.schema import GRAPHS, KERNELS, pid_of, tid_of
from bubblescope.ingest.nsys.session import Session, session
from bubblescope.ingest.nsys.strings import Strings
from bubblescope.ingest.nsys.work import Work, launches, work
from bubblescope.ingest.owners import Owner, check_count
from bubblescope.ingest.pause import collector_paused
from bubblescope.ingest.plausible import plausible
from bubblescope.ingest.shares import Hosted, shared_out
from bubblescope.ingest.stream import Progress
from bubblescope.ingest.tables import Table
from bubblescope.model.columns import Times
from bubblescope.model.trace import Annotations, Finding, Identity, Launches, RankTrace, Source, Thread

__all__ = ["read"]

_LATE = 10**18  # ns; an export that was told to write wall clock times does so


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recording:
    """All that is used of a file; `names` is the table that every `name` column indexes."""

    path: Path
    bytes: int
    session: Session
    names: Sequence[str]
    work: Work
    launches: Owned[Launches]
    ranges: Ranges

    @property
    def base(self) -> int | None:
        """Nanoseconds since the epoch at which times begin to count; None where they count from there already."""
        start = self.work.kernels.rows.start
        return None if len(start) and start[len(start) // 2] > _LATE else self.session.begin


def read(path: str | Path, *, progress: Progress | None = None) -> Iterator[RankTrace]:
    """The events of the ranks of a file, one rank after the other.

    Args:
        path: An SQLite file that `nsys export --type sqlite` wrote.
        progress: Called with the bytes of the file consumed so far.

    Raises:
        InputError: The file cannot be read or is damaged, or nothing in it ran on a GPU, or more than on any host.
    """
    recording = _recorded(Path(path), progress)
    found = owners(recording.work)
    if not found:
        raise _nothing(recording.path)
    check_count(recording.path, found, f"Export the report again: {export_again(recording.path)}")
    told, unplaced = _of_file(recording, found), recording.work.implausible
    known = identities(found, recording.session, recording.ranges.members, str(path))
    hosts = _Hosts(recording, found)
    for owner, identity in zip(found, known, strict=True):
        trace = _trace(recording, owner, hosts.of(owner), identity, unplaced)
        trace = _named(trace, recording.path, alone=len(found) == 1)
        yield replace(trace, findings=(*told, *trace.findings))
        told, unplaced = [], 0  # what concerns the file is said once


def _recorded(path: Path, progress: Progress | None) -> _Recording:
    with Database(path, progress) as database, collector_paused():
        names: Table[str] = Table()
        strings, told = Strings(database), session(database)
        ran = work(database, strings, names)
        database.advance(0.25)
        called = launches(database, strings, names)
        database.advance(0.6)
        marked = ranges(database, strings, names)
        database.advance(1)
        return _Recording(
            path=path,
            bytes=database.bytes,
            session=told,
            names=list(names),
            work=ran,
            launches=called,
            ranges=marked,
        )


def _nothing(path: Path) -> InputError:
    return InputError(
        f"{path}: expected kernels, found none: neither {KERNELS.name} nor {GRAPHS.name} has a row",
        hint="Record with nsys profile --trace=cuda,nvtx over a whole training step, or leave the file out.",
    )


def _of_file(recording: _Recording, found: Sequence[Owner]) -> list[Finding]:
    ran = recording.work
    others = len(ran.device) - sum(int(held(ran, owner).sum()) for owner in found)
    return of_file(recording.path, ran, recording.ranges, recording.session, others)


class _Hosts:
    """What the processes of a file did on their hosts, for which of their devices; of the process asked for last."""

    def __init__(self, recording: _Recording, found: Sequence[Owner]) -> None:
        self.recording = recording
        self.devices = {owner.process: [o.device for o in found if o.process == owner.process] for owner in found}
        self.known: dict[int, dict[int, Hosted]] = {}
        self.threads: dict[int, Times] = {}

    def of(self, owner: Owner) -> tuple[Hosted, Times]:
        """What the process of a rank did for it, and the threads that the numbers of the events mean."""
        if owner.process not in self.known:
            self._share_out(owner.process)
        return self.known[owner.process].pop(owner.device), self.threads[owner.process]

    def _share_out(self, process: int) -> None:
        marked, ran, devices = self.recording.ranges, self.recording.work, self.devices[process]
        calls, ops, annotations = (
            self.recording.launches.of(process),
            marked.ops.of(process),
            marked.annotations.of(process),
        )
        threads = np.unique(np.concatenate([rows.thread for rows in (ops, annotations, calls)]))
        mine = np.flatnonzero(ran.kernels.process == process)
        kernels = ran.kernels.rows.take(mine)
        called = real_launches(calls.threaded(threads), kernels, self.recording.names)
        hosted = Hosted(ops.threaded(threads), annotations.threaded(threads), called, Annotations.empty())
        shares = [hosted]
        if len(devices) > 1:
            shares = shared_out(hosted, self.recording.names, kernels, ran.device[mine], devices)
        self.known[process] = dict(zip(devices, shares, strict=True))
        self.threads[process] = threads


def _trace(
    recording: _Recording, owner: Owner, host: tuple[Hosted, Times], identity: Identity, unplaced: int
) -> RankTrace:
    """The trace of one of the ranks; `unplaced` rows of the file have no usable time."""
    kernels = recording.work.kernels.rows.take(held(recording.work, owner))
    hosted, threads = host
    blocks: Blocks = [hosted.ops, hosted.annotations, hosted.launches, kernels]
    blocks, absolute, lost = on_time_base(blocks, recording.base)
    ids = [(str(pid_of(thread)), str(tid_of(thread))) for thread in threads.tolist()]
    blocks, names = renumber(blocks, "name", recording.names, str)
    blocks, ids = renumber(blocks, "thread", ids, natural)
    blocks, _ = renumber(blocks, "lane", recording.work.lanes, natural)
    blocks, comms = renumber(blocks, "comm", recording.ranges.comms, repr)
    trace = RankTrace(
        source=Source(str(recording.path), "nsys", recording.bytes, sum(map(len, blocks))),
        identity=identity,
        absolute=absolute,
        names=tuple(names),
        threads=tuple(Thread(*pair) for pair in ids),
        comms=tuple(comms),
        findings=tuple(of_rank(recording.path, kernels, hosted.launches)),
        **dict(zip(("ops", "annotations", "launches", "kernels"), blocks, strict=True)),  # type: ignore[arg-type]
    )
    return plausible(trace, unplaced + lost)


def _named(trace: RankTrace, path: Path, *, alone: bool) -> RankTrace:
    """The trace with what its ranges say of its rank, or else the name of the file, where that has no other rank."""
    texts = (trace.names[number] for number in np.unique(trace.annotations.name).tolist())
    identity, odd = described(trace.identity, texts, path)
    more: Sequence[Finding] = ()
    if alone:
        identity, more = named(path, identity)
    return replace(trace, identity=identity, findings=(*trace.findings, *odd, *more))
