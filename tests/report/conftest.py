"""Reports written out by hand, one for each kind of answer; goldens hold what they look like."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bubblescope.model.report import (
    Bubble,
    Cause,
    Clock,
    Communication,
    Coverage,
    DataLength,
    Departure,
    Guess,
    Imbalance,
    Input,
    Layout,
    Link,
    NumberVerdict,
    Outside,
    Pause,
    Pauses,
    Pipeline,
    Proposal,
    Quality,
    Rank,
    RankCoverage,
    Report,
    Schedule,
    SlowMicrobatch,
    Stage,
    StageLoad,
    StageRanks,
    Step,
    Straggler,
    Throughput,
    Tool,
    WorstBubble,
)
from bubblescope.model.trace import Finding

MS = 1_000_000
OUTSIDE = Outside(dp_ns=3 * MS, optimizer_ns=2 * MS, host_ns=MS, other_ns=0)


def an_input(rank: int, path: str | None = None, device: str = "NVIDIA H100 80GB HBM3") -> Input:
    """A file that holds one rank."""
    return Input(
        path=path or f"rank{rank}_trace.json.gz",
        format="kineto",
        bytes=1_234_567,
        events=54_321,
        rank=rank,
        rank_source="metadata",
        device=device,
    )


def a_link(source, target, ratio, *, slow=False):
    """What one rank sends to another in forwards."""
    limits = "median surely over 1.1 ms, of its peers under 0.52 ms; slower in 4 of 4 steps"
    return Link(
        source=source,
        target=target,
        direction="forward",
        messages=32,
        untold=3,
        bytes=8_388_608,
        transfer_ns=round(500_000 * ratio),
        wait_ns=20_000,
        bandwidth=8_388_608e9 / (500_000 * ratio),
        ratio=ratio,
        slow=slow,
        evidence=limits if slow else "no more than 1.2 times its peers",
    )


def a_rank(
    rank: int, stage: int, window: int, shares: tuple[float, ...], *, pipeline: int | None = 0, split=True
) -> Rank:
    """A rank whose window is cut by the shares of compute, in-stage, dp, transfer, wait, host."""
    compute, inside, dp, transfer, wait, host = (int(share * window) for share in shares)
    other = window - compute - inside - dp - transfer - wait - host
    return Rank(
        rank=rank,
        stages=(stage,) if pipeline is not None else (),
        pipeline=pipeline,
        window_ns=window,
        compute_ns=compute,
        in_stage_comm_ns=inside,
        dp_ns=dp,
        pp_ns=transfer + wait,
        pp_transfer_ns=transfer if split else None,
        pp_wait_ns=wait if split else None,
        host_ns=host,
        other_ns=other,
        bubble=1 - (compute + inside) / window if pipeline is not None else None,
        busy=0.99,
        useful=(compute + inside) / (window + 6 * MS),
        outside=OUTSIDE,
    )


def a_stage(stage: int, ranks: tuple[int, ...], work: int, bubble: float, phases: tuple[int, int, int]) -> Stage:
    """A stage whose useful time is `work` a step."""
    return Stage(
        stage=stage,
        chunk=0,
        ranks=ranks,
        forward_ns=work // 24,
        backward_ns=work // 12,
        weight_ns=None,
        work_ns=work,
        bubble=bubble,
        warmup_ns=phases[0],
        steady_ns=phases[1],
        cooldown_ns=phases[2],
    )


def some_steps(*bubbles: float | None, window: int) -> tuple[Step, ...]:
    """A step for each bubble; None is an incomplete one, and the first is not used."""
    return tuple(
        Step(
            step=number,
            complete=bubble is not None,
            used=bubble is not None and number > 0,
            start_ns=number * 2 * window,
            end_ns=number * 2 * window + window + 6 * MS,
            window_ns=window if bubble is not None else None,
            bubble=bubble,
        )
        for number, bubble in enumerate(bubbles)
    )


def causes(window: int, **parts: float) -> tuple[Cause, ...]:
    """The causes from their points; those not named are nothing."""
    names = ("structural", "imbalance", "straggler", "jitter", "p2p", "host", "residual")
    shares = {name: parts.get(name, 0.0) for name in names}
    rest = 1 - shares["structural"]
    return tuple(
        Cause(
            cause=name,
            ns=int(window * (share if name == "structural" else share / rest)),
            share=share if name == "structural" else share / rest,
            points=share,
        )
        for name, share in shares.items()
    )


def one_f_one_b() -> Report:
    """Four stages on four ranks, near what theory owes."""
    window = 52_345_678
    return Report(
        tool=Tool(name="bubblescope", version="0.0.0"),
        inputs=tuple(an_input(rank) for rank in range(4)),
        quality=Quality(verdict="ok", findings=(Finding("skipped", "info", "config.json is no trace", "config.json"),)),
        clock=Clock(
            method="p2p",
            offsets_ns={"0": 0, "1": -1_400_000, "2": 12, "3": 0},
            drift_ppm={"0": 0.0, "1": -3.5, "2": 0.0, "3": 0.0},
            error_ns=800,
            violations=2,
        ),
        layout=Layout(
            world_size=4,
            pp=4,
            tp=1,
            dp=1,
            cp=1,
            ep=1,
            virtual=1,
            source="metadata",
            missing_ranks=(),
            stages=tuple(StageRanks(stage=stage, chunk=0, ranks=(stage,)) for stage in range(4)),
        ),
        schedule=Schedule(
            name="1f1b",
            also=(),
            microbatches=8,
            confidence=1.0,
            runner_up=Guess(name="eager-1f1b", confidence=0.77),
            reconstruction="labels",
            evidence=("the order of all 64 actions is that of 1f1b",),
            departures=(),
        ),
        steps=some_steps(None, 0.288, 0.2871, 0.2862, window=window),
        bubble=Bubble(
            measured=0.2871,
            lower=0.2871,
            upper=0.2871,
            spread=0.0009,
            formula=0.2727,
            formula_source="closed-form",
            replay=0.2758,
            gap=0.0144,
            ratio_to_ideal=0.4027,
            span=0.2859,
            window_ns=window,
            trusted=True,
            causes=causes(
                window, structural=0.2727, imbalance=0.0012, jitter=0.002, p2p=0.0107, host=0.0004, residual=0.0001
            ),
        ),
        throughput=Throughput(
            step_ns=window + 6 * MS,
            microbatches_per_s=8e9 / (window + 6 * MS),
            samples_per_s=64e9 / (window + 6 * MS),
            tokens_per_s=65_536e9 / (window + 6 * MS),
            tokens_per_s_per_gpu=16_384e9 / (window + 6 * MS),
            model_flops_per_s_per_gpu=4.08e14,
            peak_flops=9.894e14,
            mfu=0.4124,
            hfu=0.5498,
            busy=0.9964,
            useful=0.6392,
        ),
        pipelines=(Pipeline(pipeline=0, ranks=(0, 1, 2, 3), bubble=0.2871, window_ns=window),),
        stages=tuple(
            a_stage(stage, (stage,), 37_300_000 + 9_000 * stage, 0.2875 - 0.0002 * stage, phases)
            for stage, phases in enumerate(
                [(0, 3 * MS, 12 * MS), (4 * MS, 3 * MS, 8 * MS), (8 * MS, 3 * MS, 4 * MS), (12 * MS, 3 * MS, 0)]
            )
        ),
        ranks=tuple(
            a_rank(rank, rank, window, (0.7129, 0, 0, 0.011 + 0.008 * (rank % 2), 0.26, 0.004)) for rank in range(4)
        ),
        communication=(
            Communication(
                group="pp",
                op="send_recv",
                calls=24,
                total_ns=14_500_000,
                exposed_ns=14_100_000,
                wait_ns=13_700_000,
                transfer_ns=800_000,
                bytes=201_326_592,
                group_size=2,
                algorithm_bandwidth=2.5e11,
                bus_bandwidth=2.5e11,
            ),
        ),
        links=(a_link(2, 3, 1.04), a_link(0, 1, 0.98)),
        imbalance=balance(stage_ratio=1.0004, slowest_stage=3),
        worst_bubbles=(
            WorstBubble(
                rank=3, stage=3, step=2, start_ns=209_382_712, duration_ns=11_900_000, before="3F0", phase="warmup"
            ),
            WorstBubble(
                rank=0, stage=0, step=1, start_ns=145_000_000, duration_ns=3_700_000, before="0B5", phase="cooldown"
            ),
        ),
        findings=(),
    )


def no_pipeline() -> Report:
    """Two replicas, no pipeline."""
    base, window = one_f_one_b(), 412_000_000
    steps = some_steps(None, None, window=window)
    nothing = dict.fromkeys(
        ("measured", "lower", "upper", "spread", "formula", "replay", "gap", "ratio_to_ideal", "span")
    )
    return replace(
        base,
        inputs=base.inputs[:2],
        quality=Quality(verdict="ok", findings=()),
        clock=Clock(
            method="collectives",
            offsets_ns={"0": 0, "1": 77},
            drift_ppm={"0": 0.0, "1": 0.0},
            error_ns=5_300,
            violations=0,
        ),
        layout=replace(base.layout, world_size=2, pp=1, tp=None, dp=2, stages=(), source="process groups"),
        schedule=Schedule(
            name="none",
            also=(),
            microbatches=None,
            confidence=0.98,
            runner_up=None,
            reconstruction=None,
            evidence=("no sends or receives",),
            departures=(),
        ),
        steps=(steps[0], replace(steps[1], complete=True, used=True)),
        bubble=Bubble(**nothing, formula_source=None, window_ns=None, trusted=True, causes=()),
        throughput=Throughput(step_ns=window, model_flops_per_s_per_gpu=1.3e14, busy=0.93, useful=0.71),
        pipelines=(),
        stages=(),
        ranks=tuple(
            a_rank(rank, 0, window, (0.7 + rank / 40, 0, 0.22, 0, 0, 0.05), pipeline=None) for rank in range(2)
        ),
        communication=(
            Communication(
                group="dp",
                op="all_reduce",
                calls=31.5,
                total_ns=120_000_000,
                exposed_ns=90_640_000,
                wait_ns=20_000_000,
                transfer_ns=100_000_000,
                bytes=2_800_000_000,
                group_size=2,
                algorithm_bandwidth=2.8e10,
                bus_bandwidth=2.8e10,
            ),
        ),
        links=(),
        imbalance=balance(replica_ratio=1.03),
        worst_bubbles=(),
    )


def covered(rank: int, *, launched: float, paired: float) -> RankCoverage:
    """What the numbers rest on of a rank of two alike."""
    return RankCoverage(
        rank=rank, left_out=None, kernels=1_200, launched=launched, inside_ns=200 * MS, explained=1.0, messages=60,
        paired=paired,
    )  # fmt: skip


def missing_ranks() -> Report:
    """Rank 2 and 3 of four were not given."""
    base = one_f_one_b()
    window = base.bubble.window_ns or 0
    return replace(
        base,
        inputs=base.inputs[:2],
        quality=Quality(
            verdict="degraded",
            findings=(
                Finding("missing-ranks", "warning", "stages 2 and 3 are in no trace; the bubble is an interval"),
                Finding("truncated", "error", "ends within event 54321; step 3 is lost", "rank1_trace.json.gz"),
                Finding("truncated", "warning", "ends within event 51000; step 3 is lost", "rank0_trace.json.gz"),
            ),
            coverage=Coverage(
                kernels=2_400,
                launched=0.975,
                inside_ns=400 * MS,
                explained=1.0,
                messages=120,
                paired=0.8,
                ranks=(covered(0, launched=0.95, paired=1.0), covered(1, launched=1.0, paired=0.6)),
            ),
            numbers=(
                NumberVerdict(number="bubble", verdict="degraded", reasons=("missing-ranks",)),
                NumberVerdict(number="schedule", verdict="ok", reasons=()),
                NumberVerdict(number="causes", verdict="unusable", reasons=("missing-ranks", "no-step")),
                NumberVerdict(number="ranks", verdict="degraded", reasons=("missing-ranks",)),
            ),
        ),
        layout=replace(base.layout, missing_ranks=(2, 3), dp=None),
        schedule=replace(
            base.schedule,
            also=("gpipe",),
            confidence=0.93,
            runner_up=None,
            reconstruction="p2p",
            departures=(Departure(rank=1, position=5, expected="1B1", found="1F4"),),
        ),
        bubble=replace(
            base.bubble, measured=None, lower=0.221, upper=0.3504, span=None, gap=None, ratio_to_ideal=None, causes=()
        ),
        throughput=Throughput(step_ns=window + 6 * MS, microbatches_per_s=8e9 / (window + 6 * MS), useful=0.64),
        pipelines=(Pipeline(pipeline=0, ranks=(0, 1, 2, 3), bubble=None, window_ns=None),),
        stages=base.stages[:2],
        ranks=tuple(
            a_rank(rank, rank, window, (0.7129, 0, 0, 0.03, 0.24, 0.004), split=rank == 0) for rank in range(2)
        ),
        communication=(replace(base.communication[0], wait_ns=None, transfer_ns=None, bytes=None),),
        worst_bubbles=base.worst_bubbles[1:],
    )


def balance(**known) -> Imbalance:
    """What is known of the balance; the rest is not."""
    lists = dict.fromkeys(("stages", "stragglers", "notes"), ())
    return Imbalance(**{field.name: None for field in fields(Imbalance)} | lists | known)


def straggler(rank: int, slowdown: float) -> Straggler:
    """A rank that is slow in two steps of two."""
    return Straggler(
        rank=rank,
        ranks=(rank,),
        slowdown=slowdown,
        forward=slowdown,
        backward=slowdown,
        chance=0.00002,
        persistent=True,
        steps=(2, 3),
        evidence="58 ms against 52 ms",
    )


def imbalanced() -> Report:
    """Eight ranks, four stages, two replicas: stage 2 heavy, rank 5 slow."""
    base, window = one_f_one_b(), 90_000_000
    work = [40 * MS, 41 * MS, 58 * MS, 40 * MS]
    idle = [1 - part / window for part in work]
    return replace(
        base,
        inputs=tuple(an_input(rank) for rank in range(8)),
        layout=replace(
            base.layout,
            world_size=8,
            dp=2,
            stages=tuple(StageRanks(stage=stage, chunk=0, ranks=(2 * stage, 2 * stage + 1)) for stage in range(4)),
        ),
        bubble=replace(
            base.bubble,
            measured=0.5027,
            lower=0.5019,
            upper=0.5035,
            replay=0.46,
            gap=0.23,
            ratio_to_ideal=1.0109,
            span=0.4988,
            window_ns=window,
            causes=causes(
                window, structural=0.2727, imbalance=0.162, straggler=0.041, jitter=0.005, p2p=0.012, host=0.01
            ),
        ),
        pipelines=(
            Pipeline(pipeline=0, ranks=(0, 2, 4, 6), bubble=0.4711, window_ns=85 * MS),
            Pipeline(pipeline=1, ranks=(1, 3, 5, 7), bubble=0.5343, window_ns=95 * MS),
        ),
        stages=tuple(
            a_stage(
                stage,
                (2 * stage, 2 * stage + 1),
                work[stage],
                idle[stage],
                (stage * 8 * MS, 18 * MS, (3 - stage) * 8 * MS),
            )
            for stage in range(4)
        ),
        ranks=tuple(
            a_rank(
                rank,
                rank // 2,
                window,
                (
                    (1 - idle[rank // 2]) * 0.9 + (0.06 if rank == 5 else 0),
                    0.04,
                    0.02,
                    0.012,
                    idle[rank // 2] - 0.1,
                    0.01,
                ),
                pipeline=rank % 2,
            )
            for rank in range(8)
        ),
        communication=(
            *base.communication,
            Communication(
                group="dp",
                op="reduce_scatter",
                calls=12,
                total_ns=9 * MS,
                exposed_ns=2 * MS,
                wait_ns=4 * MS,
                transfer_ns=5 * MS,
                bytes=805_306_368,
                group_size=2,
                algorithm_bandwidth=1.61e11,
                bus_bandwidth=8.05e10,
            ),
            Communication(
                group="tp",
                op="all_reduce",
                calls=96,
                total_ns=4 * MS,
                exposed_ns=3 * MS,
                wait_ns=None,
                transfer_ns=None,
                bytes=None,
                group_size=None,
                algorithm_bandwidth=None,
                bus_bandwidth=None,
            ),
        ),
        links=(a_link(4, 6, 2.31, slow=True), *base.links),
        imbalance=balance(
            stage_ratio=1.296,
            slowest_stage=2,
            replica_ratio=1.12,
            stages=(StageLoad(stage=2, ratio=1.296, chance=1e-12),),
            stragglers=(straggler(5, 1.115),),
            data_length=DataLength(
                found=True,
                correlation=0.97,
                chance=3e-5,
                spread=0.081,
                persistent=False,
                count=1,
                slowest=(SlowMicrobatch(pipeline=0, step=3, microbatch=6, factor=1.42, evidence="p 2e-06"),),
            ),
            pauses=Pauses(
                count=2,
                share=0.0042,
                longest=(Pause(rank=1, step=2, action="0F3", ns=12 * MS, host=True),),
            ),
            slowdown=1.31,
            slowest_stage_share=0.93,
            slowest_rank_share=0.12,
        ),
        findings=(
            Proposal(
                code="stage-imbalance",
                title="Move layers away from stage 2",
                detail="It works 1.30 times the mean stage; with equal stages the replay is 14.2 ms shorter.",
                gain_ns=14_200_000,
                gain=0.148,
                formula="T2 - T1",
                limits="layers are whole",
                source="replay",
                change="layers=best",
            ),
        ),
    )


HOSTILE = "k[red]<script>alert(1)</script>|`x`\x1b[31m\n@octocat #1 [/bold] \u202egnp.exe \udcff"


def hostile_names() -> Report:
    """Every text that a file can choose tries to break out."""
    base = one_f_one_b()
    call = replace(base.communication[0], op=HOSTILE)
    return replace(
        base,
        inputs=(an_input(0, path=HOSTILE, device=HOSTILE), *base.inputs[1:]),
        quality=Quality(verdict="degraded", findings=(Finding("repaired", "warning", HOSTILE, HOSTILE),)),
        communication=(call, replace(call, op='=HYPERLINK("http://x")')),
        schedule=replace(
            base.schedule,
            evidence=(HOSTILE,),
            departures=(Departure(rank=0, position=1, expected=None, found=HOSTILE),),
        ),
        layout=replace(base.layout, source=HOSTILE),
        worst_bubbles=(replace(base.worst_bubbles[0], before=HOSTILE),),
        findings=(
            Proposal(
                code="x",
                title=HOSTILE,
                detail="- # 1. __init__ $x$",
                gain_ns=None,
                gain=None,
                formula=HOSTILE,
                limits=HOSTILE,
                source=HOSTILE,
                change=HOSTILE,
            ),
        ),
    )


SAMPLES = {
    "1f1b": one_f_one_b,
    "no-pipeline": no_pipeline,
    "missing-ranks": missing_ranks,
    "imbalanced": imbalanced,
    "hostile": hostile_names,
}


@pytest.fixture(params=sorted(SAMPLES))
def name(request) -> str:
    """The name of each sample in turn."""
    return request.param


@pytest.fixture
def report(name) -> Report:
    """Each sample in turn."""
    return SAMPLES[name]()


@pytest.fixture
def samples() -> dict[str, Report]:
    """All samples by name."""
    return {name: make() for name, make in SAMPLES.items()}
