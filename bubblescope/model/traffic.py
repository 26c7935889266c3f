"""What of the report tells of communication: calls by group, and links between stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Communication", "Group", "Link"]

Group = Literal["pp", "tp", "dp", "cp", "ep", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Calls of one kind in one group, mean a rank and step; wait and transfer add up to total.

    Bandwidths are bytes a second, over the calls whose bytes and transfer are known.
    """

    group: Group
    op: str
    calls: float
    total_ns: int
    exposed_ns: int
    wait_ns: int | None
    transfer_ns: int | None
    bytes: int | None
    group_size: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The messages of one direction from one rank to another; `ratio` and `slow` compare them with other links.

    `messages` and `untold` count over the used steps, the latter those of which nothing tells when they moved;
    times and bytes are those of the median message, `bandwidth` is bytes a second.
    """

    source: int
    target: int
    direction: Literal["forward", "backward"] | None
    messages: int
    untold: int
    bytes: int | None
    transfer_ns: int | None
    wait_ns: int | None
    bandwidth: float | None
    ratio: float | None
    slow: bool
    evidence: str
