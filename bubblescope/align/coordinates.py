"""Groups of ranks that no file describes, from where each rank says that it stands."""

from __future__ import annotations

from collections.abc import Mapping

from bubblescope.model.groups import Purpose
from bubblescope.model.trace import Identity

__all__ = ["by_coordinates"]

_PURPOSES: tuple[Purpose, ...] = ("pp", "tp", "dp", "cp", "ep")


def by_coordinates(identities: Mapping[int, Identity]) -> dict[int, dict[Purpose, tuple[int, ...]]]:
    """For each rank and purpose the ranks that differ from it on this axis alone, in the order of their positions.

    A group of which a rank is missing, or of which two claim one position, is left out. Where no degree is told, ranks
    that count from 0 without a gap are all; but a position alone makes no pipeline.
    """
    placed = {rank: {c.purpose: c for c in identity.coordinates} for rank, identity in identities.items()}
    found: dict[int, dict[Purpose, tuple[int, ...]]] = {rank: {} for rank in identities}
    for purpose in _PURPOSES:
        lines: dict[tuple[tuple[str, int], ...], list[tuple[int, int]]] = {}
        for rank, axes in placed.items():
            if purpose in axes:
                rest = tuple(sorted((name, axis.position) for name, axis in axes.items() if name != purpose))
                lines.setdefault(rest, []).append((axes[purpose].position, rank))
        for line in lines.values():
            positions, ranks = zip(*sorted(line), strict=True)
            degree = placed[ranks[0]][purpose].degree
            alone = not degree and purpose == "pp" and len(positions) == 1
            if positions == tuple(range(degree or len(positions))) and not alone:
                for rank in ranks:
                    found[rank][purpose] = ranks
    return found
