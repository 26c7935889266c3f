"""What-ifs explained: what a forecast tells, and how far to trust it."""

from __future__ import annotations

from bubblescope.report.change_pages import CHANGES
from bubblescope.report.entries import Entry, Example

__all__ = ["FORECASTS", "WHATIF"]

_DOCUMENT = "docs/whatif.md"
_SETTING = "a step of 753.1 ms, replayed in 752.4 ms; with twice the micro-batches it is forecast to take 1243.8 ms"
_RUN_KEYS = ("step_ns", "window_ns", "bubble", "span")
_RUNS = ("measured", "replayed")

FORECASTS = (
    Entry(
        name="forecast",
        summary="the measured run, replayed with one thing changed",
        text=(
            "Each --try is one forecast. run holds what the run would look like: step_ns, the whole step; window_ns, "
            "the pipeline window; bubble and span, as they are counted in the report. measured and replayed hold the "
            "same of the run as it was and of its replay."
        ),
        keys=tuple(f"forecasts[].run.{key}" for key in _RUN_KEYS),
        also=("what-if", "whatif"),
        hidden=(*(f"{run}.{key}" for run in _RUNS for key in _RUN_KEYS), *_RUNS, "same data"),
        unit="ns, mean over steps and pipelines; bubble and span are shares, fractions of 1 in JSON",
        example=Example(
            setting=_SETTING,
            rows=(("column same data", "1243.8 / 2", "621.9 ms"), ("saved of the replay", "752.4 - 621.9", "130.5 ms")),
        ),
        reading="Look at saves first, then at activations and weights: they tell whether it fits into memory.",
        pitfalls="A change is forecast by itself. Two that save 5% each need not save 10% together: try them as one.",
        where="whatif, the table Forecasts",
        see=("forecasts.gain", "replay-error", "assumptions", "replay"),
        section="what-is-printed",
        document=_DOCUMENT,
    ),
    Entry(
        name="replay-error",
        summary="by how much the replay of the unmodified run misses the measured one",
        text=(
            "Before anything is changed the run is replayed as it was. What the replay misses there, a forecast may "
            "miss too. Steps count and pipeline windows do, whichever is missed by more. steps: how many are replayed."
        ),
        keys=("error", "steps"),
        formula="|replayed - measured| / measured, mean over the steps, of the steps or the windows",
        unit="a share of the steps or the windows, a fraction of 1 in JSON",
        example=Example(
            setting="a step of 753.1 ms, replayed in 752.4 ms; its window of 690.1 ms in 684.0 ms",
            rows=(
                ("steps", "(753.1 - 752.4) / 753.1", "0.1%"),
                ("windows", "(690.1 - 684.0) / 690.1", "0.9%"),
                ("error", "max(0.1, 0.9) / 100", "0.9%"),
            ),
        ),
        reading="Below 1% is usual. Over 5% whatif refuses to forecast, unless --anyway is said.",
        pitfalls=(
            "A small error says that the replay is right for this order, and not that every assumption is, nor that "
            "the data are: see quality and trusted."
        ),
        remedy="See the warnings of analyze: missing ranks, unpaired messages, uncertain clocks.",
        where="whatif, the line Replay",
        see=("forecast", "trusted", "verdict", "causes.error", "residual"),
        section="the-replay-comes-first",
        document=_DOCUMENT,
    ),
    Entry(
        name="forecasts.gain",
        summary="the share of a step's time that a change would save, for the same data",
        text="What a step takes less than in the replay of the unmodified run; gain_ns is the same in time.",
        keys=("forecasts[].gain", "forecasts[].gain_ns"),
        also=("saves",),
        formula="gain = 1 - forecast step / (data x replayed step); gain_ns = gain x replayed step",
        unit="a fraction of 1 in JSON, and ns; negative where the change costs time; null where it is impossible",
        example=Example(
            setting=_SETTING,
            rows=(
                ("gain, for the same data", "1 - 1243.8 / (2 * 752.4)", "17.3%"),
                ("gain_ns", "752.4 - 1243.8 / 2", "130.5 ms"),
            ),
        ),
        reading="An upper bound: all that is not modelled costs time.",
        pitfalls="Gains do not add up. More data a step are another training: it may need more of them.",
        where="whatif, the columns saves and ms",
        see=("forecast", "assumptions", "removed", "alone"),
        section="what-is-printed",
        document=_DOCUMENT,
    ),
    Entry(
        name="forecasts.memory",
        summary="what the fullest rank would have to keep",
        text=(
            "activations: of how many micro-batches the fullest rank keeps them at once, a micro-batch of the measured "
            "run on a measured rank being 1. weights: copies of the weights, what a measured rank holds being 1."
        ),
        keys=("forecasts[].run.memory.activations", "forecasts[].run.memory.weights"),
        hidden=tuple(f"{run}.memory{key}" for run in _RUNS for key in ("", ".activations", ".weights")),
        unit="counts, that may be fractions; null where nobody knows",
        example=Example(
            setting="1f1b on 4 ranks; then with chunks of half the size, of which the first rank keeps 11",
            rows=(("1f1b, rank 0", "4 - 0", "4"), ("in measured micro-batches", "11 * 0.5", "5.5")),
        ),
        reading="Set it against the row as measured: 5.5 after 4 needs 1.4 times the room for activations.",
        pitfalls="Gradients, optimizer state and buffers are not in it, and no bytes are known.",
        where="whatif, the columns activations and weights",
        see=("forecast", "recompute=on|off", "microbatch=K"),
        section="memory",
        document=_DOCUMENT,
    ),
    Entry(
        name="assumptions",
        summary="what a forecast takes for granted",
        text=(
            "Sentences in plain words. On the page each stands once, under a number that the column assumes names; "
            "what all forecasts assume stands under all."
        ),
        keys=("forecasts[].assumptions",),
        also=("assumes",),
        unit="sentences",
        example=Example(
            setting="a transfer that the change makes slower, of which nothing is assumed",
            rows=(("8 messages, 1.5 ms each in place of 1", "8 * (1.5 - 1)", "4 ms"),),
        ),
        reading="Ask of each whether it holds in your run. One that does not makes the forecast a guess.",
        pitfalls="A change that is impossible is no forecast: its problem says why.",
        where="whatif, the table Assumptions",
        see=("forecast", "forecasts.gain", "replay-error"),
        section="how-far-forecasts-can-be-trusted",
        document=_DOCUMENT,
    ),
)

WHATIF = FORECASTS + CHANGES
