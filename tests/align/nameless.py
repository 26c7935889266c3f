"""What the ranks of a pipeline leave whose traces name no stage: numbered actions, sends and receives."""

from __future__ import annotations

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.timeline import RankTimeline
from bubblescope.schedules.family import EVEN, Family, Shape, durations
from bubblescope.schedules.replay import replay
from tests.building import timeline

__all__ = ["nameless", "ran"]


def ran(
    family: Family, shape: Shape, *, steps: int = 1, variant: int = 0
) -> tuple[dict[int, RankTimeline], dict[int, Order]]:
    """The timelines of a schedule's ranks, by position, and the orders that they ran."""
    made = list(family.variants(shape, EVEN))
    order_of = made[variant % len(made)].order
    orders = {at: order_of(at) for at in range(shape.p)}
    return nameless(orders, shape, family, steps=steps), orders


def nameless(orders: dict[int, Order], shape: Shape, family: Family, *, steps: int = 1) -> dict[int, RankTimeline]:
    """The timelines of ranks that run these orders over and over; the rank at position r is r."""
    last = shape.stages - 1
    lengths = {action: 100 * length for action, length in durations(orders.values(), shape, EVEN).items()}
    together = frozenset[Action]().union(*(family.together(shape, rank) for rank in range(shape.p)))
    run = replay(orders, lengths, last_stage=last, together=together)
    home = {(a.stage, a.microbatch): rank for rank, order in orders.items() for a in order}
    every = int(run.makespan) + 100
    made = {}
    for rank, order in orders.items():
        number = {(a.stage, a.microbatch): i for i, a in enumerate(a for a in order if a.kind == Kind.F)}
        actions, messages = [], []
        for k in range(steps):
            for a in order:
                start, end = int(run.start[a]) + k * every, int(run.end[a]) + k * every
                onward = 1 if a.kind == Kind.F else -1
                source, target = ((a.stage + way, a.microbatch) for way in (-onward, onward))
                moves = a.kind != Kind.W
                if moves and 0 <= source[0] <= last and home[source] != rank:
                    messages.append((f"recv {home[source]}", start, start + 1, k))
                actions.append((f"?{a.kind.name}{number[a.stage, a.microbatch]}", start, end, k))
                if moves and 0 <= target[0] <= last and home[target] != rank:
                    messages.append((f"send {home[target]}", end, end + 1, k))
        made[rank] = timeline(
            rank, actions=actions, messages=messages, steps=[(k, k * every, (k + 1) * every) for k in range(steps)]
        )
    return made
