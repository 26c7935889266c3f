"""What gates and comparisons take, explained: metrics, their spread, and what the clocks leave open."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["GATE", "WORDS"]

_SECTION = "metrics-and-their-spread"

GATE = (
    Entry(
        name="metric",
        summary="a number that a gate can ask for",
        text="Each is worked out for the whole run and for every used step by itself, so that its noise is known.",
        keys=("metrics[].value", "metrics[].steps"),
        also=("metrics",),
        formula="a number of the report that can be worked out for each used step by itself",
        unit="as its own page says; steps count those that the mean takes",
        example=Example(
            setting="the rule bubble:+2pp; the bubble is 33.1 %, and 29.2 % in the baseline",
            rows=(("change", "0.331 - 0.292", "3.9 points"),),
        ),
        reading="bubble, gap, imbalance, exposed, window, work, step_time, mfu and other rates; some of @stage=3.",
        pitfalls="Times depend on the machine: gate shares and ratios, and let times warn.",
        where="the JSON report; gates and comparisons",
        see=("metric-spread", "metric-error", "exposed-share", "rule"),
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

_PAGE = "docs/gate.md"

WORDS = (
    Entry(
        name="gate",
        summary="passes or fails a run, for a merge to wait on",
        text="`bubblescope gate` holds a run against rules, by limits or against a baseline, and ends with a verdict.",
        also=("pass", "fail", "inconclusive", "gate verdict"),
        reading=(
            "pass (exit code 0): no rule failed, and something was compared. fail (1): a rule of level error failed. "
            "inconclusive (4): none failed, and one could not be decided."
        ),
        pitfalls="Nothing else ends with 1: wrong usage is 2, an unreadable input 3.",
        remedy="inconclusive: record more steps, every rank, or a baseline of the same schedule and layout",
        see=("rule", "baseline", "preset", "metric-spread"),
        section="the-gate",
        document=_PAGE,
    ),
    Entry(
        name="rule",
        summary="says when a gate fails: `bubble > 18%`, `bubble:+2pp`",
        text="A metric and a limit, or a metric and by how much it may move from the baseline.",
        also=("rules", "limit", "level", "off", "change"),
        formula="METRIC[@PART=WHICH] OP VALUE; METRIC[@PART=WHICH]:CHANGE",
        reading="bubble@stage=3 is of one stage, @stage=any of each. + is a rise and - a fall, whichever is bad.",
        pitfalls="pp are points of a share; % is a part of the baseline's value.",
        see=("metric", "preset", "gate"),
        section="rules",
        document=_PAGE,
    ),
    Entry(
        name="baseline",
        summary="a run in a few kB, to be committed and compared with",
        text="Its numbers, how much its steps differ, and a fingerprint of what run it was.",
        also=("reference", "doubts", "recorded"),
        makers="`bubblescope baseline save traces/ -o bubble.json`",
        remedy="to accept a change: save it again with -f, and review the difference",
        pitfalls="One of another machine is noise for times; shares and ratios can be compared.",
        see=("fingerprint", "gate", "metric-spread"),
        section="the-file-of-a-baseline",
        document=_PAGE,
    ),
    Entry(
        name="fingerprint",
        summary="what a run was: schedule, degrees, micro-batches, GPUs",
        text="Two runs are compared only where these agree; every difference is shown.",
        also=("mismatch", "allow-mismatch"),
        effect=(
            "another schedule, layout or micro-batch count: refused, unless --allow-mismatch; another GPU or "
            "data-parallel degree: times only warn"
        ),
        see=("baseline", "gate"),
        section="what-can-be-compared",
        document=_PAGE,
    ),
    Entry(
        name="preset",
        summary="rules to start from: default, strict, smoke, none",
        text="With a baseline and no rule of one's own it is default; `config show --preset NAME` lists the rules.",
        also=("presets", "default", "strict", "smoke"),
        reading="default fails on bubble:+2pp, and warns on imbalance:+5% and step_time:+5%.",
        see=("rule", "gate"),
        section="presets",
        document=_PAGE,
    ),
)
