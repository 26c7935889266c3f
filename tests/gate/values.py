"""Gates written out by hand, one for each kind of answer: a run of 1f1b on 4 ranks with 8 micro-batches."""

from __future__ import annotations

import re
from dataclasses import replace

from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.gate import Check, Difference, Gate, Worst
from bubblescope.model.metrics import METRICS, Metric, Part
from bubblescope.model.report import Tool

__all__ = ["HOSTILE", "MS", "SAMPLES", "baseline", "check", "fingerprint", "gate", "metric"]

MS = 1_000_000
HOSTILE = (
    "k|`x`[red]<script>alert(1)</script>]]>\n::error file=a::text\r\n##[error]text %0A::warning::w\x1b[31m\x00"
    "'\"\\ \u202egnp.exe\u200f \udcff \ufffe @octocat #1 {{7*7}} ${{ github.token }} &amp; $x$ 50%, a: b"
)
"""What may stand in a path, in the name of a GPU or of a group, if somebody means harm or is careless."""

OLDER = "NVIDIA A100-SXM4-80GB"
TOOL = Tool(name="bubblescope", version="0.1.0")
FINGERPRINT = Fingerprint(
    schedule="1f1b",
    also=(),
    pp=4,
    tp=1,
    dp=1,
    cp=None,
    ep=None,
    virtual=1,
    microbatches=8,
    world_size=4,
    recorded=4,
    devices=("NVIDIA H100 80GB HBM3",),
    formats=("kineto",),
    reconstruction="labels",
    attribution="ladder",
    steps=5,
)


def fingerprint(**changes: object) -> Fingerprint:
    """What the run was, with changes."""
    return replace(FINGERPRINT, **changes)


def metric(name: str, value: float, spread: float | None = 0.0, **more: object) -> Metric:
    """A number over five steps."""
    return Metric(metric=name, value=value, spread=spread, **({"steps": 5} | more))


def part(name: str, by: Part, values: dict[str, float], spread: float = 0.0) -> tuple[Metric, ...]:
    """A number of each part."""
    return tuple(metric(name, value, spread, by=by, of=of) for of, value in values.items())


METRICS_OF_RUN = (
    metric("bubble", 0.407_612_34, 0.002_1, error=0.000_4),
    *part("bubble", "cause", {"structural": 0.2727, "imbalance": 0.109, "p2p": 0.0071, "residual": 0.018_812}, 0.001),
    *part("bubble", "stage", {"0": 0.4512, "1": 0.4421, "2": 0.4459, "3": 0.2912}, 0.002),
    metric("gap", 0.134_885_07, 0.002_1),
    metric("imbalance", 1.331, 0.004),
    *part("imbalance", "stage", {"0": 0.888, "1": 0.889, "2": 0.892, "3": 1.331}, 0.003),
    metric("exposed", 0.2811, 0.003),
    *part("exposed", "group", {"pp": 0.2811}, 0.003),
    *part("work", "stage", {"0": 489.1 * MS, "1": 489.6 * MS, "2": 491.2 * MS, "3": 733.0 * MS}, 0.8 * MS),
    metric("step_time", 803_212_345.6, 1.9 * MS),
    metric("microbatches_per_s", 9.960_006, 0.023),
)


def baseline(**changes: object) -> Baseline:
    """The run whose last stage is heavy, with changes."""
    return replace(Baseline(tool=TOOL, fingerprint=FINGERPRINT, metrics=METRICS_OF_RUN), **changes)


def check(rule: str, **changes: object) -> Check:
    """A rule of the preset, about a change of the whole job, that passed."""
    name = re.split("[@: ]", rule, maxsplit=1)[0]
    made = Check(
        rule=rule,
        level="error",
        origin="preset default",
        outcome="pass",
        metric=name,
        unit=METRICS[name].unit,
        relative="%" in rule and ":" in rule,
        against="baseline" if ":" in rule else "limit",
        side="above",
        limit=0.02,
        found=None,
    )
    return replace(made, **changes)


def gate(*checks: Check, **changes: object) -> Gate:
    """What a gate found that compared a run with its baseline."""
    made = Gate(
        tool=TOOL,
        verdict="pass",
        checks=checks,
        inputs=("traces/",),
        baseline="bubblescope.baseline.json",
        run=baseline(),
        reference=FINGERPRINT,
        look="bubblescope compare bubblescope.baseline.json traces/",
        accept=("bubblescope baseline save traces/ -o bubblescope.baseline.json -f --reason 'why this is fine'",),
    )
    return replace(made, **changes)


BUBBLE = check("bubble:+2pp", limit=0.02, found=0.2942, baseline=0.2916, change=0.0026, noise=0.0038, chance=0.08)
IMBALANCE = check(
    "imbalance:+5%", level="warn", limit=0.05, found=1.004, baseline=1.001, change=0.003, noise=0.006, chance=0.2
)
STEP_TIME = check(
    "step_time:+5%",
    level="warn",
    limit=0.05,
    found=693.1 * MS,
    baseline=691.4 * MS,
    change=0.00246,
    noise=0.0055,
    chance=0.14,
)
FAILED = replace(BUBBLE, outcome="fail", found=0.4076, change=0.116, chance=3e-12)
SLOWER = replace(STEP_TIME, outcome="fail", found=803.2 * MS, change=0.1617, chance=2e-11)
WORST = Worst(metric="bubble", by="stage", of="0", ranks=(0,), value=0.4512, baseline=0.2908)
CALM = Worst(metric="bubble", by="stage", of="1", ranks=(1,), value=0.2951, baseline=0.2921)


def passed() -> Gate:
    """The default rules, and all of them hold."""
    return gate(BUBBLE, IMBALANCE, STEP_TIME, worst=(CALM,))


def failed() -> Gate:
    """The bubble grew by more than it may, and so did the step, of which the gate only warns."""
    return gate(FAILED, IMBALANCE, SLOWER, verdict="fail", worst=(WORST,))


def softened() -> Gate:
    """The GPUs differ: times are told and not judged, and the shares hold."""
    reason = "the GPUs differ, so that it only warns"
    return gate(
        BUBBLE,
        IMBALANCE,
        replace(SLOWER, softened=True, reason=reason),
        worst=(CALM,),
        differences=(
            Difference(what="GPU", baseline=OLDER, found="NVIDIA H100 80GB HBM3", effect="wall-clock"),
            Difference(what="format of the traces", baseline="nsys", found="kineto", effect="note"),
        ),
        reference=fingerprint(devices=(OLDER,), formats=("nsys",)),
    )


def undecided(rule: str, reason: str, **changes: object) -> Check:
    """A rule that could not be applied, or not surely."""
    return check(rule, **({"outcome": "inconclusive", "reason": reason} | changes))


def inconclusive() -> Gate:
    """Another schedule, and so nothing was compared."""
    reason = "the runs cannot be compared: schedule and micro-batches differ"
    rules = (("bubble:+2pp", "error", 0.02), ("imbalance:+5%", "warn", 0.05), ("step_time:+5%", "warn", 0.05))
    found = {each.metric: each.value for each in METRICS_OF_RUN if each.by is None}
    return gate(
        *(
            undecided(rule, reason, level=level, limit=limit, found=found[rule.split(":")[0]])
            for rule, level, limit in rules
        ),
        verdict="inconclusive",
        differences=(
            Difference(what="schedule", baseline="interleaved-1f1b", found="1f1b", effect="refused"),
            Difference(what="micro-batches", baseline="16", found="8", effect="refused"),
        ),
        warnings=("bubble is degraded: clocks are known to 1.2 ms only",),
        reference=fingerprint(schedule="interleaved-1f1b", microbatches=16),
        look="bubblescope analyze traces/",
    )


def too_few_steps() -> Gate:
    """One step tells no noise, and the change is too near to the limit."""
    reason = "1 step tells no noise; at least 2 are needed, in the run and in its baseline"
    return gate(
        undecided("bubble:+2pp", reason, limit=0.02, found=0.3117, baseline=0.2916, change=0.0201),
        undecided(
            "bubble@cause=imbalance:+1pp",
            reason,
            by="cause",
            of="imbalance",
            limit=0.01,
            found=0.02,
            baseline=0.005,
            change=0.015,
            level="warn",
        ),
        replace(STEP_TIME, outcome="pass"),
        verdict="inconclusive",
        run=baseline(fingerprint=fingerprint(steps=1)),
        worst=(CALM,),
    )


def missing_baseline() -> Gate:
    """The baseline is not there; the limit is judged nevertheless."""
    reason = "the baseline is missing"
    return gate(
        undecided("bubble:+2pp", reason, limit=0.02, found=0.2942),
        check("bubble > 45%", origin="--fail-on", limit=0.45, found=0.2942),
        undecided("imbalance:+5%", reason, level="warn", limit=0.05, found=1.004),
        verdict="inconclusive",
        baseline_missing=True,
        reference=None,
        look="bubblescope analyze traces/",
        accept=("bubblescope baseline save traces/ -o bubblescope.baseline.json",),
    )


def limits_only() -> Gate:
    """No baseline was asked for: values are held against limits."""
    return gate(
        check("bubble > 18%", origin="--fail-on", limit=0.18, found=0.1804, outcome="fail"),
        check("bubble@stage=3 > 25%", origin="--fail-on", by="stage", of="3", limit=0.25, found=0.2912, outcome="fail"),
        check("imbalance > 1.5", origin="pyproject.toml", limit=1.5, found=1.331),
        check("step_time > 900ms", origin="pyproject.toml", level="warn", limit=900 * MS, found=803.2 * MS),
        check("microbatches_per_s < 9", origin="--warn-on", level="warn", side="below", limit=9.0, found=9.96),
        verdict="fail",
        baseline=None,
        reference=None,
        worst=(Worst(metric="bubble", by="stage", of="0", ranks=(0, 1, 2, 3), value=0.2912, baseline=None),),
        look="bubblescope analyze traces/ --steps 3:5",
        accept=(),
    )


def off() -> Gate:
    """One rule is off, one may lack its baseline."""
    return gate(
        BUBBLE,
        check("step_time:+5%", level="off", origin="pyproject.toml", limit=0.05, outcome="skipped"),
        check("mfu:-5%", level="warn", side="below", limit=-0.05, outcome="skipped", reason="the baseline lacks it"),
        worst=(CALM,),
    )


def empty() -> Gate:
    """No rule at all."""
    return gate(verdict="inconclusive", baseline=None, reference=None, look="", accept=())


def hostile() -> Gate:
    """Paths, GPUs, origins and groups with names that mean harm."""
    what = Difference(what=HOSTILE, baseline=HOSTILE, found=HOSTILE, effect="wall-clock")
    metrics = (*METRICS_OF_RUN, metric("exposed", 0.2, None, by="group", of=HOSTILE, steps=1))
    run = baseline(
        fingerprint=fingerprint(schedule=HOSTILE, devices=(HOSTILE,)),
        metrics=metrics,
        reason=HOSTILE,
        doubts={"bubble": (HOSTILE,)},
    )
    bad = {"origin": HOSTILE, "reason": HOSTILE, "by": "group", "of": HOSTILE}
    return gate(
        check(f"exposed@group={HOSTILE}:+2pp", outcome="fail", found=0.4, baseline=0.2, change=0.2, noise=0.01, **bad),
        check("exposed:+1pp", outcome="inconclusive", found=0.4, **bad),
        check("step_time:+5%", outcome="fail", level="warn", softened=True, found=1e9, baseline=5e8, change=1.0, **bad),
        check("imbalance > 2", outcome="skipped", level="off", limit=2.0, **bad),
        verdict="fail",
        inputs=(HOSTILE,),
        baseline=HOSTILE,
        differences=(what, replace(what, effect="note")),
        warnings=(HOSTILE,),
        worst=(Worst(metric="exposed", by="group", of=HOSTILE, ranks=(0, 1), value=0.4, baseline=0.2),),
        look=f"bubblescope compare {HOSTILE}",
        accept=(f"bubblescope baseline save {HOSTILE}",),
        run=run,
        reference=run.fingerprint,
    )


SAMPLES = {
    "passed": passed,
    "failed": failed,
    "softened": softened,
    "inconclusive": inconclusive,
    "too-few-steps": too_few_steps,
    "missing-baseline": missing_baseline,
    "limits-only": limits_only,
    "off": off,
    "empty": empty,
    "hostile": hostile,
}
