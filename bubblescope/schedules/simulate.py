"""A schedule run on paper: its orders, replayed with given costs, and every way to count its bubble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Costs, Family, Shape, durations
from bubblescope.schedules.replay import Delays, Replay, replay

__all__ = ["Simulation", "held", "simulate"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Simulation:
    """A replayed schedule; times are in the unit of the durations.

    `window` is what a step takes: from the first start to the last end, or, where steps overlap, what
    one more step adds. `useful` is the work of each rank. The names of the ratios are those of
    docs/definitions.md.
    """

    orders: Mapping[int, Order]
    run: Replay
    window: float
    useful: Mapping[int, float]
    held: Mapping[int, float]

    @property
    def idle(self) -> float:
        """Mean idle time of a rank in the window (D4)."""
        return self.window - sum(self.useful.values()) / len(self.useful)

    @property
    def bubble(self) -> float:
        """Share of the window (D1)."""
        return self.idle / self.window if self.window else 0.0

    @property
    def ratio_to_ideal(self) -> float:
        """Idle over useful time (D2)."""
        useful = self.window - self.idle
        return self.idle / useful if useful else 0.0

    @property
    def span(self) -> float:
        """Share of the longest rank's own span (D3)."""
        spans = [self.run.end[o[-1]] - self.run.start[o[0]] for o in self.orders.values() if o]
        longest = min(max(spans, default=0.0), self.window)
        return 1 - (self.window - self.idle) / longest if longest else 0.0


def simulate(
    family: Family,
    shape: Shape,
    costs: Costs,
    *,
    lengths: Mapping[Action, float] | None = None,
    delays: Delays | None = None,
) -> Simulation:
    """Run the usual order of a schedule.

    Args:
        family: a schedule that `shape` is possible for.
        shape: of the pipeline.
        costs: times where all stages are alike.
        lengths: time of every action, where stages differ.
        delays: transfers and the like; `costs.transfer` if None.
    """
    orders = family.orders(shape, costs)
    lengths = durations(orders.values(), shape, costs) if lengths is None else lengths
    delays = Delays(transfer=costs.transfer) if delays is None else delays
    together = frozenset[Action]().union(*(family.together(shape, rank) for rank in orders))

    run = replay(orders, lengths, last_stage=shape.stages - 1, together=together, delays=delays)
    return Simulation(
        orders=orders,
        run=run,
        window=run.makespan
        if not family.asynchronous
        else _twice(family, shape, costs, lengths, delays) - run.makespan,
        useful={rank: sum(lengths[action] for action in order) for rank, order in orders.items()},
        held={rank: held(order, shape) for rank, order in orders.items()},
    )


def _twice(family: Family, shape: Shape, costs: Costs, lengths: Mapping[Action, float], delays: Delays) -> float:
    """How long two steps take that follow each other without a flush; the second is as the first."""
    orders = family.orders(replace(shape, m=2 * shape.m), costs)
    model = {a: a._replace(microbatch=a.microbatch % shape.m) for order in orders.values() for a in order}
    times = {action: lengths[first] for action, first in model.items()}
    if isinstance(delays.transfer, Mapping):
        transfer = {action: delays.transfer.get(first, 0.0) for action, first in model.items()}
        delays = replace(delays, transfer=transfer)
    return replay(orders, times, last_stage=shape.stages - 1, delays=delays).makespan


def held(order: Order, shape: Shape) -> float:
    """The most activations that a rank keeps at once, in micro-batches of all its chunks; 0 without backwards.

    A forward adds its own, the last of its backward parts lets them go. Kept whole until then: an
    input gradient frees little (Zero Bubble, arXiv 2401.10241, table 1: 34h+5as of which 32h stay).
    """
    last = {a[:1] + a[2:]: k for k, a in enumerate(order) if a.kind != Kind.F}
    now = peak = 0
    for k, action in enumerate(order):
        if action.kind == Kind.F:
            now += bool(last)
            peak = max(peak, now)
        elif last[action[:1] + action[2:]] == k:
            now -= 1
    return peak / (shape.v * shape.slices)
