"""A schedule from a file tried out, and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from bubblescope.model.actions import Action, Order
from bubblescope.schedules.csv_file import Written
from bubblescope.schedules.detect import Difference, Verdict, detect, differences
from bubblescope.schedules.family import Costs, Family, Shape, Variant
from bubblescope.schedules.registry import FAMILIES
from bubblescope.schedules.replay import Delays, replay
from bubblescope.schedules.simulate import Simulation, held
from bubblescope.schedules.times import Times
from bubblescope.schedules.trial import Trial, closed

__all__ = ["Found", "run_file"]

_MOST_MATCHED = 1_000_000
"""Actions of one rank that all the variants of a schedule have together, when an order is named."""

_MOST_COMPARED = 5_000
"""Actions of an order up to which every departure is looked for; beyond, only whether there are some."""

_MOST_UNLIKE = 50_000
"""The same for the orders of all ranks that differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A schedule from a file, what it was taken for, and by rank where it leaves that; None for too long to tell."""

    trial: Trial
    verdict: Verdict
    departures: tuple[tuple[int, Difference], ...] | None


def run_file(written: Written, times: Times, *, blocking: bool = False) -> Found:
    """Try a schedule from a file, and name it; raises UsageError where times do not fit it, and Deadlock."""
    orders, shape = written.orders, written.shape
    placement = tuple(tuple(sorted({action.stage for action in order})) for order in orders.values())
    stage_times = times.of(shape, placement)
    delays = Delays(transfer=stage_times.transfer(orders), blocking=blocking)
    simulation = _replayed(written, stage_times.lengths(orders), delays)
    verdict = detect(orders, shape, _families(len(orders[0])), costs=stage_times.costs)
    family = None if verdict.best is None else verdict.best.family
    trial = Trial(
        family=family,
        shape=shape,
        placement=placement,
        times=stage_times,
        blocking=blocking,
        simulation=simulation,
        together=written.together,
        closed=closed(family, shape, stage_times),
    )
    return Found(trial, verdict, _departures(orders, verdict))


def _replayed(written: Written, lengths: Mapping[Action, float], delays: Delays) -> Simulation:
    orders, last_stage = written.orders, written.shape.stages - 1
    ran = replay(orders, lengths, last_stage=last_stage, together=written.together, delays=delays)
    return Simulation(
        orders=orders,
        run=ran,
        window=ran.makespan,
        useful={rank: sum(lengths[action] for action in order) for rank, order in orders.items()},
        held={rank: held(order, written.shape) for rank, order in orders.items()},
    )


def _families(length: int) -> list[Family]:
    """The schedules to compare an order with, each with no more of its variants than take seconds."""
    most = max(4, _MOST_MATCHED // length)

    def few(family: Family, shape: Shape, costs: Costs) -> Iterator[Variant]:
        return islice(family.variants(shape, costs), most)

    return [replace(family, variants=partial(few, family)) for family in FAMILIES]


def _departures(orders: Mapping[int, Order], verdict: Verdict) -> tuple[tuple[int, Difference], ...] | None:
    if verdict.best is None:
        return ()
    pairs = [(rank, order, verdict.best.expected[rank]) for rank, order in orders.items()]
    unlike = [(rank, order, expected) for rank, order, expected in pairs if order != expected]
    lengths = [len(order) for _, order, _ in unlike]
    if max(lengths, default=0) > _MOST_COMPARED or sum(lengths) > _MOST_UNLIKE:
        return None
    return tuple((rank, each) for rank, order, expected in unlike for each in differences(order, expected))
