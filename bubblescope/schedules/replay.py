"""Replay: when would every action run, if each rank kept its order and waited only for its inputs?

An action starts when the rank's previous action has ended and its input is there. Input of a
forward is the same micro-batch's forward one stage earlier; of a backward, the backward one stage
later (on the last stage its own forward); of a weight gradient, its own input gradient. Actions
of ranks that nobody recorded constrain nothing. The cost is linear in the number of actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bubblescope.model.actions import Action, Kind, Order

__all__ = ["Deadlock", "Replay", "replay", "source_of"]


class Deadlock(ValueError):  # noqa: N818 - what it is, and what users call it
    """Actions wait for each other. `waiting` holds the first blocked action of each rank and what it waits for."""

    def __init__(self, waiting: tuple[tuple[Action, Action], ...]) -> None:
        super().__init__(waiting)  # what pickle calls the class with
        self.waiting = waiting

    def __str__(self) -> str:
        return "; ".join(f"{action} waits for {source}" for action, source in self.waiting)


@dataclass(frozen=True, slots=True)
class Replay:
    """Start and end of every action, in the unit of the durations; the first start is 0."""

    start: Mapping[Action, float]
    end: Mapping[Action, float]

    @property
    def makespan(self) -> float:
        """From the first start to the last end; 0 without actions."""
        return max(self.end.values(), default=0.0)


def source_of(action: Action, last_stage: int, known: Mapping[Action, object]) -> Action | None:
    """The action whose output `action` needs, if it is among the known ones."""
    stage, kind, i = action
    if kind == Kind.F:
        candidates = [Action(stage - 1, Kind.F, i)]
    elif kind == Kind.W and Action(stage, Kind.I, i) in known:
        return Action(stage, Kind.I, i)
    elif stage == last_stage:
        candidates = [Action(stage, Kind.F, i)]
    else:
        candidates = [Action(stage + 1, k, i) for k in (Kind.B, Kind.I, Kind.W)]
    return next((c for c in candidates if c in known), None)


def replay(
    orders: Mapping[int, Order],
    durations: Mapping[Action, float],
    *,
    last_stage: int,
    transfer: float = 0.0,
) -> Replay:
    """Replay the orders of the ranks of one pipeline.

    Args:
        orders: by rank, the actions it runs, in order.
        durations: of every action, in any unit.
        last_stage: number of the pipeline's last stage.
        transfer: time between the end of an action and its output's arrival on another rank.

    Raises:
        Deadlock: some actions wait for each other.
    """
    rank_of = {action: rank for rank, order in orders.items() for action in order}
    source = {action: source_of(action, last_stage, rank_of) for action in rank_of}
    start: dict[Action, float] = {}
    end: dict[Action, float] = {}
    position = dict.fromkeys(orders, 0)
    free = dict.fromkeys(orders, 0.0)
    blocked: dict[Action, list[int]] = {}  # actions not yet run, and the ranks that stand still for them
    ready = list(orders)
    while ready:
        rank = ready.pop()
        order = orders[rank]
        while position[rank] < len(order):
            action = order[position[rank]]
            needed = source[action]
            arrival = 0.0
            if needed is not None:
                if needed not in end:
                    blocked.setdefault(needed, []).append(rank)
                    break
                arrival = end[needed] + (transfer if rank_of[needed] != rank else 0.0)
            start[action] = max(free[rank], arrival)
            end[action] = free[rank] = start[action] + durations[action]
            position[rank] += 1
            ready += blocked.pop(action, [])
    if len(end) < len(rank_of):
        waiting = [(orders[rank][position[rank]], needed) for needed, ranks in blocked.items() for rank in ranks]
        raise Deadlock(tuple(waiting))
    return Replay(start, end)
