"""Runs for the tests of advice: a report with what a test says of it, and a forecaster that answers as it is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bubblescope.advice.advise import advise
from bubblescope.advice.context import Context
from bubblescope.analysis.study import study
from bubblescope.model.options import Options
from bubblescope.model.report import (
    Cause,
    DataLength,
    Link,
    Outside,
    Pauses,
    Pipeline,
    Proposal,
    Rank,
    Report,
    SlowMicrobatch,
    Stage,
    Straggler,
)
from bubblescope.model.traffic import Communication
from bubblescope.model.unevenness import Pause
from bubblescope.model.whatif import Forecast, Memory, Run
from tests.analysis.jobs import one_f_one_b
from tests.analysis.jobs import report as analyzed

__all__ = [
    "LONG",
    "MS",
    "PAUSES",
    "SLOW",
    "SLOW_LINK",
    "STEP",
    "Fake",
    "a_rank",
    "a_run",
    "a_stage",
    "advised",
    "causes",
    "context",
    "found",
    "quiet",
    "said",
    "with_bubble",
    "with_imbalance",
]

MS = 1_000_000
STEP = 400 * MS
WINDOW = 380 * MS

PAUSES = Pauses(count=5, share=0.02, longest=(Pause(rank=2, step=4, action="2F3", ns=50 * MS, host=True),))
LONG = DataLength(
    found=True,
    correlation=0.97,
    chance=1e-6,
    spread=0.12,
    persistent=False,
    count=1,
    slowest=(SlowMicrobatch(pipeline=0, step=4, microbatch=3, factor=1.8, evidence=""),),
)
SLOW = Straggler(
    rank=5, ranks=(4, 5), slowdown=1.31, forward=1.3, backward=1.3, chance=1e-6, persistent=True, steps=(1,),
    evidence="",
)  # fmt: skip
SLOW_LINK = Link(
    source=0, target=1, direction="forward", messages=32, untold=0, bytes=1, transfer_ns=9, wait_ns=0, bandwidth=1.0,
    ratio=2.31, slow=True, evidence="",
)  # fmt: skip


def a_run(**known) -> Run:
    """1f1b on 4 ranks with 8 micro-batches, tensor parallel by 2."""
    usual = {
        "schedule": "1f1b",
        "pp": 4,
        "tp": 2,
        "virtual": 1,
        "microbatches": 8,
        "step_ns": STEP,
        "window_ns": WINDOW,
        "bubble": 0.3,
        "span": 0.3,
        "memory": Memory(activations=4.0, weights=1.0),
    }
    return Run(**usual | known)


@dataclass
class Fake:
    """A forecaster: `answers` gives the gain of a what-if, or its gain and its run; whatever else cannot be."""

    answers: dict[str, float | tuple[float, Run]] = field(default_factory=dict)
    measured: Run = field(default_factory=a_run)
    error: float = 0.001
    asked: list[str] = field(default_factory=list)

    def forecast(self, changes):
        """As told."""
        change = str(changes)
        self.asked.append(change)
        if change not in self.answers:
            return Forecast(
                change=change, title=change, run=None, gain=None, gain_ns=None, assumptions=(), problem="no such run"
            )
        answer = self.answers[change]
        gain, run = answer if isinstance(answer, tuple) else (answer, replace(self.measured, bubble=0.2))
        return Forecast(change=change, title=change, run=run, gain=gain, gain_ns=round(gain * STEP), assumptions=())


def causes(**points: float) -> tuple[Cause, ...]:
    """Causes of that many points; those not named are nothing."""
    names = ("structural", "imbalance", "straggler", "jitter", "p2p", "host", "residual")
    return tuple(
        Cause(cause=name, ns=0, share=points.get(name, 0.0), points=points.get(name, 0.0), parts=()) for name in names
    )


def a_rank(rank: int, *, compute: int = 266, comm: int = 0, outside: Outside | None = None, window: int = 380) -> Rank:
    """A rank that computes and waits; all in milliseconds."""
    idle = (window - compute - comm) * MS
    return Rank(
        rank=rank,
        stages=(rank,),
        pipeline=0,
        window_ns=window * MS,
        compute_ns=compute * MS,
        in_stage_comm_ns=comm * MS,
        dp_ns=0,
        pp_ns=idle,
        pp_transfer_ns=0,
        pp_wait_ns=idle,
        host_ns=0,
        other_ns=0,
        bubble=1 - (compute + comm) / window,
        outside=outside or Outside(dp_ns=8 * MS, optimizer_ns=8 * MS, host_ns=4 * MS, other_ns=0),
    )


def a_stage(stage: int, forward: int = 10, backward: int = 20) -> Stage:
    """A stage whose forward and backward take so many milliseconds."""
    return Stage(
        stage=stage, chunk=0, ranks=(stage,), forward_ns=forward * MS, backward_ns=backward * MS, weight_ns=None,
        work_ns=8 * (forward + backward) * MS, bubble=0.3, warmup_ns=0, steady_ns=0, cooldown_ns=0,
    )  # fmt: skip


def quiet(**changes) -> Report:
    """Four stages on four ranks, nothing wrong; 30 % of the window is bubble."""
    base = analyzed(one_f_one_b())
    sends = Communication(
        group="pp", op="send_recv", calls=24.0, total_ns=0, exposed_ns=0, wait_ns=0, transfer_ns=0, bytes=None,
        group_size=2, algorithm_bandwidth=None, bus_bandwidth=None,
    )  # fmt: skip
    usual = {
        "layout": replace(base.layout, pp=4, tp=2, world_size=8),
        "schedule": replace(base.schedule, name="1f1b", microbatches=8),
        "bubble": replace(
            base.bubble, measured=0.3, formula=3 / 11, window_ns=WINDOW, trusted=True, causes=causes(structural=3 / 11)
        ),
        "pipelines": (Pipeline(pipeline=0, ranks=(0, 1, 2, 3), bubble=0.3, window_ns=WINDOW),),
        "stages": tuple(map(a_stage, range(4))),
        "ranks": tuple(map(a_rank, range(4))),
        "communication": (sends,),
        "links": (),
        "imbalance": replace(
            base.imbalance, stage_ratio=1.0, slowest_stage=3, stragglers=(), data_length=None, pauses=None
        ),
    }
    return replace(base, **usual | changes)


def with_bubble(report: Report, **changes) -> Report:
    """The report with another bubble."""
    return replace(report, bubble=replace(report.bubble, **changes))


def with_imbalance(report: Report, **changes) -> Report:
    """The report with another imbalance."""
    return replace(report, imbalance=replace(report.imbalance, **changes))


def found():
    """A study of some run."""
    return study(one_f_one_b(), Options())


def context(report: Report, forecaster: Fake | None) -> Context:
    """What rules are given."""
    return Context.of(found(), report, forecaster)


def advised(report: Report, forecaster: Fake | None) -> tuple[Proposal, ...]:
    """All advice for a run."""
    return advise(found(), report, forecaster)


def said(rule, report: Report, forecaster: Fake | None) -> Proposal | None:
    """What a rule proposes, if anything; it never proposes two things."""
    (*proposals,) = rule(context(report, forecaster))
    assert len(proposals) < 2
    return proposals[0] if proposals else None
