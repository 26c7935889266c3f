"""What an analyzer should find in a job's files, in nanoseconds of the job's true clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from bubblescope.emit.job import Job
from bubblescope.emit.pieces import Piece, cut
from bubblescope.emit.plan import plan
from bubblescope.emit.run import Done, Pass, Ran, Run, Span, Step, Transfer
from bubblescope.emit.settle import commonest
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
    """One step of the whole job, as the profiler counts them: `m` micro-batches are trained, `evaluated` evaluated.

    `pipelines` hold the training, or the evaluation where nothing is trained.
    """

    number: int
    start: int
    end: int
    m: int
    evaluated: int
    pipelines: tuple[PipelineTruth, ...]

    @property
    def bubble(self) -> float:
        """Mean over the replicas."""
        return fmean(p.bubble for p in self.pipelines)


@dataclass(frozen=True, slots=True)
class Truth:
    """The whole job; `orders` holds the names of the actions of every pipeline rank in a training step of m."""

    job: Job
    orders: tuple[tuple[str, ...], ...]
    steps: tuple[StepTruth, ...]

    @property
    def usable(self) -> tuple[StepTruth, ...]:
        """The steps that a mean may be taken over, whatever their size: see `used`."""
        sizes = {step.m for step in self._later}
        return tuple(sorted((step for size in sizes for step in self._of(size)), key=lambda step: step.number))

    @property
    def used(self) -> tuple[StepTruth, ...]:
        """The steps that means are taken over: those of the commonest size, and of equally common ones the largest.

        Of that size those that train and do nothing else, and where there are none those that evaluate, too. The first
        of all is left out where two others remain.
        """
        return self._of(commonest([step.m for step in self._later]))

    @property
    def _later(self) -> list[StepTruth]:
        """The steps that train, without the first where two others like it remain."""
        trained = [step for step in self.steps if step.m]
        plain = [step for step in trained if not step.evaluated] or trained
        return trained[1:] if len(plain) > 2 and plain[0] == trained[0] else trained

    def _of(self, size: int) -> tuple[StepTruth, ...]:
        sized = [step for step in self.steps if step.m == size]
        plain = [step for step in sized if not step.evaluated] or sized
        return tuple([step for step in plain if step in self._later] or plain)

    @property
    def bubble(self) -> float:
        """Mean over the used steps."""
        return fmean(step.bubble for step in self.used)

    @property
    def bubble_by_size(self) -> dict[int, float]:
        """The same of each number of micro-batches."""
        sizes = sorted({step.m for step in self.usable})
        return {size: fmean(step.bubble for step in self.usable if step.m == size) for size in sizes}


def truth(job: Job) -> Truth:
    """The truth of a job; raises UsageError where its order cannot run."""
    names = tuple(tuple(map(str, order)) for order in plan(job, job.m).orders)
    return Truth(job, names, tuple(_step(job, step) for step in simulate(job)))


def _step(job: Job, step: Step) -> StepTruth:
    shown = step.training or step.passes[0]
    pipelines = []
    for replica, run in enumerate(shown.runs):
        ranks = [_rank(job, shown, run, rank) for rank in range(job.world) if job.place(rank).dp == replica]
        pipelines.append(PipelineTruth(step.number, replica, run.start, run.end, tuple(ranks)))
    evaluated = sum(part.m for part in step.passes if part.evaluates)
    m = step.training.m if step.training else 0
    return StepTruth(job.first_step + step.number, step.start, step.end, m, evaluated, tuple(pipelines))


def _rank(job: Job, shown: Pass, run: Run, rank: int) -> RankTruth:
    pp, replica, tp, _ = job.place(rank)
    lane = run.lanes[pp]
    parts = [part for ran in lane for part in ran.parts]
    reduced = [(each.begin, min(each.end, run.end)) for each in shown.dp.get((pp, replica), ())]
    actions, at = list[ActionTruth](), run.start
    for ran in lane:
        actions += _block(ran, at, reduced)
        at = ran.end
    idle = [gap for part in parts for gap in _gaps(cut(job, part, rank))]
    inside = _common(idle, reduced)
    before = _common(zip([run.start, *(ran.end for ran in lane)], [ran.start for ran in lane], strict=False), reduced)
    dp, tail = before + inside + _common([(at, run.end)], reduced), run.end - at
    return RankTruth(
        rank=rank,
        pp=pp,
        tp=tp,
        actions=tuple(actions),
        useful=sum(part.useful for part in parts),
        in_stage=sum(piece.end - piece.begin for part in parts for piece in cut(job, part, rank) if piece.comm),
        wait=sum(a.wait for a in actions) + tail - _common([(at, run.end)], reduced),
        transfer=sum(a.transfer for a in actions),
        host=sum(a.host for a in actions) + sum(part.end - part.start - part.useful for part in parts) - inside,
        dp=dp,
        tail=tail,
    )


def _block(ran: Ran, at: int, reduced: Sequence[Span]) -> list[ActionTruth]:
    """Split the idle time from `at` to a block's start by its inputs, less what the reductions of gradients take."""
    arrived = max([at, *(min(transfer.end, ran.start) for transfer in ran.awaited)])
    moved = list(_moving(ran.awaited, at))
    transfer = sum(end - begin for begin, end in moved) - _common(moved, reduced)
    before = arrived - at - _common([(at, arrived)], reduced)
    host = ran.start - arrived - _common([(arrived, ran.start)], reduced)
    first, *others = ran.parts
    return [_action(first, wait=before - transfer, transfer=transfer, host=host), *map(_action, others)]


def _action(done: Done, **gap: int) -> ActionTruth:
    return ActionTruth(done.action, done.start, done.end, done.useful, **gap)


def _moving(awaited: tuple[Transfer, ...], start: int) -> Iterator[Span]:
    """When, from a moment on, any awaited message moved."""
    for transfer in sorted(awaited, key=lambda t: t.begin):
        begin = max(start, transfer.begin)
        if begin < transfer.end:
            yield begin, transfer.end
            start = transfer.end


def _gaps(pieces: Sequence[Piece]) -> Iterator[Span]:
    """Between the kernels of an action."""
    return ((before.end, after.begin) for before, after in pairwise(pieces))


def _common(spans: Iterable[Span], others: Sequence[Span]) -> int:
    """How long both some spans and some others last; neither overlap among themselves."""
    return sum(max(0, min(span[1], end) - max(span[0], begin)) for span in spans for begin, end in others)
