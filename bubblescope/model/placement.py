"""Which stages a pipeline's ranks hold: the ways in which schedules lay p v stages over p ranks."""

from __future__ import annotations

__all__ = ["PLACEMENTS", "Placement", "loop", "mirrored", "vee"]

Placement = tuple[tuple[int, ...], ...]
"""The stages of each rank of a pipeline, first chunk first."""


def loop(p: int, v: int) -> Placement:
    """Stages go round the ranks: stage s on rank s mod p."""
    return tuple(tuple(range(rank, p * v, p)) for rank in range(p))


def vee(p: int, v: int) -> Placement:
    """Stages run down the ranks and up again, so that each turn stays on one rank."""
    return tuple(
        tuple(chunk * p + (rank if chunk % 2 == 0 else p - 1 - rank) for chunk in range(v)) for rank in range(p)
    )


def mirrored(p: int, v: int) -> Placement:  # noqa: ARG001 - one stage each way, whatever a caller counts
    """Two copies of the model, one each way: stage s on rank s and on rank p-1-s."""
    return tuple((rank, p - 1 - rank) for rank in range(p))


PLACEMENTS = (loop, vee, mirrored)
"""All of them, the most usual first."""
