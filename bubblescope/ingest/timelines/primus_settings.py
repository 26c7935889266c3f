"""The settings that Primus writes beside its dumps, `config.json`: how many ranks, chunks and micro-batches there are.

`{"world_size": 8, "dp_size": 1, "tp_size": 1, "ep_size": 1, "pp_size": 8, "vp_size": 1, "num_mbs": 16, ...}`
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import Struct

from bubblescope.ingest.tables import MOST_RANKS
from bubblescope.model.trace import Finding, Identity, ProcessGroup

__all__ = ["NAME", "Settings", "applied", "beside", "is_settings"]

NAME = "config.json"
_MOST_BYTES = 1 << 16
_MOST = 1 << 20
"""More chunks or micro-batches than any job has."""


class Settings(Struct):
    """What is used of the settings; None where they do not tell it."""

    pp_size: int | None = None
    vp_size: int | None = None
    num_mbs: int | None = None

    @property
    def plausible(self) -> bool:
        """Whether a job can have these sizes."""
        limits = ((self.pp_size, MOST_RANKS), (self.vp_size, _MOST), (self.num_mbs, _MOST))
        return all(size is None or 1 <= size <= most for size, most in limits)


def is_settings(head: bytes) -> bool:
    """Whether a document that begins with `head` holds such settings, and is no trace."""
    return b'"pp_size"' in head and b'"num_mbs"' in head


def beside(dump: Path) -> tuple[Settings, list[Finding]]:
    """The settings in the folder of a dump; empty ones where there are none, with a finding where they are damaged."""
    path = dump.with_name(NAME)
    try:
        if not path.is_file():
            return Settings(), []
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        found = msgspec.json.decode(text, type=Settings)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        return Settings(), [_unusable(path, f"cannot be read ({error})")]
    if not found.plausible:
        return Settings(), [_unusable(path, "tells sizes that cannot be")]
    return found, []


def _unusable(path: Path, why: str) -> Finding:
    return Finding("implausible-metadata", "warning", f"{NAME} {why}; it counts as not there", str(path))


def applied(
    found: Settings, identity: Identity, forwards: Collection[int], path: Path
) -> tuple[Identity, list[Finding]]:
    """The identity of a dump with what its settings tell, unless they are those of another run.

    Args:
        found: the settings.
        identity: the dump's; its rank is the position in the pipeline, None where nothing tells that.
        forwards: how many each step holds.
        path: the dump.
    """
    p, v, m = found.pp_size, found.vp_size, found.num_mbs
    if p is not None and identity.rank is not None and identity.rank >= p:
        return identity, [_conflict(path, f"a pipeline of {p} ranks, and this is rank {identity.rank}")]
    if m is not None and forwards and m * (v or 1) not in forwards:
        held = max(forwards)
        return identity, [_conflict(path, f"{m * (v or 1)} forwards a rank and step, and this one holds {held}")]
    known = () if p is None or identity.rank is None else (ProcessGroup("pp", "pp", tuple(range(p))),)
    return replace(identity, world_size=p, virtual=v, groups=known), []


def _conflict(path: Path, what: str) -> Finding:
    return Finding("metadata-conflict", "warning", f"{NAME} beside it says {what}; it is not used", str(path))
