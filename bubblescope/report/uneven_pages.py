"""Uneven work explained: what is tested, how sure it is, and what it costs."""

from __future__ import annotations

from bubblescope.report.entries import RUN, Entry, Example

__all__ = ["UNEVEN"]

_SECTION = "stages-and-balance"
_PAPER = "ByteDance, arXiv 2505.05713"

UNEVEN = (
    Entry(
        name="imbalance.stages",
        summary="each stage's work over the mean stage's, and how sure it is that it is heavier",
        text="The stage_ratio of every stage. chance says how likely it is no heavier than the others.",
        keys=("imbalance.stages[].ratio", "imbalance.stages[].chance"),
        unit="a ratio, 1 on average; chance is 0 to 1, null untested",
        example=Example(
            setting=RUN,
            rows=(("stage 0", "240 / 252", "0.95"), ("stage 3", "288 / 252", "1.14")),
        ),
        reading="A stage that is surely heavier and by much is the one to take layers from.",
        pitfalls="With one replica a slow rank looks like a heavy stage.",
        where="JSON only; Balance has the heaviest",
        see=("stage_ratio", "imbalance", "chance"),
        section=_SECTION,
    ),
    Entry(
        name="chance",
        summary="how likely a difference so large comes about where there is none",
        text=(
            "A rank or a stage is compared with the others at the same steps (with few steps, at the same "
            "micro-batches), by a paired t test of the logarithms of its times. The chance is corrected for the "
            "number of ranks or stages that are compared."
        ),
        keys=("imbalance.stragglers[].chance", "imbalance.data_length.chance"),
        also=("p value",),
        unit="0 to 1; small is sure",
        example=Example(
            setting="the smallest chance among 64 ranks is 0.0001 for its rank alone",
            rows=(("corrected (Holm: times the ranks compared)", "64 * 0.0001", "0.0064"),),
        ),
        reading="A straggler is named below 0.01, long data below 0.001; the difference must also be large enough.",
        pitfalls="Sure is not large: with many steps a rank that is slower by a little is sure to be slower.",
        where="JSON; evidence tells it in words",
        see=("stragglers", "data_length", "imbalance.stages", "causes.error"),
        section=_SECTION,
        source="Holm, Scand. J. Statist. 6, 1979",
    ),
    Entry(
        name="stragglers",
        summary="ranks that are surely slower than the other replicas of their stage",
        text=(
            "Replicas of a stage do the same work, so that they can be compared. slowdown is how many times as long "
            "as the usual replica the rank takes, forward and backward that of each, steps those in which it was slow."
        ),
        keys=(
            "imbalance.stragglers[].slowdown",
            "imbalance.stragglers[].forward",
            "imbalance.stragglers[].backward",
            "imbalance.stragglers[].steps[]",
        ),
        also=("slow ranks",),
        unit="ratios above 1",
        example=Example(
            setting="a rank that works 288 ms; the lower median of the replicas of its stage is 240 ms",
            rows=(("slowdown", "288 / 240", "1.20"),),
        ),
        reading="persistent says whether it was slow in every step: then suspect the machine, else what ran on it.",
        pitfalls=(
            "Tensor-parallel ranks of one place wait for each other: ranks lists all, and any may be the slow one. "
            "With two replicas a slow one and a quick one look alike."
        ),
        where="Balance",
        see=("straggler", "replica_ratio", "chance"),
        section=_SECTION,
        source=f"{_PAPER}, section 3.2",
    ),
    Entry(
        name="data_length",
        summary="whether micro-batches are long or short on every rank, as long samples make them",
        text=(
            "Where forward and backward of a micro-batch are both long on all stages, it holds more to do. "
            "correlation is that of its mean forward and backward, spread how much micro-batches differ, slowest "
            "the longest of them, count how many are surely long."
        ),
        keys=(
            "imbalance.data_length.correlation",
            "imbalance.data_length.spread",
            "imbalance.data_length.count",
            "imbalance.data_length.slowest[].factor",
            "imbalance.data_length.slowest[].microbatch",
        ),
        also=("long micro-batches",),
        unit="correlation -1 to 1; spread a share of the length; factor over the median micro-batch of its step",
        example=Example(
            setting="a micro-batch takes 45 ms on a stage where the median one takes 30 ms",
            rows=(("factor", "45 / 30", "1.5"),),
        ),
        reading="found says whether there is such an effect; what it costs is the part data of jitter.",
        pitfalls="Few micro-batches can correlate by chance: what counts is chance, not correlation alone.",
        where="JSON",
        see=("findings.data-length", "jitter.data", "jitter", "chance"),
        section=_SECTION,
        source=f"{_PAPER}, section 5.3",
    ),
    Entry(
        name="imbalance.pauses",
        summary="single forwards that pause, as garbage collection makes them",
        text=(
            "A forward that took, or came, far later than its like, while no backward does so. count is how many, "
            "share their part of the ranks' windows, longest the worst few."
        ),
        keys=("imbalance.pauses.count", "imbalance.pauses.share", "imbalance.pauses.longest[].ns"),
        unit="a count; a share of the ranks' windows; ns",
        example=Example(
            setting="6 pauses of 20 ms on 4 ranks in 10 steps whose windows are 400 ms",
            rows=(("share", "6 * 20 / (4 * 10 * 400)", "0.75%"),),
        ),
        reading="host says of a pause whether the work itself was stretched (false) or the rank idled (true).",
        pitfalls="share is time that ranks lost. What the pipeline loses is more, as all wait for the paused one.",
        where="JSON",
        see=("jitter.pauses", "host.pauses"),
        section=_SECTION,
        source=f"{_PAPER}, section 5.4",
    ),
    Entry(
        name="imbalance.slowdown",
        summary="how many times as long a job's steps take as with even work, transfers free",
        text=(
            "The replay of all pipelines with the durations that were, over the same with every action as long as the "
            "mean of its kind. The slowest pipeline of a step counts, and with it the rest of the step: gradients and "
            "optimizer, in T_ideal with their median."
        ),
        formula="S = T / T_ideal",
        keys=("imbalance.slowdown",),
        hidden=("S",),
        unit="a ratio, about 1 or more",
        example=Example(
            setting=RUN,
            rows=(
                ("T, of the pipeline alone", "3 * (10 + 20) + 8 * (12 + 24)", "378 ms"),
                ("T_ideal", "(8 + 4 - 1) * (10.5 + 21)", "346.5 ms"),
                ("slowdown", "378 / 346.5", "1.09"),
            ),
        ),
        reading="The least that uneven stages, ranks and micro-batches cost; 1 - 1/S is the waste in the paper.",
        pitfalls="It is no bubble: the schedule's own idle time is in both T and T_ideal.",
        where="JSON",
        see=("slowest_stage_share", "slowest_rank_share", "imbalance", "replay"),
        section=_SECTION,
        source=f"{_PAPER}, section 3",
    ),
    Entry(
        name="slowest_stage_share",
        summary="how much of the slowdown goes away with the heaviest stage mended",
        text="M_S = (T - T with the actions of the heaviest stage as in T_ideal) / (T - T_ideal).",
        keys=("imbalance.slowest_stage_share",),
        also=("M_S",),
        unit="a share of T - T_ideal; it can exceed 1, as the mended stage does less than its work",
        example=Example(
            setting=RUN,
            rows=(
                ("T with stage 3 mended: F 10.5, B 21", "3 * (10 + 20) + 8 * (10.5 + 21)", "342 ms"),
                ("slowest_stage_share", "(378 - 342) / (378 - 346.5)", "1.14"),
            ),
        ),
        reading="Near 1: the split of the layers is to blame. Near 0: look at ranks and micro-batches.",
        pitfalls=(
            "The paper takes the last stage, and replays the rest of a step call by call. Null where next to nothing "
            "is lost."
        ),
        where="JSON",
        see=("imbalance.slowdown", "stage_ratio", "slowest_rank_share"),
        section=_SECTION,
        source=f"{_PAPER}, section 5",
    ),
    Entry(
        name="slowest_rank_share",
        summary="how much of the slowdown goes away with the slowest ranks mended",
        text="M_W: as M_S, with the slowest 3 % of the ranks' places, at least one, in place of a stage.",
        keys=("imbalance.slowest_rank_share",),
        also=("M_W",),
        unit="a share of T - T_ideal",
        example=Example(
            setting="T 1200 ms, T_ideal 1000 ms, T with the slowest rank mended 1030 ms",
            rows=(("slowest_rank_share", "(1200 - 1030) / (1200 - 1000)", "0.85"),),
        ),
        reading="Near 1: replace a machine. With one replica it says the same as slowest_stage_share.",
        pitfalls="Null where next to nothing is lost.",
        where="JSON",
        see=("imbalance.slowdown", "stragglers", "slowest_stage_share"),
        section=_SECTION,
        source=f"{_PAPER}, section 5",
    ),
)
