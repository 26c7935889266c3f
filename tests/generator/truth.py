"""What an analyzer should find in a job's files, in nanoseconds of the job's true clock."""

from dataclasses import dataclass

from tests.generator.job import Job
from tests.generator.orders import orders
from tests.generator.pieces import cut
from tests.generator.simulate import Done, Run, Step, Transfer, simulate


@dataclass(frozen=True)
class ActionTruth:
    """One action, and how the idle gap before it splits; the first one's gap begins at the window's start."""

    name: str
    kind: str
    stage: int
    micro: int
    start: int
    end: int
    useful: int
    wait: int
    transfer: int
    host: int


@dataclass(frozen=True)
class RankTruth:
    """One global rank in one step: its parts add up to the window.

    ``host`` holds the gaps inside actions too; ``wait`` holds the time after the last action (``tail``), less ``dp``.
    """

    rank: int
    pp: int
    tp: int
    order: tuple[str, ...]
    actions: tuple[ActionTruth, ...]
    useful: int
    in_stage: int
    wait: int
    transfer: int
    host: int
    dp: int
    tail: int


@dataclass(frozen=True)
class PipelineTruth:
    """One step of one replica."""

    step: int
    replica: int
    start: int
    end: int
    ranks: tuple[RankTruth, ...]

    @property
    def window(self) -> int:
        """From the first action's start to the last action's end."""
        return self.end - self.start

    @property
    def bubble(self) -> float:
        """Share of the window that is not useful, mean over the ranks."""
        return 1.0 - sum(r.useful for r in self.ranks) / len(self.ranks) / self.window

    @property
    def span_bubble(self) -> float:
        """The same over the longest rank's own span (definition D3)."""
        span = max(r.actions[-1].end - r.actions[0].start for r in self.ranks)
        return 1.0 - sum(r.useful for r in self.ranks) / len(self.ranks) / span


@dataclass(frozen=True)
class StepTruth:
    """One optimizer step of the whole job."""

    number: int
    start: int
    end: int
    pipelines: tuple[PipelineTruth, ...]

    @property
    def bubble(self) -> float:
        """Mean over the replicas."""
        return sum(p.bubble for p in self.pipelines) / len(self.pipelines)


@dataclass(frozen=True)
class Truth:
    """The whole job."""

    job: Job
    orders: tuple[tuple[str, ...], ...]
    steps: tuple[StepTruth, ...]

    @property
    def used(self) -> tuple[StepTruth, ...]:
        """The steps that means are taken over: all but the first, where at least two others remain."""
        return self.steps[1:] if len(self.steps) > 2 else self.steps

    @property
    def bubble(self) -> float:
        """Mean over the used steps."""
        return sum(s.bubble for s in self.used) / len(self.used)


def truth(job: Job) -> Truth:
    """The truth of a job; it is simulated once and kept."""
    names = tuple(tuple(map(str, lane)) for lane in orders(job))
    return Truth(job, names, tuple(_step(job, step) for step in simulate(job)))


def _step(job: Job, step: Step) -> StepTruth:
    pipelines = []
    for replica, run in enumerate(step.runs):
        ranks = [_rank(job, step, run, job.rank(pp, replica, tp)) for pp in range(job.p) for tp in range(job.t)]
        pipelines.append(PipelineTruth(step.number, replica, run.start, run.end, tuple(ranks)))
    return StepTruth(job.first_step + step.number, step.start, step.end, tuple(pipelines))


def _rank(job: Job, step: Step, run: Run, rank: int) -> RankTruth:
    pp, replica, tp = job.place(rank)
    lane = run.done[pp]
    actions, at = [], run.start
    for done in lane:
        actions.append(_action(done, at))
        at = done.end
    dp_start, dp_end = step.dp.get((pp, replica), (run.end, run.end))
    dp = max(0, min(run.end, dp_end) - dp_start)
    inner = sum(d.end - d.start - d.useful for d in lane)
    return RankTruth(
        rank=rank,
        pp=pp,
        tp=tp,
        order=tuple(a.name for a in actions),
        actions=tuple(actions),
        useful=sum(a.useful for a in actions),
        in_stage=sum(piece.end - piece.begin for d in lane for piece in cut(job, d, rank) if piece.comm),
        wait=sum(a.wait for a in actions) + run.end - at - dp,
        transfer=sum(a.transfer for a in actions),
        host=sum(a.host for a in actions) + inner,
        dp=dp,
        tail=run.end - at,
    )


def _action(done: Done, at: int) -> ActionTruth:
    """Split the idle time from ``at`` to an action's start by its inputs."""
    arrived = max([at, *(min(t.end, done.start) for t in done.awaited)])
    transfer = _moving(done.awaited, at)
    return ActionTruth(
        str(done.action),
        *done.action,
        done.start,
        done.end,
        done.useful,
        wait=arrived - at - transfer,
        transfer=transfer,
        host=done.start - arrived,
    )


def _moving(awaited: tuple[Transfer, ...], start: int) -> int:
    """How long, from a moment on, any awaited message moved."""
    total = 0
    for transfer in sorted(awaited, key=lambda t: t.begin):
        begin = max(start, transfer.begin)
        if begin < transfer.end:
            total += transfer.end - begin
            start = transfer.end
    return total
