"""What an analyzer should find in a job's files, in nanoseconds of the job's true clock."""

from __future__ import annotations

from dataclasses import dataclass

from bubblescope.emit.job import Job
from bubblescope.emit.pieces import cut
from bubblescope.emit.plan import plan
from bubblescope.emit.run import Done, Ran, Run, Step, Transfer
from bubblescope.emit.simulate import simulate
from bubblescope.model.actions import Action

__all__ = ["ActionTruth", "PipelineTruth", "RankTruth", "StepTruth", "Truth", "truth"]


@dataclass(frozen=True, slots=True)
class ActionTruth:
    """One action, and how the idle gap before it splits; the first one's gap begins at the window's start.

    No gap lies between the two actions of a block.
    """

    action: Action
    start: int
    end: int
    useful: int
    wait: int = 0
    transfer: int = 0
    host: int = 0

    @property
    def name(self) -> str:
        """The action as the field writes it."""
        return str(self.action)


@dataclass(frozen=True, slots=True)
class RankTruth:
    """One global rank in one step: useful, wait, transfer, host and dp add up to the window.

    `useful` holds `in_stage`, the collectives inside actions; `host` holds the gaps inside actions, too;
    `wait` holds the time after the last action (`tail`), less `dp`.
    """

    rank: int
    pp: int
    tp: int
    actions: tuple[ActionTruth, ...]
    useful: int
    in_stage: int
    wait: int
    transfer: int
    host: int
    dp: int
    tail: int


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Truth:
    """The whole job; `orders` holds the names of the actions of every pipeline rank."""

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
    """The truth of a job; raises UsageError where its order cannot run."""
    names = tuple(tuple(map(str, order)) for order in plan(job).orders)
    return Truth(job, names, tuple(_step(job, step) for step in simulate(job)))


def _step(job: Job, step: Step) -> StepTruth:
    pipelines = []
    for replica, run in enumerate(step.runs):
        ranks = [_rank(job, step, run, job.rank(pp, replica, tp)) for pp in range(job.p) for tp in range(job.t)]
        pipelines.append(PipelineTruth(step.number, replica, run.start, run.end, tuple(ranks)))
    return StepTruth(job.first_step + step.number, step.start, step.end, tuple(pipelines))


def _rank(job: Job, step: Step, run: Run, rank: int) -> RankTruth:
    pp, replica, tp = job.place(rank)
    lane = run.lanes[pp]
    parts = [part for ran in lane for part in ran.parts]
    actions, at = list[ActionTruth](), run.start
    for ran in lane:
        actions += _block(ran, at)
        at = ran.end
    dp_start, dp_end = step.dp.get((pp, replica), (run.end, run.end))
    dp = max(0, min(run.end, dp_end) - dp_start)
    return RankTruth(
        rank=rank,
        pp=pp,
        tp=tp,
        actions=tuple(actions),
        useful=sum(part.useful for part in parts),
        in_stage=sum(piece.end - piece.begin for part in parts for piece in cut(job, part, rank) if piece.comm),
        wait=sum(a.wait for a in actions) + run.end - at - dp,
        transfer=sum(a.transfer for a in actions),
        host=sum(a.host for a in actions) + sum(part.end - part.start - part.useful for part in parts),
        dp=dp,
        tail=run.end - at,
    )


def _block(ran: Ran, at: int) -> list[ActionTruth]:
    """Split the idle time from `at` to a block's start by its inputs."""
    arrived = max([at, *(min(transfer.end, ran.start) for transfer in ran.awaited)])
    transfer = _moving(ran.awaited, at)
    first, *others = ran.parts
    gap = {"wait": arrived - at - transfer, "transfer": transfer, "host": ran.start - arrived}
    return [_action(first, **gap), *map(_action, others)]


def _action(done: Done, **gap: int) -> ActionTruth:
    return ActionTruth(done.action, done.start, done.end, done.useful, **gap)


def _moving(awaited: tuple[Transfer, ...], start: int) -> int:
    """How long, from a moment on, any awaited message moved."""
    total = 0
    for transfer in sorted(awaited, key=lambda t: t.begin):
        begin = max(start, transfer.begin)
        if begin < transfer.end:
            total += transfer.end - begin
            start = transfer.end
    return total
