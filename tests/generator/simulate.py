"""A discrete-event simulation of a job: when every action and every transfer happened, in whole nanoseconds."""

import random
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from tests.generator.job import Job
from tests.generator.orders import Action, orders

START_NS = 5_000_000  # of the first step, on the job's true clock
LEAD_NS = 250_000  # between a step's start and the first receive: the host needs it
AFTER_NS = 20_000  # between the phases after the pipeline
TAIL_NS = 100_000  # between the optimizer's end and the step's end


@dataclass(frozen=True, slots=True)
class Transfer:
    """One message: when both sides posted it, and when its bytes moved."""

    source: int
    target: int
    producer: Action
    consumer: Action
    sent: int
    received: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Done:
    """An action that ran: ``useful`` nanoseconds of kernels between start and end."""

    action: Action
    start: int
    end: int
    useful: int
    awaited: tuple[Transfer, ...] = ()
    fused: bool = False


@dataclass
class Run:
    """One step of one pipeline."""

    done: list[list[Done]]
    transfers: dict[Action, Transfer] = field(default_factory=dict)  # by consumer
    outgoing: dict[Action, Transfer] = field(default_factory=dict)  # by producer

    @property
    def start(self) -> int:
        """First action's start."""
        return min(lane[0].start for lane in self.done)

    @property
    def end(self) -> int:
        """Last action's end."""
        return max(lane[-1].end for lane in self.done)


@dataclass
class Step:
    """One optimizer step of the whole job."""

    number: int
    start: int
    release: int
    runs: list[Run]
    end: int = 0
    dp: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    optimizer: tuple[int, int] = (0, 0)


@lru_cache(maxsize=32)
def simulate(job: Job) -> tuple[Step, ...]:
    """Every step of the job on its true clock."""
    dice = random.Random(job.seed)  # noqa: S311 - a repeatable jitter, no secret
    order = orders(job)
    steps: list[Step] = []
    start = START_NS
    for number in range(job.steps):
        step = Step(number, start, start + LEAD_NS, [])
        for replica in range(job.d):
            times = {a: _duration(job, a, f"{number}.{replica}.{a}", dice) for lane in order for a in lane}
            step.runs.append(_Simulation(job, order, times, step.release).run())
        _after_pipeline(job, step)
        steps.append(step)
        start = step.end
    return tuple(steps)


def _duration(job: Job, action: Action, name: str, dice: random.Random) -> int:
    share = {"F": 1.0, "B": 1.0, "I": 1.0 - job.weight_fraction, "W": job.weight_fraction}[action.kind]
    base = (job.forward_ns if action.kind == "F" else job.backward_ns) / job.v * share * job.factor(action.stage)
    for pattern, factor in job.slow:
        base *= factor if fnmatchcase(name, pattern) else 1.0
    if job.jitter:
        base *= max(0.1, dice.gauss(1.0, job.jitter))
    return max(1, round(base))


def _after_pipeline(job: Job, step: Step) -> None:
    """Lay the gradient all-reduces, the optimizer and the step's end."""
    ready = max(run.end for run in step.runs)
    if job.d > 1:
        for pp in range(job.p):
            own = [run.done[pp][-1].end if job.dp_early else run.end for run in step.runs]
            end = max(own) + AFTER_NS + job.dp_ns
            step.dp.update({(pp, replica): (begin + AFTER_NS, end) for replica, begin in enumerate(own)})
            ready = max(ready, end)
    step.optimizer = (ready + AFTER_NS, ready + AFTER_NS + job.optimizer_ns)
    step.end = step.optimizer[1] + TAIL_NS


class _Simulation:
    """Runs one step of one pipeline: each rank keeps its order, an action waits for its input."""

    def __init__(self, job: Job, order: list[list[Action]], times: dict[Action, int], release: int) -> None:
        self.job, self.order, self.times, self.release = job, order, times, release
        self.index = {action: (rank, k) for rank, lane in enumerate(order) for k, action in enumerate(lane)}
        self.ends: dict[Action, int] = {}
        self.channel: dict[tuple[int, int, str], int] = {}
        self.result = Run([[] for _ in order])

    def run(self) -> Run:
        """Advance every rank as far as it goes until all are through."""
        waiting = set(range(self.job.p))
        while waiting:
            before = len(self.ends)
            for rank in sorted(waiting):
                while self._advance(rank):
                    pass
            waiting = {r for r in waiting if len(self.result.done[r]) < len(self.order[r])}
            if waiting and len(self.ends) == before:
                raise ValueError(f"the order deadlocks on ranks {sorted(waiting)}")
        return self.result

    def _advance(self, rank: int) -> bool:
        lane, done = self.order[rank], self.result.done[rank]
        if len(done) == len(lane):
            return False
        action = lane[len(done)]
        fused = self._fused_with(rank, len(done))
        awaited: list[Transfer] = []
        for consumer in (action, fused):
            if consumer is not None and (needed := self.producer(consumer)) is not None:
                transfer = self._transfer(needed, consumer)
                if transfer is None:
                    return False
                awaited.append(transfer)
        if (local := self._local(action)) is not None and local not in self.ends:
            return False
        previous = done[-1].end if done else self.release
        start = max([previous, *(t.end for t in awaited)]) + self.job.gap_ns
        useful = self.times[action]
        end = start + useful + (len(self.job.pattern) - 1) * self.job.kernel_gap_ns
        self.ends[action] = end
        done.append(Done(action, start, end, useful, tuple(awaited), fused is not None))
        return True

    def producer(self, action: Action) -> Action | None:
        """The action on another rank whose output this one needs."""
        needed = self._input(action)
        return needed if needed is not None and self.index[needed][0] != self.index[action][0] else None

    def _input(self, action: Action) -> Action | None:
        kind, stage, micro = action
        if kind == "F":
            return Action("F", stage - 1, micro) if stage else None
        if kind == "W":
            return Action("I", stage, micro)
        if stage + 1 < self.job.stages:
            return Action(kind, stage + 1, micro)
        return Action("F", stage, micro)

    def _local(self, action: Action) -> Action | None:
        needed = self._input(action)
        return needed if needed is not None and self.index[needed][0] == self.index[action][0] else None

    def consumer(self, action: Action) -> Action | None:
        """The action on another rank that waits for this one's output."""
        kind, stage, micro = action
        follower = {"F": stage + 1, "B": stage - 1, "I": stage - 1}.get(kind, -1)
        if not 0 <= follower < self.job.stages:
            return None
        target = Action(kind, follower, micro)
        return target if self.index[target][0] != self.index[action][0] else None

    def _fused_with(self, rank: int, k: int) -> Action | None:
        """The consumer of the previous action's output, where its send shares a kernel with this receive."""
        if not self.job.fused or k == 0:
            return None
        sent, needed = self.consumer(self.order[rank][k - 1]), self.producer(self.order[rank][k])
        if sent is None or needed is None or self.index[sent][0] != self.index[needed][0]:
            return None
        return sent

    def _transfer(self, producer: Action, consumer: Action) -> Transfer | None:
        """The message between two actions, once both sides have posted it."""
        if consumer in self.result.transfers:
            return self.result.transfers[consumer]
        target, k = self.index[consumer]
        posted = k - 1 - self.job.recv_ahead
        before = self.order[target][posted] if posted >= 0 else None
        if producer not in self.ends or (before is not None and before not in self.ends):
            return None
        post_send, post_receive = self.job.post_ns
        sent = self.ends[producer] + post_send
        received = (self.ends[before] if before is not None else self.release) + post_receive
        source = self.index[producer][0]
        channel = (source, target, producer.kind)
        begin = max(sent, received, self.channel.get(channel, 0))
        self.channel[channel] = end = begin + self.job.p2p_ns
        transfer = Transfer(source, target, producer, consumer, sent, received, begin, end)
        self.result.transfers[consumer] = self.result.outgoing[producer] = transfer
        return transfer
