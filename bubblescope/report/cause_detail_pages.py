"""What is told of a cause explained: its size, how sure that is, where and when it costs, in which order it counts."""

from __future__ import annotations

from bubblescope.report.entries import RUN, Entry, Example

__all__ = ["DETAILS"]

_TABLE = "Where the bubble comes from"
_SHAPLEY = f"{_TABLE}, with --attribution shapley"
_SECTION = "why-the-causes"
_BYTEDANCE = "ByteDance, arXiv 2505.05713, section 3"

DETAILS = (
    Entry(
        name="points",
        summary="the size of a cause, counted so that it can be compared with the formula",
        text=(
            "Percentage points of the measured bubble. The structural part is the formula itself, and the others "
            "share what is left."
        ),
        keys=("bubble.causes[].points", "bubble.causes[].parts[].points", "steps[].points"),
        formula="of the structural part the formula, of the others share x (1 - formula)",
        unit="points of the pipeline window, a fraction of 1 in JSON; they add up to measured",
        example=Example(
            setting=RUN,
            rows=(
                ("structural", "3 / 11", "27.3 points"),
                ("imbalance", "31.5 / 391 * 8 / 11", "5.9 points"),
                ("p2p", "13 / 391 * 8 / 11", "2.4 points"),
                ("their sum, measured", "3 / 11 + (31.5 + 13) / 391 * 8 / 11", "35.5%"),
            ),
        ),
        reading="Removing a cause gains at most about its points, one cause at a time: gains do not add.",
        pitfalls="The order of the replays matters where two causes meet: see attribution.",
        where=_TABLE,
        see=("share", "causes.ns", "gap", "structural"),
        section=_SECTION,
    ),
    Entry(
        name="share",
        summary="the part of the window that a cause takes",
        text="The time of a cause over the window. With ns it is what to use when times are meant.",
        keys=("bubble.causes[].share", "bubble.causes[].parts[].share"),
        formula="the part of the window; shares add up to measured",
        unit="share of the pipeline window",
        example=Example(
            setting=RUN,
            rows=(
                ("structural", "94.5 / 391", "24.2%"),
                ("imbalance", "31.5 / 391", "8.1%"),
                ("p2p", "13 / 391", "3.3%"),
                ("their sum, measured", "(94.5 + 31.5 + 13) / 391", "35.5%"),
            ),
        ),
        reading="The structural share is less than the formula, as the window is longer than theory's.",
        pitfalls="Do not set a share against the formula: points are made for that.",
        where="JSON only",
        see=("points", "causes.ns", "window"),
        section=_SECTION,
    ),
    Entry(
        name="causes.ns",
        summary="the time that a cause adds to a step's window",
        text="The difference of two replays, as time.",
        keys=("bubble.causes[].ns", "bubble.causes[].parts[].ns"),
        formula="mean over the used steps and pipelines",
        unit="ns a step",
        example=Example(setting=RUN, rows=(("imbalance, T2 - T1", "378 - 346.5", "31.5 ms"),)),
        reading="The causes add up to window - mean useful, to the rounding.",
        pitfalls="It can be below 0.",
        where="JSON only",
        see=("share", "points"),
        section=_SECTION,
    ),
    Entry(
        name="causes.error",
        summary="the standard error of a cause, from its scatter over the steps",
        text="How far the cause may be off by chance, seen from how much it differs from step to step.",
        keys=("bubble.causes[].error", "bubble.causes[].parts[].error"),
        also=("standard error", "±"),
        formula="the standard deviation of its per-step values over the root of their number",
        unit="points; null with fewer than two steps, and for the structural part",
        example=Example(
            setting="a cause of 1.0 and 1.4 points in two used steps",
            rows=(
                ("standard deviation", "((1.0 - 1.2) ** 2 + (1.4 - 1.2) ** 2) ** 0.5", "0.28"),
                ("standard error", "0.283 / 2 ** 0.5", "0.20"),
            ),
        ),
        reading="A cause of less than about twice its error may be nothing. More steps make it smaller.",
        pitfalls="It holds chance only, not what the replays cannot know: that is residual.",
        where=_TABLE,
        see=("points", "spread", "residual"),
        section=_SECTION,
    ),
    Entry(
        name="alone",
        summary="what a cause adds to the bare schedule, with nothing else wrong",
        text="One bracket of a cause: the replay with this trouble only, less the replay with none.",
        keys=("bubble.causes[].alone",),
        formula="what the cause adds to the bare schedule",
        unit="points; null unless asked for with --attribution shapley",
        example=Example(
            setting=RUN,
            rows=(
                ("transfers only, window", "3 * (10.5 + 21) + 8 * (10.5 + 21) + 19", "365.5 ms"),
                ("p2p alone", "(365.5 - 346.5) / 391 * 8 / 11", "3.5 points"),
            ),
        ),
        reading="Where alone and removed are like each other the cause is sure, whatever else is wrong.",
        pitfalls="The alone of all causes need not add up to anything.",
        where=_SHAPLEY,
        see=("removed", "points", "attribution"),
        section=_SECTION,
        source=_BYTEDANCE,
    ),
    Entry(
        name="removed",
        summary="what the run as it was would save without a cause",
        text="The other bracket: the replay with all troubles, less the replay with all but this one.",
        keys=("bubble.causes[].removed",),
        formula="what the run as it was would save without it",
        unit="points; null unless asked for with --attribution shapley",
        example=Example(
            setting=RUN,
            rows=(
                ("imbalance removed", "(391 - 365.5) / 391 * 8 / 11", "4.7 points"),
                ("p2p removed", "(391 - 378) / 391 * 8 / 11", "2.4 points"),
            ),
        ),
        reading="The bubble to gain from mending this one thing and nothing else.",
        pitfalls=(
            "It is a part of the bubble and not of the time: mending a slow rank takes useful time away too, and can "
            "make the step shorter and the bubble's share larger. Where two causes hide each other, each removed "
            "alone saves little."
        ),
        where=_SHAPLEY,
        see=("alone", "points", "attribution"),
        section=_SECTION,
        source=_BYTEDANCE,
    ),
    Entry(
        name="attribution",
        summary="in which order the causes are asked for: ladder or shapley",
        text=(
            "ladder asks one after the other, in the order of the table. shapley asks in every order and takes the "
            "mean, so that no cause gains by its place."
        ),
        keys=("bubble.attribution",),
        also=("ladder", "shapley"),
        formula="every cause but the structural part and the residual is asked for in each possible order of the five",
        unit="a word",
        example=Example(
            setting=RUN,
            rows=(
                ("imbalance, asked first", "378 - 346.5", "31.5 ms"),
                ("imbalance, asked last", "391 - 365.5", "25.5 ms"),
                ("shapley: their mean", "(31.5 + 25.5) / 2", "28.5 ms"),
            ),
        ),
        reading="The two differ where causes meet: late messages cost nothing while all wait for a slow stage.",
        pitfalls="shapley takes 32 replays a step instead of 6. Structural and residual are the same in both.",
        where=_SHAPLEY,
        see=("alone", "removed", "points"),
        section=_SECTION,
        source="Shapley, A value for n-person games, 1953",
    ),
    Entry(
        name="by_position",
        summary="the bubble of the ranks that share a position, by cause",
        text="Who waits for what. A cause may lie on one rank, and cost others: the slow rank itself waits less.",
        keys=("bubble.by_position[].bubble", "bubble.by_position[].points"),
        formula="((1 - formula) (L' - L) - (U' - U)) / window",
        unit="points by cause, which add up to the bubble of these ranks; their mean is the whole",
        example=Example(
            setting=RUN,
            rows=(
                ("imbalance of stage 0", "(8 / 11 * 31.5 - (240 - 252)) / 391", "8.9 points"),
                ("of stage 3, the heavy one", "(8 / 11 * 31.5 - (288 - 252)) / 391", "-3.3 points"),
                ("mean", "(3 * 8.9 - 3.3) / 4", "5.9"),
            ),
        ),
        reading="A negative cause is the mark of its origin: the heavy stage has negative imbalance.",
        pitfalls="Of many positions the table shows those that stand out; JSON has all.",
        where="Who waits for what, and when",
        see=("by_phase", "points", "ranks.bubble"),
        section=_SECTION,
    ),
    Entry(
        name="by_phase",
        summary="the part of the bubble that lies in warm-up, steady or cool-down, by cause",
        text="When it is that ranks wait, and for what.",
        keys=("bubble.by_phase[].bubble", "bubble.by_phase[].points"),
        formula="each adds up to its part of the bubble, and the three to the whole",
        unit="points by cause",
        example=Example(
            setting=RUN,
            rows=(
                ("warm-up of the four ranks", "(72 + 61 + 50 + 33) / 4 / 391", "13.8 points"),
                ("steady", "(21 + 29 + 36 + 7) / 4 / 391", "5.9 points"),
                ("cool-down", "(58 + 61 + 65 + 63) / 4 / 391", "15.8 points"),
            ),
        ),
        reading="More micro-batches thin out warm-up and cool-down. What is in steady stays in every micro-batch.",
        pitfalls="A phase is each rank's own, between its own first backward and last forward.",
        where="Who waits for what, and when",
        see=("by_position", "warmup", "steady", "cooldown"),
        section=_SECTION,
    ),
)
