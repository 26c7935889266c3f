"""The bubble explained: what was measured, what theory owes, and how the two are set against each other."""

from __future__ import annotations

from bubblescope.report.entries import RUN, Entry, Example

__all__ = ["BUBBLE"]

_MEGATRON = "Megatron-LM, arXiv 2104.04473, section 2.2"
_SHARE = "share of the pipeline window, a fraction of 1 in JSON"
_UNSEEN = "1f1b on 4 ranks, rank 2 not recorded; the others work 240, 240 and 288 ms, their span is 391 ms"

BUBBLE = (
    Entry(
        name="bubble",
        summary="the share of the pipeline's time in which its ranks stand idle",
        text=(
            "Of every 100 ms that the pipeline needs for a step, so many does a rank on average neither compute nor "
            "take part in a collective of its own stage. Waiting in a receive is idle time, although a kernel spins."
        ),
        keys=("bubble.measured", "pipelines[].bubble", "steps[].bubble"),
        also=("measured", "D1", "bubble fraction"),
        formula="1 - mean over ranks of useful / window",
        unit=f"{_SHARE}; the mean over pipelines and used steps",
        example=Example(
            setting=RUN,
            rows=(
                ("useful, rank 0 to 2", "8 * (10 + 20)", "240 ms"),
                ("useful, rank 3", "8 * (12 + 24)", "288 ms"),
                ("mean useful", "(3 * 240 + 288) / 4", "252 ms"),
                ("bubble", "1 - 252 / 391", "35.5%"),
            ),
        ),
        reading=(
            "Set it against formula: so much the schedule costs even when all goes well, and only the rest, gap, is "
            "the run's own. A run of the same work without bubbles would take 1 - bubble of the time."
        ),
        pitfalls=(
            "Papers call five numbers bubble. Megatron-LM and Llama 3 mean ratio_to_ideal, the Zero Bubble paper "
            "means span. General tools count a receive that spins as busy, and show far less."
        ),
        where="the first sentence; the row measured of the causes; pipelines and steps apart in JSON",
        see=("formula", "gap", "ratio_to_ideal", "span", "window", "useful", "ranks.bubble"),
        section="the-bubble",
        source="GPipe, arXiv 1811.06965, section 2.3; GLM-130B, arXiv 2210.02414, appendix B.4",
    ),
    Entry(
        name="lower",
        summary="the least that the bubble can be, where something was not recorded",
        text=(
            "Where stages were not recorded the bubble is no number but an interval: an unseen stage may work between "
            "0.9 times the lightest and 1.1 times the heaviest one seen. lower takes the unseen stages as heavy."
        ),
        keys=("bubble.lower",),
        formula="1 - (sum of seen useful + u min(1.1 max seen, span)) / (p span)",
        unit=_SHARE,
        example=Example(
            setting=_UNSEEN,
            rows=(
                ("the unseen rank works", "min(1.1 * 288, 391)", "316.8 ms"),
                ("lower", "1 - (240 + 240 + 288 + 316.8) / (4 * 391)", "30.6%"),
            ),
        ),
        reading="Equal to measured where every stage was seen, and one rank's clock or exact clocks made the window.",
        pitfalls="It is a bound under an assumption, which is printed with it, and no standard error.",
        remedy="Add the traces of the ranks that the first sentence names.",
        see=("upper", "bubble", "missing-ranks", "clock.error"),
        section="not-every-rank-was-recorded",
    ),
    Entry(
        name="upper",
        summary="the most that the bubble can be, where something was not recorded",
        text=(
            "The other end of the interval: the unseen stages as light as is assumed, in a window as long as the "
            "steps of the ranks that were seen allow. Where a rank of the first stage was seen, its window is known; "
            "where no rank tells how long the step is, the window may be of any length, and upper is 100%."
        ),
        keys=("bubble.upper",),
        formula="1 - (sum of seen useful + u 0.9 min seen) / (p longest)",
        unit=_SHARE,
        example=Example(
            setting=f"{_UNSEEN}, their longest step 395 ms",
            rows=(
                ("the unseen rank works", "0.9 * 240", "216 ms"),
                ("upper", "1 - (240 + 240 + 288 + 216) / (4 * 395)", "37.7%"),
            ),
        ),
        reading="Equal to measured where every stage was seen, and one rank's clock or exact clocks made the window.",
        pitfalls="With all stages seen the two ends differ only by what the clocks may be off.",
        remedy="Add the traces of the ranks that the first sentence names.",
        see=("lower", "bubble", "missing-ranks", "clock.error"),
        section="not-every-rank-was-recorded",
    ),
    Entry(
        name="spread",
        summary="how much the bubble varies from step to step",
        text="Small where all steps are alike. What is smaller than the spread may be chance.",
        keys=("bubble.spread",),
        formula="the standard deviation (n - 1) of the bubble over the used steps",
        unit="share of the pipeline window; the summary shows points",
        example=Example(
            setting="two used steps with bubbles of 30 % and 32 %",
            rows=(("spread", "((0.30 - 0.31) ** 2 + (0.32 - 0.31) ** 2) ** 0.5", "1.4 points"),),
        ),
        reading="The error of the mean over n steps is about spread / sqrt(n), if the steps have no trend.",
        pitfalls="Null with fewer than two used steps. The first step often holds warm-up, and is left out if it can.",
        where="Steps",
        see=("bubble", "used", "causes.error"),
        section="which-steps-count",
    ),
    Entry(
        name="by_microbatches",
        summary="the bubble and the theory of each size of steps, where steps differ in their micro-batches",
        text=(
            "A batch that grows in the run has steps of several sizes, and more micro-batches a step leave a smaller "
            "bubble. Each size of which there are two steps is measured by itself; all other numbers are of the "
            "commonest size, of the larger where two are as common."
        ),
        keys=(
            "bubble.by_microbatches[].microbatches",
            "bubble.by_microbatches[].steps[]",
            "bubble.by_microbatches[].measured",
            "bubble.by_microbatches[].formula",
            "bubble.by_microbatches[].formula_source",
            "bubble.by_microbatches[].replay",
        ),
        also=("batch ramp",),
        hidden=("bubble.by_microbatches",),
        formula="each size of which there are two steps has its own bubble and theory",
        unit=_SHARE,
        example=Example(
            setting="1f1b with 2 stages: 3 steps of 4 micro-batches, then 5 of 8",
            rows=(("of 4", "1 / (4 + 1)", "20.0%"), ("of 8, which is measured", "1 / (8 + 1)", "11.1%")),
        ),
        reading="Compare runs by steps of one size: --microbatches chooses it.",
        pitfalls=(
            "Empty where all steps have as many micro-batches. The first step of all is left out, as ever, so that of "
            "two steps of its size one may be all that was measured: steps says which."
        ),
        where="Step sizes",
        see=("bubble", "formula", "microbatches", "odd-steps"),
        section="which-steps-count",
    ),
    Entry(
        name="formula",
        summary="what the schedule owes: its bubble with equal stages and free transfers",
        text=(
            "No schedule but some on paper keeps all ranks busy from the first moment to the last: a pipeline fills "
            "and drains. This is what that costs, for the p, m, v and mean durations found."
        ),
        keys=("bubble.formula",),
        also=("theory",),
        formula="1 - T0 / T1",
        unit=_SHARE,
        example=Example(
            setting=RUN,
            rows=(
                ("closed form of 1f1b", "(4 - 1) / (8 + 4 - 1)", "27.3%"),
                ("T0, mean useful time", "(3 * 240 + 288) / 4", "252 ms"),
                ("T1, equal stages", "(8 + 4 - 1) * 252 / 8", "346.5 ms"),
                ("formula", "1 - 252 / 346.5", "27.3%"),
            ),
        ),
        reading=(
            "formula_source is closed-form where an exact one is known, else simulated: then the detected order is "
            "replayed with every action as long as the mean of its kind. To lower it, change the schedule: more "
            "micro-batches, more chunks a rank, split backwards."
        ),
        pitfalls="Null if the schedule is unknown. The paper's figure may be another number, see ratio_to_ideal.",
        where="Theory, and the first sentence",
        see=("structural", "replay", "gap", "1f1b", "zb-h1"),
        section="theory",
        source=f"each schedule's own, bubblescope explain NAME has it; for 1f1b {_MEGATRON}",
    ),
    Entry(
        name="replay",
        summary="the bubble of the recovered order with the measured durations and free transfers",
        text=(
            "The run is played again on paper: every action as long as it was, in the order in which it ran, but no "
            "message takes time and no host is late. It holds what uneven stages and micro-batches cost."
        ),
        keys=("bubble.replay",),
        formula="1 - mean useful / length of the replay",
        unit="share of the length of the replay",
        example=Example(
            setting=RUN,
            rows=(
                ("length of the replay", "3 * (10 + 20) + 8 * (12 + 24)", "378 ms"),
                ("replay", "1 - 252 / 378", "33.3%"),
            ),
        ),
        reading=(
            "replay - formula is the price of uneven actions, measured - replay that of transfers and of the host. "
            "The causes split both further."
        ),
        pitfalls="More than measured cannot be: then actions or ranks are wrongly told apart (contradiction).",
        where="Theory",
        see=("formula", "gap", "imbalance", "jitter", "contradiction"),
        section="theory",
        source="ByteDance, arXiv 2505.05713, section 3",
    ),
    Entry(
        name="gap",
        summary="measured - formula, what the run loses beyond what its schedule owes",
        text="The part of the bubble that another schedule would not mend, but better balance, network or host would.",
        keys=("bubble.gap",),
        formula="measured - formula",
        unit="points of the pipeline window (a difference of two shares)",
        example=Example(
            setting=RUN,
            rows=(
                ("measured", "139 / 391", "35.5%"),
                ("formula", "3 / 11", "27.3%"),
                ("gap", "139 / 391 - 3 / 11", "8.3 points"),
            ),
        ),
        reading="The points of all causes but structural add up to it: the largest of them is where to begin.",
        pitfalls="It can be below 0: uneven stages can lie so that ranks wait less for each other.",
        where="the first sentence",
        see=("points", "imbalance", "p2p", "causes.host", "residual"),
        section="theory",
    ),
    Entry(
        name="ratio_to_ideal",
        summary="the bubble in units of useful time, as Megatron-LM and Llama 3 count it",
        text="How much longer the step takes than its work alone. The same idle time as bubble, over a smaller whole.",
        keys=("bubble.ratio_to_ideal",),
        also=("D2", "bubble time fraction"),
        formula="D1 / (1 - D1)",
        unit="share of the mean useful time: it can exceed 1",
        example=Example(
            setting=RUN,
            rows=(
                ("idle", "391 - 252", "139 ms"),
                ("ratio_to_ideal", "139 / 252", "55.2%"),
                ("with equal stages, (p-1)/m", "3 / 8", "37.5%"),
                ("back again, D2 / (1 + D2)", "0.552 / 1.552", "35.6%"),
            ),
        ),
        reading="Compare it with the (p-1)/m of papers; compare bubble with their (p-1)/(m+p-1).",
        pitfalls="37.5 % of useful time and 27.3 % of the window are the same bubble.",
        where="beside measured, under Where the bubble comes from",
        see=("bubble", "span", "formula"),
        section="the-bubble",
        source=f"{_MEGATRON}; Llama 3, arXiv 2407.21783, section 3.3.2",
    ),
    Entry(
        name="span",
        summary="the bubble inside the longest rank's own span, as the Zero Bubble paper counts it",
        text=(
            "A rank's span goes from its own first start to its own last end. Time in which a rank waits for the "
            "pipeline to reach it, or to drain behind it, is outside, as if the next step could use it."
        ),
        keys=("bubble.span",),
        also=("D3",),
        formula="1 - mean useful / longest span",
        unit="share of the longest span of a rank",
        example=Example(
            setting="zb-h2 with p = 8, m = 24, F = I = W = 1",
            rows=(
                ("useful", "24 * (1 + 1 + 1)", "72"),
                ("window", "72 + 7", "79"),
                ("bubble", "1 - 72 / 79", "8.9%"),
                ("span", "1 - 72 / 72", "0.0%"),
            ),
        ),
        reading="As bubble where one rank has both ends of the window, as in gpipe and 1f1b. Elsewhere it is smaller.",
        pitfalls=(
            "A span of 0 gains its promise only if steps overlap: with an optimizer that all ranks enter together, "
            "the idle time at both ends comes back."
        ),
        where="beside measured, under Where the bubble comes from",
        see=("bubble", "ratio_to_ideal", "window", "zb-h2"),
        section="the-bubble",
        source="Zero Bubble, arXiv 2401.10241, section 5.3",
    ),
    Entry(
        name="window",
        summary="the time that a step's pipeline takes, the whole that most shares are of",
        text=(
            "From the first forward that a rank of the pipeline begins to the last backward that one ends. Optimizer "
            "and gradient reduction behind it are outside, however long they take."
        ),
        keys=("bubble.window_ns", "pipelines[].window_ns", "ranks[].window_ns", "steps[].window_ns"),
        also=("window ms",),
        formula="from the start of the first action to the end of the last one",
        unit="ns in JSON, ms in tables; means over the used steps",
        example=Example(
            setting=RUN,
            rows=(
                ("the slow rank works", "8 * (12 + 24)", "288 ms"),
                ("fills and drains behind 3 stages", "3 * (10 + 20)", "90 ms"),
                ("transfers on the way", "13 * 1", "13 ms"),
                ("window", "288 + 90 + 13", "391 ms"),
            ),
        ),
        reading="bubble times window is the idle time of a step. Steps says how long the whole step is beside it.",
        pitfalls=(
            "It is measured on one rank's clock where that rank has both ends, as in 1f1b; else the clocks' error is "
            "in lower and upper. Without a pipeline a rank's window is the step."
        ),
        where="Steps, and the column window ms",
        see=("bubble", "span", "outside", "clock.error"),
        section="window",
    ),
    Entry(
        name="useful",
        summary="the time in which a rank works for its actions: the opposite of bubble",
        text=(
            "Compute of forwards and backwards, and collectives of the stage itself (tensor, context, expert "
            "parallel) that they asked for. Kernels that overlap count once."
        ),
        also=("useful time",),
        formula="the union of its compute and its in-stage communication",
        unit="ns a step; compute_ns + in_stage_comm_ns of ranks[]",
        example=Example(
            setting="two kernels of an action, from 0 to 6 ms and from 4 to 10 ms",
            rows=(("their sum, which is not it", "6 + 6", "12 ms"), ("useful", "10 - 0", "10 ms")),
        ),
        reading="window - useful is idle, and divides into warm-up, steady and cool-down.",
        pitfalls=(
            "Slow is not idle: a rank at half its clock rate is busy all the time. Recomputed forwards are useful too."
        ),
        see=("bubble", "compute", "in_stage_comm", "work"),
        section="the-bubble",
    ),
    Entry(
        name="trusted",
        summary="whether measured and its causes stand",
        text="False if something in the data contradicts itself, or if the causes leave too much unexplained.",
        keys=("bubble.trusted",),
        formula="If it is more than 5 % of the window, trusted is false",
        unit="true or false",
        example=Example(
            setting="a window of 391 ms, of which the replays explain 365 ms",
            rows=(("residual, above 5 %: untrusted", "(391 - 365) / 391", "6.6%"),),
        ),
        reading="If false, look at quality first: a warning there says what is wrong, and what to record.",
        pitfalls="True says that nothing contradicts the numbers, not that every rank was recorded.",
        where="the warnings",
        see=("residual", "verdict", "contradiction", "clock-uncertain"),
        section="why-the-causes",
        source="the limit is that of ByteDance, arXiv 2505.05713, section 6",
    ),
)
