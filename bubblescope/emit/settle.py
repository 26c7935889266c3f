"""The fields of a job as they are kept: lists as tuples, and what follows from orders or from a ramp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bubblescope.emit.choices import StageWork
from bubblescope.model.actions import WHOLE
from bubblescope.schedules.registry import find

if TYPE_CHECKING:
    from bubblescope.emit.job import Job

__all__ = ["commonest", "settled"]

LISTS = ("scale", "stage_layers", "edges_ns", "host_gaps_ns", "ramp", "eval_steps", "skew_ns", "drift_ppm", "missing")


def settled(job: Job) -> dict[str, Any]:
    """The fields that a job keeps in another form than it was given them."""
    kept: dict[str, Any] = {name: tuple(getattr(job, name)) for name in LISTS}
    kept |= {name: tuple((key, factor) for key, factor in getattr(job, name)) for name in ("slow", "straggler")}
    kept["together"] = frozenset(job.together)
    kept["stage_times"] = tuple(StageWork(*times) for times in job.stage_times)
    if not isinstance(job.recorder, str):
        kept["recorder"] = tuple(job.recorder)
    kept |= _of_orders(job) if job.orders else {"orders": (), "schedule": find(job.schedule).name}
    if kept["ramp"]:
        kept |= {"steps": len(kept["ramp"]), "m": commonest(kept["ramp"])}
    return kept


def commonest(sizes: Sequence[int]) -> int:
    """The commonest of some numbers of micro-batches, and of equally common ones the largest."""
    return max(sizes, key=lambda size: (sizes.count(size), size))


def _of_orders(job: Job) -> dict[str, Any]:
    """Explicit orders, and the sizes of their pipeline."""
    orders = tuple(tuple(order) for order in job.orders)
    actions = [action for order in orders for action in order]
    return {
        "orders": orders,
        "p": len(orders),
        "m": len({action.microbatch for action in actions}),
        "v": -(-(1 + max((action.stage for action in actions), default=0)) // len(orders)),
        "slices": len({action.slice for action in actions if action.slice != WHOLE}) or 1,
    }
