"""Who recorded a trace, by a range that says it: `rank=3; pp=0/2 dp=0/1 cp=0/1 ep=3/4; mbs=1`, or `iter_3_7`."""

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

# sail-sg/zero-bubble-pipeline-parallelism, around each step: the rank, then the iteration.
_STEP = re.compile(r"iter_(?P<rank>\d{1,6})_\d{1,18}", re.ASCII)


def described(identity: Identity, names: Iterable[str], path: Path) -> tuple[Identity, tuple[Finding, ...]]:
    """The identity with what ranges say of it, and a finding where that contradicts what is told better.

    A rank in a range stands above one in the name of the file, and below one in metadata or environment.
    Ranges that differ from each other (those of several ranks in one file) say nothing.
    """
    texts = list(map(plain, names))
    told = {(match["rank"], match["axes"]) for text in texts if (match := _RANGE.fullmatch(text))}
    number, axes = told.pop() if len(told) == 1 else (None, "")
    coordinates = tuple(_coordinate(axis) for axis in axes.split())
    if not all(0 <= axis.position < axis.degree for axis in coordinates):
        return identity, ()
    identity = replace(identity, coordinates=coordinates or identity.coordinates)
    ranks = {match["rank"] for text in texts if (match := _STEP.fullmatch(text))} if number is None else {number}
    rank = int(ranks.pop()) if len(ranks) == 1 else None
    if rank in {None, identity.rank} or rank >= MOST_RANKS:
        return identity, ()
    if identity.rank_source in {"metadata", "environment"}:
        message = f"a range says rank {rank}, the {identity.rank_source} rank {identity.rank}, which is believed"
        return identity, (Finding("metadata-conflict", "warning", message, str(path)),)
    return replace(identity, rank=rank, rank_source="label"), ()


def _coordinate(axis: str) -> Coordinate:
    purpose, numbers = axis.split("=")
    position, degree = numbers.split("/")
    return Coordinate(purpose, int(position), int(degree))
