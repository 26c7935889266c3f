"""Schedules tried out: simulated, and set beside their closed forms."""

from __future__ import annotations

from dataclasses import dataclass

from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind
from bubblescope.model.placement import Placement
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.replay import Deadlock, Delays
from bubblescope.schedules.simulate import Simulation, simulate
from bubblescope.schedules.times import StageTimes, Times

__all__ = ["MOST_ACTIONS", "Closed", "Trial", "check_size", "closed", "count", "run", "standstill"]

MOST_ACTIONS = 1_000_000
"""Ten seconds and a gigabyte go into them."""

_MOST_WAITING = 6


@dataclass(frozen=True, slots=True)
class Closed:
    """What the closed form says, stages alike and transfers free; None where no exact one holds."""

    text: str | None
    idle: float | None
    bubble: float | None
    ratio_to_ideal: float | None
    span: float | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trial:
    """A simulated schedule; `family` is None where it goes by no known name."""

    family: Family | None
    shape: Shape
    placement: Placement
    times: StageTimes
    blocking: bool
    simulation: Simulation
    together: frozenset[Action]
    closed: Closed

    @property
    def asynchronous(self) -> bool:
        """Whether the window is what one more step takes."""
        return self.family is not None and self.family.asynchronous

    @property
    def fullest(self) -> int:
        """The rank that holds the most activations; of several the first."""
        held = self.simulation.held
        return max(held, key=lambda rank: held[rank])

    @property
    def activations(self) -> float | None:
        """What the formula says of the fullest rank."""
        return None if self.family is None else self.family.memory.activations(self.shape, self.fullest)

    def weights(self, rank: int) -> float | None:
        """Copies of the weights that a rank keeps."""
        return None if self.family is None else self.family.memory.weights(self.shape, rank)


def run(family: Family, shape: Shape, times: Times, *, blocking: bool = False) -> Trial:
    """Try a schedule; raises UsageError where the shape is impossible or too large, and Deadlock."""
    check_size(count(family, shape))
    reason = family.problem(shape)
    if reason is not None:
        raise UsageError(reason)
    return _run(family, shape, times.of(shape, family.placement(shape)), blocking=blocking)


def _run(family: Family, shape: Shape, times: StageTimes, *, blocking: bool) -> Trial:
    orders = family.orders(shape, times.costs)
    return Trial(
        family=family,
        shape=shape,
        placement=family.placement(shape),
        times=times,
        blocking=blocking,
        simulation=simulate(
            family,
            shape,
            times.costs,
            lengths=times.lengths(orders),
            delays=Delays(transfer=times.transfer(orders), blocking=blocking),
        ),
        together=frozenset[Action]().union(*(family.together(shape, rank) for rank in orders)),
        closed=closed(family, shape, times),
    )


def closed(family: Family | None, shape: Shape, times: StageTimes) -> Closed:
    """The closed forms of a schedule with the mean times of a rank."""
    if family is None or family.idle is None:
        return Closed(None, None, None, None, None)
    work = family.work(shape, times.costs)
    idle = family.idle.value(shape, times.costs)
    span = (family.span or family.idle).value(shape, times.costs)
    return Closed(family.idle.text, idle, _share(idle, work), _ratio(idle, work), _share(span, work))


def _share(idle: float | None, work: float) -> float | None:
    return None if idle is None or not work else idle / (idle + work)


def _ratio(idle: float | None, work: float) -> float | None:
    return None if idle is None or not work else idle / work


def count(family: Family, shape: Shape) -> int:
    """How many actions are simulated."""
    kinds = 1 if family.kinds == {Kind.F} else 3 if Kind.I in family.kinds else 2
    return shape.stages * shape.m * shape.slices * kinds * (3 if family.asynchronous else 1)


def check_size(actions: int) -> None:
    """Raise UsageError where there are too many actions."""
    if actions > MOST_ACTIONS:
        raise UsageError(
            f"too large: {actions:,} actions to simulate, of at most {MOST_ACTIONS:,}",
            hint="what a schedule does shows with fewer micro-batches too",
        )


def standstill(deadlock: Deadlock) -> str:
    """The actions that wait for each other, the first few of many."""
    pairs = [f"{action} waits for {source}" for action, source in deadlock.waiting]
    more = len(pairs) - _MOST_WAITING
    return "; ".join(pairs[:_MOST_WAITING]) + (f"; and {more} more" if more > 0 else "")
