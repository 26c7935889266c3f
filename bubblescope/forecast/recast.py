"""The measured times, cast into a changed run: how long each of its actions works, and what delays it.

Every action keeps what its measured pieces had of their own: the profile of their stage, the length of their data,
their jitter, their pauses. What belongs to a rank, that it is slow, stays with the rank; what belongs to a stage goes
where the stage goes. Transfers between ranks that exchanged none are as long as the median of those that did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bubblescope.forecast.cover import Shares, cover
from bubblescope.forecast.cut import StageTable
from bubblescope.forecast.measured import Measured, before
from bubblescope.forecast.pieces import Cut, Pieces, pieces
from bubblescope.forecast.target import Target
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.changes import Changes, Recompute
from bubblescope.schedules.replay import NEVER, Course, Delays

__all__ = ["Plan", "Recast"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The orders of a pipeline of a changed run, and what their actions are made of, whatever their times.

    Attributes:
        run: the measured steps.
        now: the run as it was measured.
        to: as it is to be.
        orders: of the changed run, by position.
        together: actions that run as one block with the one behind them.
        recompute: whether backwards run their forwards again, where that changes.
        moved: where layers move, the shares that follow from it.
    """

    run: Measured
    now: Target
    to: Target
    orders: Mapping[int, Order]
    together: frozenset[Action]
    recompute: Recompute | None = None
    moved: StageTable | None = None

    @cached_property
    def course(self) -> Course:
        """The orders, ready to run."""
        last = self.to.stages - 1 if self.to.orders is not None else max(a.stage for a in self.run.column)
        return Course(dict(sorted(self.orders.items())), last_stage=last, together=self.together)

    @cached_property
    def positions(self) -> dict[Action, int]:
        """Of every action, in the order of the course."""
        places = sorted(self.orders)
        return {a: places[at] for a, at in zip(self.course.actions, self.course.rank, strict=True)}

    @cached_property
    def pieces(self) -> Pieces:
        """What the actions are made of."""
        cut = Cut(self.run, self.now.shape.m, self.to.size, self.to.shape.slices, self._shares, self.recompute)
        return pieces(cut, self.positions)

    @cached_property
    def as_many_stages(self) -> bool:
        """Whether the model is cut into as many stages as it was."""
        return self.now.stages == self.to.stages

    def _shares(self, stage: int, kind: Kind) -> Shares:
        if self.moved is not None:
            return self.moved[stage, kind == Kind.F]
        return ((stage, 1.0),) if self.as_many_stages else cover(stage, self.now.stages / self.to.stages)


@dataclass(frozen=True, eq=False, kw_only=True)
class Recast:
    """The times of a planned run.

    Attributes:
        plan: its actions.
        changes: what changes.
        even: mean of every kind over all pipelines, where each action is to be as long as that.
    """

    plan: Plan
    changes: Changes
    even: Mapping[Kind, float]

    @property
    def run(self) -> Measured:
        """The measured steps."""
        return self.plan.run

    @property
    def now(self) -> Target:
        """The run as it was measured."""
        return self.plan.now

    @property
    def to(self) -> Target:
        """The run as it is to be."""
        return self.plan.to

    @property
    def course(self) -> Course:
        """The orders, ready to run."""
        return self.plan.course

    @property
    def pieces(self) -> Pieces:
        """What the actions are made of."""
        return self.plan.pieces

    def durations(self, step: int) -> Floats:
        """Useful nanoseconds of every action in the step of that number."""
        return self._summed(self._work, self.pieces.work * self._factors, step).clip(0)

    def inside(self, step: int) -> Floats:
        """Nanoseconds of gaps within every action."""
        return self._summed(self._gaps[1], self.pieces.inside, step)

    def delays(self, step: int) -> Delays:
        """What keeps actions waiting."""
        late = self._summed(self._gaps[0], self.pieces.mean, step)
        host = dict(zip(self.course.actions, late.tolist(), strict=True)) if late.any() else {}
        if "p2p" in self.changes.without:
            return Delays(host=host)
        moving = self._moving(step)
        if self.changes.overlap or self.changes.even:
            return Delays(transfer=moving, host=host)
        return Delays(transfer=moving, posted=self._posted(step), blocking=self._blocks(step), host=host)

    def _summed(self, table: Floats, weight: Floats, step: int) -> Floats:
        rows = (step + self.pieces.later) % len(table)
        known = np.nan_to_num(table[rows, self.pieces.column])
        return np.bincount(self.pieces.new, known * weight, len(self.course.actions)).astype(np.float64)

    @cached_property
    def _work(self) -> Floats:
        """Useful time of the measured actions, without what a slow rank adds and without troubles that are gone."""
        run, without = self.run, self.changes.without
        if self.even:
            means = np.array([self.even.get(action.kind, 0.0) for action in run.column])
            return np.broadcast_to(means, run.mean.shape)
        length = run.mean.copy()
        if "imbalance" not in without:
            length *= run.imbalance
        if "jitter" in without:
            return length
        length *= run.jitter / (run.data if "data" in without else 1.0)
        if "pauses" in without:
            took = run.mean * run.imbalance * run.jitter
            length *= 1 - np.divide(run.pause, took, out=np.zeros_like(took), where=took > 0)
        return length

    @cached_property
    def _gaps(self) -> tuple[Floats, Floats]:
        """What the host kept each measured action waiting, before and within it."""
        run, without = self.run, self.changes.without
        if self.even or "host" in without:
            return np.zeros_like(run.late), np.zeros_like(run.inside)
        if "pauses" not in without:
            return run.late, run.inside
        before = np.minimum(run.late_pause, run.late.clip(0))
        return run.late - before, (run.inside - (run.late_pause - before)).clip(0)

    @cached_property
    def _factors(self) -> Floats:
        """What a slow rank and another tensor-parallel degree make of each piece."""
        of = [self._slow(at, stage, kind) * self._narrower(old) for at, stage, kind, old in self.pieces.places]
        return np.array(of)[self.pieces.place] if of else np.zeros(0)

    def _slow(self, position: int, stage: int, kind: Kind) -> float:
        if self.even:
            return 1.0
        if "straggler" in self.changes.without:
            return self.run.quick[kind]
        placement = self.now.placement
        if self.plan.as_many_stages and position < len(placement) and stage in placement[position]:
            return self.run.straggler(position, stage, kind)
        covered = cover(position, self.now.shape.p / self.to.shape.p)
        return max(self._slow_position(at, kind) for at, _ in covered)

    def _slow_position(self, position: int, kind: Kind) -> float:
        stages = self.now.placement[position]
        return sum(self.run.straggler(position, stage, kind) for stage in stages) / len(stages)

    def _narrower(self, stage: int) -> float:
        """What another tensor-parallel degree makes of useful time; ring collectives move (t-1)/t of their data."""
        before, after = self.now.tp, self.to.tp
        if before == after or before is None or after is None:
            return 1.0
        holders = [at for at, held in enumerate(self.now.placement) if stage in held]
        comm = sum(self.run.in_stage.get(at, 0.0) for at in holders) / max(len(holders), 1)
        moved = ((after - 1) / after) / ((before - 1) / before) if before > 1 else 0.0
        return (1 - comm) * before / after + comm * moved

    def _moving(self, step: int) -> dict[Action, float]:
        """How long the input of each action moves."""
        exact = self._exact(self.run.transfer, step)
        edges = self.run.edges
        usual = float(np.median(list(edges.values()))) if edges else 0.0
        scale = self.to.size * (1.0 if self.changes.p2p is None else self.changes.p2p)
        moving = {}
        for k, source in enumerate(self.course.source):
            if source == NEVER or self.course.rank[source] == self.course.rank[k]:
                continue
            own = exact[k]
            if np.isnan(own) or self.even or (self.run.fused and self.to.family is not self.now.family):
                own = edges.get((self.course.rank[source], self.course.rank[k]), usual)
            moving[self.course.actions[k]] = (usual if self.even else own) * scale
        return moving

    def _exact(self, table: Floats, step: int) -> Floats:
        """The values of the measured actions themselves, NaN where an action moved to other stages or ranks."""
        if not (self.plan.as_many_stages and self.now.placement == self.to.placement):
            return np.full(len(self.course.actions), np.nan)
        known = self._summed((~np.isnan(table)).astype(np.float64), self.pieces.mean, step)
        values = self._summed(table, self.pieces.mean, step)
        return np.divide(values, known, out=np.full_like(values, np.nan), where=known > 0)

    def _posted(self, step: int) -> dict[Action, float]:
        """How long after the action before it an action asks for its input.

        That depends on the action before: where another one is, the median of the position counts.
        """
        exact, usual = self._exact(self.run.posted, step), self.run.usual_posting
        posted = {}
        for k, action in enumerate(self.course.actions):
            at = self.plan.positions[action]
            same = self.run.before.get(action) == self._before.get(action) and self.to.size == 1
            value = exact[k] if same else np.nan
            posted[action] = usual.get(at, usual[-1]) if np.isnan(value) else float(value)
        return posted

    @cached_property
    def _before(self) -> dict[Action, Action | None]:
        return before(self.plan.orders)

    def _blocks(self, step: int) -> bool:
        """Whether a send holds its rank: as measured; another schedule brings other code, which need not do so."""
        return self.to.family is self.now.family and self.run.blocking[step]
