"""Baselines written out by hand, and comparisons of them, one for each kind of answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bubblescope.gate.compare import compare
from bubblescope.model.baseline import Baseline
from bubblescope.model.comparison import Comparison
from bubblescope.model.metrics import Metric
from bubblescope.model.report import Tool
from tests.gate.values import FINGERPRINT
from tests.whatifs import HOSTILE

__all__ = ["CAUSES", "SAMPLES", "causing", "lacking", "marked", "metric", "run", "sample", "shifted"]

MS = 1_000_000
CAUSES = {
    "structural": 0.2727,
    "imbalance": 0.0,
    "straggler": 0.0,
    "jitter": 0.004,
    "p2p": 0.007,
    "host": 0.008,
    "residual": 0.0003,
}
TOOL = Tool(name="bubblescope", version="0.0.0")


def metric(name: str, value: float, spread: float | None, part: tuple[str, str] = ("", ""), **more: object) -> Metric:
    """A number of the whole job, or of one part of it."""
    by, of = part
    return Metric(metric=name, by=by or None, of=of or None, value=value, spread=spread, steps=5, **more)  # type: ignore[arg-type]


def run(causes: Mapping[str, float] = CAUSES, stages: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> Baseline:
    """A run of 1f1b on 4 ranks with 8 micro-batches and 5 steps, whose causes add up to its bubble."""
    bubble, slowest, mean = sum(causes.values()), max(stages), sum(stages) / len(stages)
    step = 690 * MS * slowest
    return Baseline(
        tool=TOOL,
        fingerprint=replace(
            FINGERPRINT,
            pp=len(stages),
            world_size=len(stages),
            recorded=len(stages),
            devices=("NVIDIA H100",),
        ),
        metrics=(
            metric("bubble", bubble, 0.001),
            metric("gap", bubble - causes["structural"], 0.001),
            metric("imbalance", slowest / mean, 0.002),
            metric("exposed", bubble - 0.01, 0.002),
            metric("step_time", step, 2.0 * MS),
            metric("microbatches_per_s", 8e9 / step, 0.05),
            *(
                metric("bubble", value, 1e-17 if name == "structural" else 0.0008, ("cause", name))
                for name, value in causes.items()
            ),
            *(
                metric("bubble", 1 - (1 - bubble) * work / mean, 0.001, ("stage", str(k)))
                for k, work in enumerate(stages)
            ),
            *(metric("work", 489 * MS * work, 0.5 * MS, ("stage", str(k))) for k, work in enumerate(stages)),
            metric("exposed", bubble - 0.01, 0.002, ("group", "pp")),
        ),
    )


def causing(**points: float) -> Baseline:
    """The same run with some causes of other sizes."""
    return run(CAUSES | points)


def shifted(base: Baseline, by: float) -> Baseline:
    """The same with every number times 1 + `by`."""
    return replace(base, metrics=tuple(replace(each, value=each.value * (1 + by)) for each in base.metrics))


def marked(base: Baseline, **changes: object) -> Baseline:
    """The same with another fingerprint; with other `steps` the numbers are means of as many."""
    made = replace(base, fingerprint=replace(base.fingerprint, **changes))  # type: ignore[arg-type]
    steps = made.fingerprint.steps
    spread = {"spread": None} if steps < 2 else {}
    return replace(made, metrics=tuple(replace(each, steps=steps, **spread) for each in made.metrics))  # type: ignore[arg-type]


def lacking(base: Baseline, *names: str) -> Baseline:
    """The same without some numbers of whole job and parts."""
    return replace(base, metrics=tuple(each for each in base.metrics if each.metric not in names))


def heavy() -> Baseline:
    """The same run with a heavy last stage."""
    return run(CAUSES | {"imbalance": 0.1113, "p2p": 0.005}, (1.0, 1.0, 1.0, 1.5))


def other() -> Baseline:
    """Another schedule with other sizes on other machines."""
    made = run(CAUSES | {"structural": 0.1579, "jitter": 0.007})
    made = marked(made, schedule="interleaved-1f1b", virtual=2, microbatches=16, devices=("NVIDIA A100",))
    group = metric("exposed", 0.02, 0.001, ("group", "dp"))
    return replace(shifted(made, 0.0), metrics=(*made.metrics, group))


SAMPLES = {
    "uneven": lambda: compare(run(), heavy(), ("before/", "after/")),
    "better": lambda: compare(heavy(), replace(run(), reason="layers moved"), ("base.json", "after/")),
    "same": lambda: compare(run(), shifted(run(), 1e-4), ("before/", "after/")),
    "hidden": lambda: compare(run(), causing(p2p=0.027, host=-0.0119), ("before/", "after/")),
    "many": lambda: compare(run(), causing(jitter=0.014, p2p=0.016, host=0.017), ("before/", "after/")),
    "against": lambda: compare(run(), causing(jitter=0.054, host=-0.02), ("before/", "after/")),
    "schedule": lambda: compare(run(), other(), ("before/", "after/")),
    "one-step": lambda: compare(run(), marked(heavy(), steps=1), ("before/", "after/")),
    "no-pipeline": lambda: compare(_flat(run()), _flat(heavy()), ("before/", "after/")),
    "doubtful": lambda: compare(
        replace(run(), doubts={"bubble": ("lost-events",), "causes": ("lost-events",), "ranks": ("a",)}),
        marked(heavy(), attribution="shapley"),
        ("before/", "after/"),
    ),
    "unknown": lambda: compare(run(), lacking(heavy(), "bubble", "gap"), ("before/", "after/")),
    "hostile": lambda: compare(
        replace(marked(run(), devices=(HOSTILE,)), reason=HOSTILE),
        marked(heavy(), schedule=HOSTILE, devices=(f"{HOSTILE}2",)),
        (HOSTILE, f"::error::{HOSTILE}"),
    ),
}


def _flat(base: Baseline) -> Baseline:
    """The run without its pipeline."""
    kept = [each for each in base.metrics if each.metric in {"exposed", "step_time"} and each.by != "stage"]
    return replace(marked(base, schedule="none", pp=1, microbatches=None), metrics=tuple(kept))


def sample(name: str) -> Comparison:
    """The comparison of that name."""
    return SAMPLES[name]()
