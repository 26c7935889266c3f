"""Bandwidth of calls, as nccl-tests define it: bytes over time, and that times what the operation asks of the links.

Algorithm bandwidth is S / t; bus bandwidth is S / t times a factor that makes it comparable with the speed of the
hardware, whatever the number of ranks (NVIDIA/nccl-tests, doc/PERFORMANCE.md). S is what docs/definitions.md calls
the bytes of a call.
"""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Floats, Ints, Times

__all__ = ["bandwidths", "bus_factor"]

_WHOLE, _PART, _TWICE = 0, 1, 2
_ASKS = {
    "all_reduce": _TWICE,
    "all_gather": _PART,
    "reduce_scatter": _PART,
    "all_to_all": _PART,
    "broadcast": _WHOLE,
    "reduce": _WHOLE,
    "send": _WHOLE,
    "recv": _WHOLE,
    "send_recv": _WHOLE,
}
"""How often each byte crosses a link: once, (n-1)/n times, or twice that; what is not listed has no agreed factor."""


def bus_factor(op: str, members: Ints) -> Floats:
    """What turns algorithm into bus bandwidth, for calls among so many ranks each; NaN where nothing tells it."""
    asks = _ASKS.get(op)
    if asks is None:
        return np.full(len(members), np.nan)
    count = np.where(members > 0, members, np.nan)
    factor: Floats = np.ones(len(members)) if asks == _WHOLE else asks * (count - 1) / count
    return factor


def bandwidths(op: str, members: Ints, size: Ints, transfer: Times) -> tuple[float | None, float | None]:
    """Algorithm and bus bandwidth of calls of one operation, in bytes a second; None where no call tells it.

    Args:
        op: the operation.
        members: ranks that take part in each call, -1 where unknown.
        size: bytes of each call, negative where unknown.
        transfer: nanoseconds that each call moved them, negative where unknown.
    """
    # Alone a rank passes nothing on, and an operation that is not listed may count its bytes by other rules.
    known = (size >= 0) & (transfer >= 0) & (members != 1) & (op in _ASKS)
    factor = bus_factor(op, members)
    bus = known & ~np.isnan(factor)
    return _over(size[known], transfer[known]), _over(size[bus] * factor[bus], transfer[bus])


def _over(size: Ints | Floats, transfer: Times) -> float | None:
    seconds = float(transfer.sum()) * 1e-9
    return float(size.sum(dtype=np.float64)) / seconds if seconds > 0 else None
