"""Who recorded a trace: from the members of its document, else from the name of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bubblescope.ingest.owners import devices_of
from bubblescope.ingest.parts import Parts
from bubblescope.ingest.tables import LONGEST, MOST_RANKS, parse_ranks, plausible_ranks, whole
from bubblescope.model.trace import Device, Finding, Identity, ProcessGroup

__all__ = ["KINETO_KEYS", "Members", "filename_rank", "identify", "identities", "named"]

KINETO_KEYS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "traceName", "baseTimeNanoseconds"})

_NAMED_RANK = re.compile(r"(?i)(?:^|[^a-z])rank[-_]?(\d{1,6})(?!\d)")
_TRAILING_NUMBER = re.compile(r"(?<!\d)[._-](\d{1,6})$")  # not the end of a date
_COUNTS_OTHER = re.compile(r"(?i)(activities|pid|step|iter|iteration|epoch|attempt|node|host)$")
_SUFFIXES = re.compile(r"(?i)(\.pt)?(\.trace)?(\.json|\.sqlite3?|\.db)?(\.gz)?$")
_LARGEST_BASE = 1 << 62
_LONGEST_SHOWN = 40


@dataclass(slots=True)
class Members:
    """Those members of a trace document, other than its events, that are used."""

    marks: bool = False
    distributed: Any = None
    devices: Any = None
    host: Any = None
    base: int | None = None

    WANTED = frozenset({"distributedInfo", "deviceProperties", "host_name", "baseTimeNanoseconds"})

    def take(self, key: str, text: bytes) -> None:
        """Note a member; a value that is no JSON counts as absent."""
        self.marks = self.marks or key in KINETO_KEYS
        if key not in self.WANTED:
            return
        value = _decoded(text)
        if key == "distributedInfo":
            self.distributed = value
        elif key == "deviceProperties":
            self.devices = value
        elif key == "host_name":
            self.host = value
        else:
            self.base = whole(value, _LARGEST_BASE)

    def differs(self, other: Members) -> bool:
        """Whether these are of another rank, or count time from another moment."""
        ranks, bases = (self._rank(), other._rank()), (self.base, other.base)
        return any(None not in pair and pair[0] != pair[1] for pair in (ranks, bases))

    def add(self, other: Members) -> None:
        """Take over what these do not tell."""
        self.marks = self.marks or other.marks
        for name in ("distributed", "devices", "host", "base"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(other, name))

    def _rank(self) -> int | None:
        return whole(self.distributed.get("rank"), MOST_RANKS) if isinstance(self.distributed, dict) else None


def _decoded(text: bytes) -> Any:
    """The value of a member, or None."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def identify(path: Path, members: Members) -> tuple[Identity, list[Finding]]:
    """The identity, and findings where it cannot be or where the name of the file contradicts it."""
    identity, odd = _of_metadata(path, members)
    identity, more = named(path, identity)
    return identity, [*odd, *more]


def _of_metadata(path: Path, members: Members) -> tuple[Identity, list[Finding]]:
    """What the members of a document tell, and findings where that cannot be."""
    told = members.distributed if isinstance(members.distributed, dict) else {}
    odd = [_implausible(path, key, told[key]) for key in ("rank", "world_size") if not _is_rank(told.get(key))]
    rank = whole(told.get("rank"), MOST_RANKS)
    identity = Identity(
        rank=rank,
        rank_source=None if rank is None else "metadata",
        world_size=whole(told.get("world_size"), MOST_RANKS),
        backend=_text(told.get("backend")),
        host=_text(members.host),
        devices=tuple(_devices(members.devices)),
        groups=tuple(_groups(told.get("pg_config"))),
    )
    return identity, odd


def identities(path: Path, members: Members, parts: Parts, *, absolute: bool) -> tuple[list[Identity], list[Finding]]:
    """Who each of the ranks of a file is, and findings where what it tells cannot be.

    The metadata of a file are those of one rank. Where it holds several, they tell none of them, and the rank is what
    names in the file say. The number of ranks stands if each is a process, and it is no less than the file holds.
    Devices of one process share its clock and its host; of several processes nothing tells whether they ran on one.
    Times that do not count from the epoch (not `absolute`) are compared within a process only.
    """
    if len(parts.ranks) == 1:
        identity, odd = identify(path, members)
        clock = identity.host if absolute else None
        return [replace(identity, clock=clock, process=parts.ranks[0].process)], odd
    told, odd = _of_metadata(path, members)
    one = parts.processes == 1
    counted = all(part.alone for part in parts.ranks) and (told.world_size or 0) >= len(parts.ranks)
    shared = replace(
        told,
        rank=None,
        rank_source=None,
        world_size=told.world_size if counted else None,
        groups=(),
        host=told.host if one else None,
        clock=((told.host if absolute else None) or str(path)) if one else None,
    )
    return [
        replace(
            shared,
            rank=part.rank,
            rank_source=None if part.rank is None else "metadata",
            process=part.process,
            device=None if part.alone else part.device,
            devices=_device(part.device, told.devices),
        )
        for part in parts.ranks
    ], odd


def _device(number: str | None, devices: Sequence[Device]) -> tuple[Device, ...]:
    """The device of a rank, as the metadata name it."""
    place = whole(number)
    return () if place is None else devices_of(place, place, {device.id: device.name for device in devices})


def named(path: Path, identity: Identity) -> tuple[Identity, list[Finding]]:
    """The identity with the rank in the name of its file where nothing else tells it; a finding where they differ."""
    number, rank = filename_rank(path.name), identity.rank
    if number is None or number == rank:
        return identity, []
    if rank is None:
        plausible = identity.world_size is None or number < identity.world_size
        return (replace(identity, rank=number, rank_source="filename") if plausible else identity), []
    if _NAMED_RANK.search(path.name) is None:
        return identity, []  # a bare number in a name claims nothing
    message = f"the file name says rank {number}, its metadata say rank {rank}; the metadata are believed"
    return identity, [Finding("metadata-conflict", "warning", message, str(path))]


def filename_rank(name: str) -> int | None:
    """The rank that a file name tells: "rank3", "rank_3", or a short number at its end that counts nothing else."""
    said = _NAMED_RANK.search(name)
    if said is not None:
        return int(said[1])
    stem = _SUFFIXES.sub("", name)
    trailing = _TRAILING_NUMBER.search(stem) if stem != name else None
    if trailing is None or _COUNTS_OTHER.search(stem[: trailing.start()]):
        return None
    return int(trailing[1])


def _devices(value: Any) -> list[Device]:
    entries = [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []
    numbered = [(whole(entry.get("id")), _text(entry.get("name")) or "") for entry in entries]
    return [Device(number, name) for number, name in numbered if number is not None]


def _groups(value: Any) -> list[ProcessGroup]:
    groups = []
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, Mapping):
            name, description = _text(entry.get("pg_name")), _text(entry.get("pg_desc"))
            groups.append(ProcessGroup(name or "", description or "", _ranks(entry.get("ranks"))))
    return groups


def _ranks(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        return parse_ranks(value)
    ranks = [whole(rank) for rank in value] if isinstance(value, list) else []
    return plausible_ranks([-1 if rank is None else rank for rank in ranks])


def _is_rank(value: Any) -> bool:
    """Whether the value may stand for a rank or for a number of them; what is not told may."""
    return value is None or whole(value, MOST_RANKS) is not None


def _implausible(path: Path, key: str, value: Any) -> Finding:
    shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"{repr(value)[:_LONGEST_SHOWN]}..."
    message = f"distributedInfo says {key} {shown}, which cannot be; it counts as not told"
    return Finding("implausible-metadata", "warning", message, str(path))


def _text(value: Any) -> str | None:
    return value[:LONGEST] if isinstance(value, str) else None
