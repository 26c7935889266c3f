"""Who runs what in which order, and who waits for whom: what a schedule asks of every rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from bubblescope.emit.job import Job
from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind, Order, blocks
from bubblescope.schedules.family import Costs
from bubblescope.schedules.replay import source_of

__all__ = ["Block", "Plan", "Slot", "evaluation", "plan"]

Block = tuple[Action, ...]
"""Actions that run as one: usually one, or a forward and a backward."""


class Slot(NamedTuple):
    """The place of an action: a pipeline rank and the number of the block in its order."""

    rank: int
    block: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The orders of one step, and the edges between actions.

    Attributes:
        orders: of every pipeline rank.
        lanes: the same in blocks.
        slot: of every action. A stage may lie on two ranks; a micro-batch of it runs on one of them.
        source: the action whose output an action needs, where there is one.
        reader: the action on another rank that needs an action's output, where there is one.
    """

    orders: tuple[Order, ...]
    lanes: tuple[tuple[Block, ...], ...]
    slot: Mapping[Action, Slot]
    source: Mapping[Action, Action]
    reader: Mapping[Action, Action]

    def producer(self, action: Action) -> Action | None:
        """The action on another rank whose output this one needs."""
        needed = self.source.get(action)
        return needed if needed is not None and self.slot[needed].rank != self.slot[action].rank else None

    def local(self, action: Action) -> Action | None:
        """The action on the same rank whose output this one needs."""
        needed = self.source.get(action)
        return needed if needed is not None and self.slot[needed].rank == self.slot[action].rank else None


@lru_cache(maxsize=32)
def plan(job: Job, m: int) -> Plan:
    """The plan of a step of m micro-batches."""
    return _planned(job, *((job.orders, job.together) if job.orders else _by_schedule(job, m)))


@lru_cache(maxsize=8)
def evaluation(job: Job) -> Plan:
    """The plan of an evaluation: each stage takes all micro-batches, where it takes the first one in training."""
    lanes = [[a for a in order if (a.kind, a.microbatch) == (Kind.F, 0)] for order in plan(job, job.m).orders]
    orders = tuple(
        tuple(
            action._replace(microbatch=i)
            for stage in dict.fromkeys(a.stage for a in lane)
            for i in range(job.eval_m)
            for action in lane
            if action.stage == stage
        )
        for lane in lanes
    )
    return _planned(job, orders, frozenset())


def _planned(job: Job, orders: tuple[Order, ...], together: frozenset[Action]) -> Plan:
    lanes = tuple(blocks(order, together) for order in orders)
    slot = {a: Slot(rank, k) for rank, lane in enumerate(lanes) for k, block in enumerate(lane) for a in block}
    rank_of = {action: where.rank for action, where in slot.items()}
    found = {action: source_of(action, job.stages - 1, rank_of) for action in slot}
    source = {action: needed for action, needed in found.items() if needed is not None}
    reader = {needed: action for action, needed in source.items() if rank_of[needed] != rank_of[action]}
    return Plan(orders, lanes, slot, source, reader)


def _by_schedule(job: Job, m: int) -> tuple[tuple[Order, ...], frozenset[Action]]:
    family, shape = job.family, replace(job.shape, m=m)
    variants = list(islice(family.variants(shape, _costs(job)), job.variant + 1))
    if len(variants) <= job.variant:
        raise UsageError(f"{family.name} has {len(variants)} orders of this shape, found variant={job.variant}")
    orders = tuple(variants[-1].order(rank) for rank in range(job.p))
    return orders, frozenset[Action]().union(*(family.together(shape, rank) for rank in range(job.p)))


def _costs(job: Job) -> Costs:
    """Mean times of a rank for a micro-batch: some schedules search their order by them."""
    forward, backward = float(job.forward_ns), float(job.backward_ns)
    weight = backward * job.weight_fraction
    if job.stage_times:
        forward, backward, weight = (sum(column) / job.p for column in zip(*job.stage_times, strict=True))
    transfer = sum(job.edges_ns) / len(job.edges_ns) if job.edges_ns else float(job.p2p_ns)
    return Costs(forward, backward - weight, weight, transfer)
