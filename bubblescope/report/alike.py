"""Ranks whose time went the same way, put together so that a table of 64 ranks stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubblescope.model.report import Rank

__all__ = ["RankGroup", "group_ranks"]

# How alike ranks must be to share a row, the strictest first: the most that a part of their
# windows may differ, and whether they must hold the same stages. A job of a few hundred ranks
# becomes readable only where the noise between them is passed over.
_LEVELS = ((0.01, True), (0.02, True), (0.02, False), (0.05, False))


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


def group_ranks(ranks: Sequence[Rank], most: int) -> tuple[list[RankGroup], float]:
    """Ranks that are alike put together, and within what; as strictly as gives at most so many groups."""
    ordered = sorted(ranks, key=lambda rank: rank.rank)
    groups: list[RankGroup] = []
    within = 0.0
    for within, by_stage in _LEVELS:
        groups = _group(ordered, within, by_stage=by_stage)
        if len(groups) <= most:
            break
    return groups, within


def _group(ranks: Sequence[Rank], within: float, *, by_stage: bool) -> list[RankGroup]:
    """Each rank joins the first group whose first rank it is alike to, or begins one."""
    groups: list[tuple[tuple[float | None, ...], list[Rank]]] = []
    of_stages: dict[tuple[int, ...], list[int]] = {}
    for rank in ranks:
        shares = tuple(_shares(rank).values())
        peers = of_stages.setdefault(rank.stages if by_stage else (), [])
        home = next((index for index in peers if _alike(groups[index][0], shares, within)), None)
        if home is None:
            peers.append(len(groups))
            groups.append((shares, [rank]))
        else:
            groups[home][1].append(rank)
    return [RankGroup(tuple(members)) for _, members in groups]


def _alike(one: Sequence[float | None], other: Sequence[float | None], within: float) -> bool:
    return all(
        theirs is mine if mine is None or theirs is None else abs(mine - theirs) < within
        for mine, theirs in zip(one, other, strict=True)
    )


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
