"""Ranks whose time went the same way, put together so that a table of 64 ranks stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubblescope.model.report import Rank

__all__ = ["RankGroup", "group_ranks"]

# Ranks are alike when no part of their window differs by more than this.
_ALIKE = 0.01


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that share a row; its numbers are their means."""

    members: tuple[Rank, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Their numbers."""
        return tuple(member.rank for member in self.members)

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that any of them holds."""
        return tuple(sorted({stage for member in self.members for stage in member.stages}))

    @property
    def window_ns(self) -> float:
        """Their mean window."""
        return sum(member.window_ns for member in self.members) / len(self.members)

    def share(self, part: str) -> float | None:
        """The mean share that a part has of the window; None where a member does not know it."""
        shares = [_shares(member)[part] for member in self.members]
        known = [share for share in shares if share is not None]
        return sum(known) / len(shares) if len(known) == len(shares) else None


def group_ranks(ranks: Sequence[Rank]) -> list[RankGroup]:
    """Ranks of the same stages whose parts are alike put together, in the order of their first rank."""
    groups: list[tuple[tuple[float | None, ...], list[Rank]]] = []
    of_stages: dict[tuple[int, ...], list[int]] = {}
    for rank in sorted(ranks, key=lambda rank: rank.rank):
        shares, peers = tuple(_shares(rank).values()), of_stages.setdefault(rank.stages, [])
        home = next((index for index in peers if all(map(_near, groups[index][0], shares))), None)
        if home is None:
            peers.append(len(groups))
            groups.append((shares, [rank]))
        else:
            groups[home][1].append(rank)
    return [RankGroup(tuple(members)) for _, members in groups]


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < _ALIKE


def _shares(rank: Rank) -> dict[str, float | None]:
    parts: dict[str, int | None] = {
        "useful": rank.compute_ns + rank.in_stage_comm_ns,
        "compute": rank.compute_ns,
        "tp/cp/ep": rank.in_stage_comm_ns,
        "dp": rank.dp_ns,
        "pp": rank.pp_ns,
        "pp transfer": rank.pp_transfer_ns,
        "pp wait": rank.pp_wait_ns,
        "host": rank.host_ns,
        "other": rank.other_ns,
    }
    window = max(rank.window_ns, 1)
    return {name: None if ns is None else ns / window for name, ns in parts.items()} | {"bubble": rank.bubble}
