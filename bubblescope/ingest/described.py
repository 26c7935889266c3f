"""Who recorded a trace, by a range that says it: `rank=3; pp=0/2 dp=0/1 cp=0/1 ep=3/4; mbs=1 seq=2048`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bubblescope.ingest.tables import MOST_RANKS
from bubblescope.model.names import plain
from bubblescope.model.trace import Coordinate, Finding, Identity

__all__ = ["described"]

# mlc-ai/pith-train, the first range of every rank; older ones leave the rank out.
_AXIS = r"(?:pp|tp|dp|cp|ep)=\d{1,6}/\d{1,6}"
_RANGE = re.compile(rf"(?:rank=(?P<rank>\d{{1,6}}); )?(?P<axes>{_AXIS}(?: {_AXIS})*)(?:[; ].*)?", re.ASCII)


def described(identity: Identity, names: Iterable[str], path: Path) -> tuple[Identity, tuple[Finding, ...]]:
    """The identity with what a range says of it, and a finding where that contradicts the metadata.

    A rank in such a range stands above one in the name of the file, and below one in the metadata.
    Ranges that differ from each other (those of several ranks in one file) say nothing.
    """
    told = {(match["rank"], match["axes"]) for name in names if (match := _RANGE.fullmatch(plain(name)))}
    if len(told) != 1:
        return identity, ()
    number, axes = told.pop()
    coordinates = tuple(_coordinate(axis) for axis in axes.split())
    if not all(0 <= axis.position < axis.degree for axis in coordinates):
        return identity, ()
    identity = replace(identity, coordinates=coordinates)
    rank = None if number is None or int(number) >= MOST_RANKS else int(number)
    if rank is None or rank == identity.rank:
        return identity, ()
    if identity.rank_source == "metadata":
        message = f"a range says rank {rank}, the metadata say rank {identity.rank}; the metadata are believed"
        return identity, (Finding("metadata-conflict", "warning", message, str(path)),)
    return replace(identity, rank=rank, rank_source="label"), ()


def _coordinate(axis: str) -> Coordinate:
    purpose, numbers = axis.split("=")
    position, degree = numbers.split("/")
    return Coordinate(purpose, int(position), int(degree))
