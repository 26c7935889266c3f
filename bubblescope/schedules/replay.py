"""Replay: when would every action run, if each rank kept its order and waited only for its inputs?

An action starts when the rank's previous action has ended and its input is there. Input of a
forward is the same micro-batch's forward one stage earlier; of a backward, the backward one stage
later (on the last stage its own forward); of a weight gradient, its own input gradient. Actions
of ranks that nobody recorded constrain nothing. Actions that run together are one block: it waits
for the inputs of both, and hands on both outputs at its end, as the code sends after both.

`Delays` are what comes on top: transfers, receives that are posted late, sends that hold their
rank, a host that is late. The cost is linear in the number of actions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bubblescope.model.actions import Action, Kind, Order

__all__ = ["NO_DELAYS", "Course", "Deadlock", "Delays", "Replay", "by_edge", "replay", "source_of"]

NEVER = -1
_F, _B, _I, _W = Kind  # looked up for every action: members of an enumeration are slow to reach through it


class Deadlock(ValueError):  # noqa: N818 - what it is, and what users call it
    """Actions wait for each other. `waiting` holds the first blocked action of each rank and what it waits for."""

    def __init__(self, waiting: tuple[tuple[Action, Action], ...]) -> None:
        super().__init__(waiting)  # what pickle calls the class with
        self.waiting = waiting

    def __str__(self) -> str:
        return "; ".join(f"{action} waits for {source}" for action, source in self.waiting)


@dataclass(frozen=True, slots=True)
class Delays:
    """What keeps an action waiting beside its rank and its inputs, in the unit of the durations.

    Attributes:
        transfer: how long an output moves to another rank; by the action that needs it, or one time for all.
        posted: how long after its rank's previous action the receive of an action is posted; a transfer begins
            when both sides are there. None: receives are posted ahead, a transfer begins with its output.
        blocking: whether a send holds its rank until the receiver has it.
        host: how long after its inputs' arrival an action starts.
    """

    transfer: float | Mapping[Action, float] = 0.0
    posted: Mapping[Action, float] | None = None
    blocking: bool = False
    host: Mapping[Action, float] = field(default_factory=dict)


NO_DELAYS = Delays()


@dataclass(frozen=True, slots=True)
class Replay:
    """Start and end of every action, in the unit of the durations; the first start is 0.

    Actions of one block share its start and its end.
    """

    start: Mapping[Action, float]
    end: Mapping[Action, float]

    @property
    def makespan(self) -> float:
        """From the first start to the last end; 0 without actions."""
        return max(self.end.values(), default=0.0)


def source_of(action: Action, last_stage: int, known: Mapping[Action, int]) -> Action | None:
    """The action whose output `action` needs, if it is among the known ones."""
    stage, kind, i, part = action
    # Plain tuples: they equal actions, and making them is most of the time that a replay takes.
    if kind == _F:
        candidates = [(stage - 1, _F, i, part)]
    elif kind == _W and (stage, _I, i, part) in known:
        candidates = [(stage, _I, i, part)]
    elif stage == last_stage:
        candidates = [(stage, _F, i, part)]
    else:
        candidates = [(stage + 1, k, i, part) for k in (_B, _I, _W)]
    return next((Action._make(c) for c in candidates if c in known), None)


def replay(
    orders: Mapping[int, Order],
    durations: Mapping[Action, float],
    *,
    last_stage: int,
    together: Collection[Action] = frozenset(),
    delays: Delays = NO_DELAYS,
) -> Replay:
    """Replay the orders of the ranks of one pipeline.

    Args:
        orders: by rank, the actions it runs, in order.
        durations: of every action, in any unit.
        last_stage: number of the pipeline's last stage.
        together: actions that run as one block with the next of their rank.
        delays: transfers and the like; none by default.

    Raises:
        Deadlock: some actions wait for each other.
    """
    course = Course(orders, last_stage=last_stage, together=together)
    start, end = course.run([durations[action] for action in course.actions], delays)
    return Replay(dict(zip(course.actions, start, strict=True)), dict(zip(course.actions, end, strict=True)))


class Course:
    """The orders of the ranks of one pipeline, made ready to run again and again with other durations.

    Attributes:
        actions: all of them, rank after rank in their order; what follows names them by their numbers here.
        spans: first number and end of each rank's actions, in the order of the ranks given.
        rank: place among these of the rank of every action.
        source: whose output an action needs, NEVER for none.
        stop: where a block ends that is more than the action it begins with.
    """

    def __init__(
        self, orders: Mapping[int, Order], *, last_stage: int, together: Collection[Action] = frozenset()
    ) -> None:
        self.actions = tuple(action for order in orders.values() for action in order)
        number = {action: k for k, action in enumerate(self.actions)}
        found = (source_of(action, last_stage, number) for action in self.actions)
        self.source = [NEVER if source is None else number[source] for source in found]
        self.stop = {k: k + 2 for k, action in enumerate(self.actions) if action in together} if together else {}
        self.spans = _spans(orders)
        self.rank = [rank for rank, (low, high) in enumerate(self.spans) for _ in range(high - low)]

    @cached_property
    def reader(self) -> list[int]:
        """Who needs an action's output on another rank, NEVER for nobody."""
        reader = [NEVER] * len(self.actions)
        for k, source in enumerate(self.source):
            if source != NEVER and self.rank[source] != self.rank[k]:
                reader[source] = k
        return reader

    def run(self, durations: Sequence[float], delays: Delays = NO_DELAYS) -> tuple[list[float], list[float]]:
        """Start and end of every action; `durations` and both are in the order of `actions`. Raises Deadlock."""
        run = _Run(self, durations, delays)
        run.play()
        return run.start, run.end


class _Run:
    """A course under way."""

    def __init__(self, course: Course, durations: Sequence[float], delays: Delays) -> None:
        self.course = course
        self.length = durations
        self.start, self.end = [0.0] * len(course.actions), [float(NEVER)] * len(course.actions)
        self.blocked: dict[int, list[int]] = {}  # actions that have not run, and the ranks that stand still for them
        self.moving = _by_action(course.actions, delays.transfer)
        self.posting = _by_action(course.actions, delays.posted or 0.0)
        self.host = _by_action(course.actions, delays.host) if delays.host else None
        self.meets = delays.posted is not None or delays.blocking
        self.reader = course.reader if delays.blocking else []

    def play(self) -> None:
        """Run every rank as far as it gets, again whenever what it waits for has run."""
        spans, stops = self.course.spans, self.course.stop
        done, ready = [low for low, _ in spans], list(range(len(spans)))
        while ready:
            rank = ready.pop()
            k, (low, high) = done[rank], spans[rank]
            while k < high:
                stop = min(stops.get(k, k + 1), high)
                at = self._starts(rank, low, k, stop)
                if at < 0:
                    break
                end = at + (self.length[k] if stop == k + 1 else sum(self.length[k:stop]))
                for action in range(k, stop):
                    self.start[action], self.end[action] = at, end
                    if action in self.blocked:
                        ready += self.blocked.pop(action)
                k = stop
            done[rank] = k
        if self.blocked:
            raise Deadlock(tuple(self._waiting(done)))

    def _starts(self, rank: int, low: int, k: int, stop: int) -> float:
        """When a block can start, or NEVER if something that it waits for has not run."""
        course = self.course
        at = free = self.end[k - 1] if k > low else 0.0
        for action in range(k, stop):
            source = course.source[action]
            if source == NEVER:
                continue
            arrival = self.end[source]
            if arrival < 0:
                return self._wait(rank, source)
            if course.rank[source] != rank:
                if self.meets:
                    arrival = max(arrival, free + self.posting[action])
                arrival += self.moving[action]
            at = max(at, arrival)
        if self.reader and k > low:
            at = self._held(low, k, at)
        return at + self.host[k] if self.host and at >= 0 else at

    def _held(self, low: int, k: int, at: float) -> float:
        """The same once the outputs of the block before are with their readers."""
        course, rank = self.course, self.course.rank[k]
        first = k - 2 if course.stop.get(k - 2) == k and k - 2 >= low else k - 1
        for action in range(first, k):
            reader = self.reader[action]
            if reader == NEVER:
                continue
            head = reader - 1 if course.stop.get(reader - 1) == reader + 1 else reader
            posted = 0.0
            if head > course.spans[course.rank[reader]][0]:
                posted = self.end[head - 1]
                if posted < 0:
                    return self._wait(rank, head - 1)
            at = max(at, max(self.end[action], posted + self.posting[reader]) + self.moving[reader])
        return at

    def _wait(self, rank: int, action: int) -> float:
        self.blocked.setdefault(action, []).append(rank)
        return NEVER

    def _waiting(self, done: list[int]) -> Iterator[tuple[Action, Action]]:
        course = self.course
        for needed, ranks in self.blocked.items():
            for rank in ranks:
                block = range(done[rank], course.stop.get(done[rank], done[rank] + 1))
                blocked = next((k for k in block if course.source[k] == needed), done[rank])
                yield course.actions[blocked], course.actions[needed]


def _by_action(actions: Sequence[Action], times: float | Mapping[Action, float]) -> list[float]:
    """A time for each action, one for all or its own; 0 where nothing is said."""
    return [times.get(a, 0.0) for a in actions] if isinstance(times, Mapping) else [times] * len(actions)


def _spans(orders: Mapping[int, Order]) -> list[tuple[int, int]]:
    """First number and end of each rank's actions."""
    spans, low = [], 0
    for order in orders.values():
        spans.append((low, low + len(order)))
        low += len(order)
    return spans


def by_edge(
    orders: Mapping[int, Order], times: Mapping[tuple[int, int], float], last_stage: int
) -> dict[Action, float]:
    """Transfer times by the action that needs them, from times by (sending, receiving) rank; absent ones are 0."""
    rank_of = {action: rank for rank, order in orders.items() for action in order}
    sources = {action: source_of(action, last_stage, rank_of) for action in rank_of}
    return {
        action: times.get((rank_of[source], rank_of[action]), 0.0)
        for action, source in sources.items()
        if source is not None and rank_of[source] != rank_of[action]
    }
