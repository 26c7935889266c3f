"""What-ifs written out by hand, one for each kind of answer: a run of 1f1b on 4 ranks with 8 micro-batches."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.model.report import Quality, Tool
from bubblescope.model.trace import Finding
from bubblescope.model.whatif import Forecast, Memory, Run, WhatIf

MS = 1_000_000
HOSTILE = "k[red]<script>alert(1)</script>|`x`\x1b[31m\n@octocat #1 [/bold] \u202egnp.exe \udcff"

DURATIONS = "every action takes as long as measured"
SPLIT = "the weight gradient is half of a backward"
CHUNKS = "a stage is cut into chunks of equal work"
OPTIMIZER = "gradients and optimizer take as long as measured"
SIZE = "the time of an action grows with its size, but for a fixed part of 0.1 ms"

MEASURED = Run(
    schedule="1f1b",
    pp=4,
    tp=1,
    virtual=1,
    microbatches=8,
    step_ns=753_100_000,
    window_ns=690_100_000,
    bubble=0.2916,
    span=0.2916,
    memory=Memory(activations=4.0, weights=1.0),
)
REPLAYED = replace(MEASURED, step_ns=752_400_000, window_ns=689_400_000, bubble=0.2909, span=0.2909)


def forecast(change: str, title: str, step_ms: float, data: float, assumptions: tuple[str, ...], **more) -> Forecast:
    """A forecast whose gain is what its step saves of the replay's, for the same data."""
    step = round(step_ms * MS)
    gain = 1 - step / data / REPLAYED.step_ns
    window = step - 63 * MS
    run = replace(REPLAYED, step_ns=step, window_ns=window, bubble=1 - data * 488.9 * MS / window, **more)
    return Forecast(
        change=change,
        title=title,
        run=run,
        gain=gain,
        gain_ns=round(gain * REPLAYED.step_ns),
        assumptions=assumptions,
    )


ZERO_BUBBLE = forecast("schedule=zb-h1", "zb-h1", 671.2, 1, (DURATIONS, SPLIT, OPTIMIZER), schedule="zb-h1")
MORE = forecast(
    "m=16",
    "m = 16",
    1243.8,
    2,
    (DURATIONS, OPTIMIZER),
    microbatches=16,
)
INTERLEAVED = forecast(
    "schedule=interleaved-1f1b,v=2",
    "interleaved-1f1b, 2 stages a rank",
    660.3,
    1,
    (DURATIONS, CHUNKS, OPTIMIZER),
    schedule="interleaved-1f1b",
    virtual=2,
    memory=Memory(activations=5.5, weights=1.0),
)
SMALLER = forecast(
    "microbatch=0.5", "micro-batches 0.5 times as large, m = 16", 700.0, 1, (SIZE, OPTIMIZER), microbatches=16
)
CHIMERA = forecast(
    "schedule=chimera",
    "chimera",
    790.0,
    1,
    (DURATIONS, OPTIMIZER),
    schedule="chimera",
    memory=Memory(activations=4.0, weights=2.0),
)
EVEN = forecast("even", "every action as long as the mean of its kind", 752.1, 1, (OPTIMIZER,))
IMPOSSIBLE = Forecast(
    change="schedule=chimera,m=7",
    title="",
    run=None,
    gain=None,
    gain_ns=None,
    assumptions=(DURATIONS,),
    problem="chimera needs p and m even",
)


SOUND = Quality(verdict="ok", findings=(Finding(code="exported", severity="info", message="r0.nsys-rep was exported"),))
CLOCKS = "nothing that was recorded ties the clocks of the hosts together"
UNSURE = Quality(
    verdict="degraded", findings=(*SOUND.findings, Finding(code="clock-uncertain", severity="warning", message=CLOCKS))
)


def whatif(*forecasts: Forecast, replayed: Run = REPLAYED) -> WhatIf:
    """Forecasts of the run."""
    return WhatIf(
        tool=Tool(name="bubblescope", version="0.1.0"),
        quality=SOUND,
        trusted=True,
        measured=MEASURED,
        replayed=replayed,
        error=abs(replayed.step_ns / MEASURED.step_ns - 1),
        steps=2,
        forecasts=forecasts,
    )


def usual() -> WhatIf:
    """Gains, a loss, other data, other weights, and what cannot be."""
    return whatif(ZERO_BUBBLE, MORE, INTERLEAVED, CHIMERA, EVEN, IMPOSSIBLE)


def alone() -> WhatIf:
    """One change that helps."""
    return whatif(INTERLEAVED)


def far_off() -> WhatIf:
    """A run that the replay does not meet, and memory that nobody knows."""
    untold = replace(INTERLEAVED, run=replace(INTERLEAVED.run, memory=None))
    found = whatif(untold, ZERO_BUBBLE, replayed=replace(REPLAYED, step_ns=690_000_000))
    measured, replayed = (replace(run, memory=None, tp=None) for run in (found.measured, found.replayed))
    return replace(found, measured=measured, replayed=replayed)


def degraded() -> WhatIf:
    """A run whose data contradict themselves."""
    return replace(whatif(INTERLEAVED), quality=UNSURE, trusted=False)


def hostile() -> WhatIf:
    """Every text that could come from a file tries to break out."""
    bad = replace(ZERO_BUBBLE, title=HOSTILE, assumptions=(HOSTILE, "=HYPERLINK(1)"))
    found = whatif(bad, replace(MORE, title="=1+1"), replace(IMPOSSIBLE, problem=HOSTILE))
    said = Finding(code="skipped", severity="warning", input=HOSTILE, message=HOSTILE)
    return replace(found, quality=replace(SOUND, findings=(said,)))


SAMPLES = {"usual": usual, "alone": alone, "far-off": far_off, "degraded": degraded, "hostile": hostile}
