"""What gates and comparisons take, explained: metrics, their spread, and what the clocks leave open."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["GATE"]

_SECTION = "metrics-and-their-spread"

GATE = (
    Entry(
        name="metric",
        summary="a number that a gate can ask for",
        text="Each is worked out for the whole run and for every used step by itself, so that its noise is known.",
        keys=("metrics[].value", "metrics[].steps"),
        also=("metrics", "gate", "rule", "rules"),
        formula="its value is that of the report; its spread is the standard deviation of the values of the steps",
        unit="as its own page says; steps count those that the mean takes",
        example=Example(
            setting="the rule bubble:+2pp; the bubble is 33.1 %, and 29.2 % in the baseline",
            rows=(("change", "0.331 - 0.292", "3.9 points"),),
        ),
        reading="METRIC > VALUE is a limit, METRIC:+CHANGE is against a baseline, METRIC@stage=3 is of one part.",
        pitfalls="Times depend on the machine: gate shares and ratios, and let times warn.",
        where="the JSON report; gates and comparisons",
        see=("metric-spread", "metric-error", "exposed-share"),
        section=_SECTION,
    ),
    Entry(
        name="metric-spread",
        summary="how much a metric differs from step to step",
        text="The standard deviation of its values in the used steps. It decides whether a change is more than noise.",
        keys=("metrics[].spread",),
        also=("noise", "significance"),
        formula="sqrt(s1^2 / n1 + s2^2 / n2); t(0.01) times e",
        unit="that of the metric; null with fewer than two steps",
        example=Example(
            setting="two runs of 5 steps, spread 0.5 points in both; t(0.01) is 2.90 with 8 degrees of freedom",
            rows=(("noise", "2.90 * (0.5 * 0.5 / 5 + 0.5 * 0.5 / 5) ** 0.5", "0.92"),),
        ),
        reading="A change below the noise may be none. More steps make the noise smaller, by the root of their number.",
        pitfalls="It knows nothing of what differs between runs alone, as the place of a job on a cluster.",
        where="gates and comparisons",
        see=("metric", "spread"),
        section="when-a-change-is-more-than-noise",
        source="Welch, Biometrika 34 (1947)",
    ),
    Entry(
        name="metric-error",
        summary="by how much the clocks may be wrong about a metric",
        text="Where a window begins and ends on two clocks, their error stays, however many steps there are.",
        keys=("metrics[].error",),
        formula="the larger of upper - measured and measured - lower",
        unit="that of the metric; 0 where no two clocks are compared",
        example=Example(setting="a bubble between 28.4 and 29.4 %", rows=(("error", "(0.294 - 0.284) / 2", "0.005"),)),
        reading="A gate adds it to the noise, once for each run.",
        pitfalls="It is the same in every step: recording more of them does not help, messages that tie clocks do.",
        where="gates and comparisons",
        see=("metric-spread",),
        section=_SECTION,
    ),
    Entry(
        name="exposed-share",
        summary="the part of the step in which a rank does nothing but communicate",
        text="A call runs and no compute does, so the rank moves bytes or waits for somebody; instants count once.",
        hidden=("metrics.exposed",),
        formula="a call of the group runs and no compute does; mean over the ranks, over the step time",
        unit="share of the step; of one group with @group=",
        example=Example(
            setting="of a step of 691 ms, 193 ms of sends and receives with no compute beside them",
            rows=(("exposed@group=pp", "193 / 691", "27.9%"),),
        ),
        reading="Of the pipeline's group it is mostly its bubble; of the others it is what overlap does not hide.",
        pitfalls="Groups overlap: theirs may add up to more than that of all calls.",
        where="gates and comparisons",
        see=("exposed", "metric"),
        section=_SECTION,
    ),
)
