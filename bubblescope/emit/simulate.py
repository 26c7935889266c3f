"""A discrete-event simulation of a job: when every action and every transfer happened, in whole nanoseconds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from bubblescope.emit.agenda import Wanted, agenda
from bubblescope.emit.job import Job
from bubblescope.emit.plan import Block, Plan, evaluation, plan
from bubblescope.emit.reduce import AFTER_NS, reductions
from bubblescope.emit.run import Done, Pass, Ran, Run, Step, Transfer
from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind

__all__ = ["START_NS", "TICK_NS", "cycle_borders", "shortest", "simulate"]

START_NS = 5_000_000  # of the first step, on the job's true clock
LEAD_NS = 250_000  # between a step's start and the first receive: the host needs it
TAIL_NS = 100_000  # between the optimizer's end and the step's end
TICK_NS = 8  # the least that anything on the host takes
LEAST_FACTOR = 0.1  # of jitter

Times = dict[Action, int]
"""How long every action takes, in nanoseconds."""


@lru_cache(maxsize=8)
def simulate(job: Job) -> tuple[Step, ...]:
    """Every step of the job on its true clock; raises UsageError where the order cannot run."""
    dice = random.Random(job.seed)  # noqa: S311 - a repeatable jitter, no secret
    steps: list[Step] = []
    start = START_NS
    for number, wanted in enumerate(agenda(job)):
        passes = []
        for each in wanted:
            passes.append(_pass(job, each, number, start, dice))
            start = passes[-1].end
        steps.append(Step(number, tuple(passes)))
    return tuple(steps)


def _pass(job: Job, wanted: Wanted, number: int, start: int, dice: random.Random) -> Pass:
    """All micro-batches of a training step or an evaluation, in the step of that number."""
    made = Pass(*wanted, start, start + LEAD_NS)
    todo = evaluation(job) if made.evaluates else plan(job, made.m)
    for replica in range(job.d):
        name = f"{'evaluation ' if made.evaluates else ''}{number}.{replica}"
        times = _times(job, todo, _late(job, replica), name, dice)
        _check(job, times)
        made.runs.append(_Simulation(job, todo, times, _pauses(job, todo, name), made).run())
    _after_pipeline(job, made)
    return made


def cycle_borders(job: Job) -> tuple[int, ...]:
    """The starts of the steps with which a recording begins, but for the first."""
    steps = simulate(job)
    return tuple(step.start for step in steps[len(steps) // job.cycles :: len(steps) // job.cycles])


@lru_cache(maxsize=8)
def shortest(job: Job) -> int:
    """Useful time of the shortest action of all."""
    runs = (run for step in simulate(job) for part in step.passes for run in part.runs)
    return min(part.useful for run in runs for lane in run.lanes for ran in lane for part in ran.parts)


def _nominal(job: Job, action: Action, rank: int) -> float:
    """How long an action takes on an undisturbed rank."""
    if job.stage_times:
        return job.stage_times[action.stage].of(action.kind) / job.slices * job.factor(rank, action.stage)
    share = (1.0, 1.0, 1.0 - job.weight_fraction, job.weight_fraction)[action.kind]
    whole = job.forward_ns if action.kind == Kind.F else job.backward_ns
    return whole / job.v / job.slices * share * job.factor(rank, action.stage)


def _times(job: Job, todo: Plan, late: list[float], name: str, dice: random.Random) -> Times:
    """How long every action takes in a step and replica, of that name; `late` are factors of pipeline ranks."""
    times = {}
    for action, slot in todo.slot.items():
        base = _nominal(job, action, slot.rank)
        for pattern, factor in job.slow:
            base *= factor if fnmatchcase(f"{name}.{action}", pattern) else 1.0
        base *= late[slot.rank]
        if job.jitter:
            base *= max(LEAST_FACTOR, dice.gauss(1.0, job.jitter))
        times[action] = max(1, round(base))
    return times


def _pauses(job: Job, todo: Plan, name: str) -> dict[Action, bool]:
    """The forwards of a step and replica, of that name, that a pause falls on, and whether inside of them."""
    dice = random.Random(f"{job.seed}.{name}")  # noqa: S311 - apart from the jitter's, which pauses leave as it is
    found = {}
    for action in (action for lane in todo.lanes for block in lane for action in block):
        falls, inside = dice.random() < job.pause_chance, dice.random() < 0.5
        leads = todo.lanes[todo.slot[action].rank][todo.slot[action].block][0] == action
        if falls and action.kind == Kind.F and (leads or job.pieces(action) > 1):
            found[action] = job.pieces(action) > 1 and (inside or not leads)
    return found


def _late(job: Job, replica: int) -> list[float]:
    """The factor of stragglers on every pipeline rank of a replica."""
    late = [1.0] * job.p
    for rank, factor in job.straggler:
        pp, dp, *_ = job.place(rank)
        late[pp] *= factor if dp == replica else 1.0
    return late


def _check(job: Job, times: Times) -> None:
    """Refuse actions that would be over before a host could launch their kernels."""
    action, least = min(times, key=times.__getitem__), TICK_NS * job.ticks
    if times[action] < least:
        raise UsageError(
            f"{action} takes {times[action]} ns, which is too short for {len(job.pattern(action.stage))} kernels: "
            f"expected at least {least} ns"
        )


def _after_pipeline(job: Job, made: Pass) -> None:
    """Lay the reductions of gradients, the optimizer and the end."""
    ready = max(run.end for run in made.runs)
    if job.trains and not made.evaluates:
        if job.d * job.c > 1:
            made.dp = reductions(job, made.runs)
            ready = max([ready, *(lane[-1].end for lane in made.dp.values())])
        made.optimizer = (ready + AFTER_NS, ready + AFTER_NS + job.optimizer_ns)
        ready = made.optimizer[1]
    made.end = ready + TAIL_NS


class _Simulation:
    """Runs one step of one pipeline: each rank keeps its order, a block waits for its inputs."""

    def __init__(self, job: Job, todo: Plan, times: Times, pauses: Mapping[Action, bool], of: Pass) -> None:
        self.job, self.plan, self.times, self.pauses, self.release = job, todo, times, pauses, of.release
        self.ready = of.release + (0 if of.evaluates else job.opening_ns)
        self.ends: dict[Action, int] = {}
        self.channel: dict[tuple[int, int, bool], int] = {}  # until when messages of a stage and a way move
        self.result = Run([[] for _ in todo.lanes])

    def run(self) -> Run:
        """Advance every rank as far as it goes until all are through."""
        waiting = set(range(self.job.p))
        while waiting:
            before = len(self.ends)
            for rank in sorted(waiting):
                while self._advance(rank):
                    pass
            waiting = {rank for rank in waiting if self._next(rank) is not None}
            if waiting and len(self.ends) == before:
                stuck = ", ".join(self._stuck(rank) for rank in sorted(waiting))
                hint = "Fused messages block their ranks; apart they may run." if self.job.fused else None
                raise UsageError(f"the order deadlocks: {stuck}", hint=hint)
        return self.result

    def _stuck(self, rank: int) -> str:
        return f"rank {rank} stands before {self.plan.lanes[rank][len(self.result.lanes[rank])][0]}"

    def _next(self, rank: int) -> Block | None:
        lane, k = self.plan.lanes[rank], len(self.result.lanes[rank])
        return lane[k] if k < len(lane) else None

    def _advance(self, rank: int) -> bool:
        """Run a rank's next block, if it can."""
        block = self._next(rank)
        if block is None:
            return False
        fused = self._fused_with(rank)
        awaited = self._arrivals((*block, fused) if fused is not None else block)
        if awaited is None or any(a not in self.ends for a in map(self.plan.local, block) if a is not None):
            return False
        lane = self.result.lanes[rank]
        previous = lane[-1].end if lane else self.ready
        start = max([previous, *(transfer.end for transfer in awaited)]) + self.job.gap_ns(rank)
        ran = Ran(self._parts(block, start), awaited, fused is not None)
        self.ends.update(dict.fromkeys(block, ran.end))
        lane.append(ran)
        return True

    def _parts(self, block: Block, start: int) -> tuple[Done, ...]:
        """The actions of a block, one right after the other."""
        parts = []
        for action in block:
            useful, inside = self.times[action], self.pauses.get(action)
            start += self.job.pause_ns if inside is False else 0
            pause = self.job.pause_ns if inside else 0
            end = start + useful + (self.job.pieces(action) - 1) * self.job.kernel_gap_ns + pause
            parts.append(Done(action, start, end, useful, pause))
            start = end
        return tuple(parts)

    def _arrivals(self, consumers: Block) -> tuple[Transfer, ...] | None:
        """The messages that some actions need, or None as long as any of them is not on its way."""
        found = []
        for consumer in consumers:
            producer = self.plan.producer(consumer)
            if producer is not None:
                transfer = self._transfer(producer, consumer)
                if transfer is None:
                    return None
                found.append(transfer)
        return tuple(found)

    def _fused_with(self, rank: int) -> Action | None:
        """The reader of the last action's output, where its send shares a kernel with the next receive."""
        lane, k = self.plan.lanes[rank], len(self.result.lanes[rank])
        if not self.job.fused or k == 0 or len(lane[k - 1]) > 1 or len(lane[k]) > 1:
            return None
        reader, needed = self.plan.reader.get(lane[k - 1][0]), self.plan.producer(lane[k][0])
        if reader is None or needed is None or self.plan.slot[reader].rank != self.plan.slot[needed].rank:
            return None
        return reader

    def _transfer(self, producer: Action, consumer: Action) -> Transfer | None:
        """The message between two actions, once both sides have posted it."""
        if consumer in self.result.transfers:
            return self.result.transfers[consumer]
        sent, received = self._sent(producer), self._received(consumer)
        if sent is None or received is None:
            return None
        source, target = self.plan.slot[producer].rank, self.plan.slot[consumer].rank
        channel = (source, producer.stage, producer.kind == Kind.F)
        begin = max(sent, received, self.channel.get(channel, 0))
        self.channel[channel] = end = begin + self.job.moves_ns(source, target)
        transfer = Transfer(source, target, producer, consumer, sent, received, begin, end)
        self.result.transfers[consumer] = self.result.outgoing[producer] = transfer
        return transfer

    def _sent(self, producer: Action) -> int | None:
        """When an output is posted: the sends of a block follow each other at its end."""
        if producer not in self.ends:
            return None
        rank, k = self.plan.slot[producer]
        place = self.plan.lanes[rank][k].index(producer)
        return self.ends[producer] + self.job.post_ns(place)

    def _received(self, consumer: Action) -> int | None:
        """When a receive is posted: after the sends of the block before, or the one so many before that."""
        rank, k = self.plan.slot[consumer]
        lane = self.plan.lanes[rank]
        place, posted = lane[k].index(consumer), k - 1 - self.job.recv_ahead
        if posted < 0:
            return self.release + self.job.post_ns(1 + place)
        before = lane[posted]
        return self.ends[before[0]] + self.job.post_ns(len(before) + place) if before[0] in self.ends else None
