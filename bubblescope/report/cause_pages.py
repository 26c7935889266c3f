"""The causes explained: what each is, which replays it lies between, and how to tell it from its neighbours."""

from __future__ import annotations

from bubblescope.report.entries import RUN, Entry, Example

__all__ = ["CAUSES", "LADDER"]

LADDER = (
    ("T0", "the ranks' mean useful time"),
    ("T1", "every action as long as the mean of its kind, transfers free"),
    ("T2", "times the profile of its stage: how much longer than the mean its actions of that kind are"),
    ("T3", "times the profile that the stage has in this replica"),
    ("T4", "every action as long as it was"),
    ("T5", "messages as long as they moved, begun when both sides had posted"),
    ("T6", "the host's gaps, before actions and inside them"),
    ("window", "the run as it was"),
)
"""The replays, each with one more trouble than the one before: the table of docs/definitions.md."""

_REPLAY = "replaying with selected changes: ByteDance, arXiv 2505.05713, section 3"
_UNIT = "points: the share of the window times 1 - formula, so that all causes add up to measured; ns and share beside"
_TABLE = "Where the bubble comes from"
_REPLICAS = "two replicas of 1f1b on 4 ranks, 8 micro-batches, F 10 ms, B 20 ms; in one, rank 3's work takes 1.2 times"


def _lies_between(rung: int) -> str:
    """The replays whose difference the cause is."""
    (below, before), (above, here) = LADDER[rung - 1], LADDER[rung]
    return f"{above} - {below}, the lengths of two replays. {below}: {before}. {above}: {here}."


def _cause(name: str) -> tuple[str, ...]:
    """Spellings of a cause that nobody needs to be told."""
    return f"causes.{name}", f"bubble.causes.{name}"


CAUSES = (
    Entry(
        name="structural",
        summary="the schedule itself: what it owes with equal stages and free transfers",
        text="The time in which the pipeline fills and drains. No tuning of the run removes it, only another schedule.",
        hidden=_cause("structural"),
        formula=_lies_between(1),
        unit="points: just the formula; its share of the (longer) window is less",
        makers="few micro-batches for the number of stages; one chunk a rank; backwards in one piece",
        neighbours=(
            "It depends on p, m, v and the mean durations only. What depends on single stages, micro-batches or "
            "messages stands in the other causes."
        ),
        remedy=(
            "More micro-batches, more chunks a rank (interleaved-1f1b), split backwards (zb-h1, zb-v), fewer stages "
            "with more tensor parallelism. bubblescope simulate --all ranks the schedules for p and m."
        ),
        example=Example(
            setting=RUN,
            rows=(
                ("T1 - T0", "346.5 - 252", "94.5 ms"),
                ("share", "94.5 / 391", "24.2%"),
                ("points", "3 / 11", "27.3 points"),
            ),
        ),
        where=f"{_TABLE}; Theory",
        see=("formula", "points", "1f1b", "interleaved-1f1b", "zb-h1"),
        section="why-the-causes",
        source=_REPLAY,
    ),
    Entry(
        name="imbalance",
        summary="stages that differ in work, so that all wait for the heaviest",
        text="The pipeline goes at the pace of its slowest stage. The other ranks idle in every micro-batch.",
        hidden=_cause("imbalance"),
        formula=_lies_between(2),
        unit=_UNIT,
        makers="the output layer and the loss on the last stage, embeddings on the first; layers that do not divide",
        neighbours=(
            "A stage that is heavy on every replica is imbalance; heavy on one replica only, straggler; on some "
            "micro-batches only, jitter. With one replica a slow GPU looks like a heavy stage: compare clock rates."
        ),
        remedy=(
            "Move layers away from the heaviest stage; count embedding and output layer as layers when dividing; "
            "spread the vocabulary over the stages."
        ),
        example=Example(
            setting=RUN,
            rows=(
                ("T2 - T1", "378 - 346.5", "31.5 ms"),
                ("share", "31.5 / 391", "8.1%"),
                ("points", "31.5 / 391 * (1 - 3 / 11)", "5.9 points"),
            ),
        ),
        pitfalls="It can be below 0: where light stages lie well, ranks wait less than with equal ones.",
        where=f"{_TABLE}; Balance; the columns forward, backward and work of Stages",
        see=("stage_ratio", "slowest_stage", "work", "straggler", "jitter"),
        section="why-the-causes",
        source=f"{_REPLAY}; M_S is its share of the slowdown",
    ),
    Entry(
        name="straggler",
        summary="a rank that is slower than the other replicas of its stage",
        text="The same work takes longer there than elsewhere, and its whole pipeline waits.",
        hidden=_cause("straggler"),
        formula=_lies_between(3),
        unit=_UNIT,
        makers="a GPU that is hot, throttled or shared; a bad memory; a host with other work",
        neighbours=(
            "Always slow against its replicas is straggler; now and then, jitter. Slow messages but normal actions "
            "are p2p. 0 with one replica: then a slow rank counts as imbalance."
        ),
        pitfalls=(
            "It can be below 0: points are parts of the bubble, and who works longer stands idle for less of a "
            "window that a heavy stage makes long anyway. The other replicas wait outside the window, for the "
            "gradients: what a slow rank costs the job's step is slowdown and slowest_rank_share."
        ),
        remedy="Look at the rank's clock rate, power, temperature and errors; if that does not help, replace the node.",
        example=Example(
            setting=_REPLICAS,
            rows=(
                ("T3 - T2, slow replica", "378 - 346.5", "31.5 ms"),
                ("T3 - T2, other replica", "330 - 330", "0 ms"),
            ),
        ),
        where=f"{_TABLE}; Balance and Replicas; imbalance.stragglers",
        see=("findings.straggler", "slowest_rank_share", "imbalance.slowdown", "stragglers", "imbalance", "jitter"),
        section="why-the-causes",
        source=f"{_REPLAY}; M_W is its share of the slowdown",
    ),
    Entry(
        name="jitter",
        summary="actions whose times vary from one micro-batch or step to the next",
        text=(
            "A stage that takes 30 ms on average but now 20 and now 40 makes its neighbours wait each time that it is "
            "late, and they cannot make up for it when it is early."
        ),
        hidden=_cause("jitter"),
        formula=_lies_between(4),
        unit=_UNIT,
        makers="samples of different length, experts that get different loads, garbage collection, clock rates",
        neighbours=(
            "It is what is left once the means of each stage and replica are right. Its parts tell: data varies with "
            "the micro-batch, pauses hit forwards only, rest is neither. Gaps between actions are the host's."
        ),
        remedy="As its largest part says: jitter.data, jitter.pauses, jitter.rest.",
        example=Example(
            setting="2 stages, 2 micro-batches, forwards only; stage 0 takes 10 and 10 ms, stage 1 takes 14 and 6 ms",
            rows=(
                ("T3, each 10 ms", "10 + 10 + 10", "30 ms"),
                ("T4, as it was", "10 + max(14, 10) + 6", "30 ms"),
                ("T4 with 6 and 14 ms", "10 + max(6, 10) + 14", "34 ms"),
                ("jitter then", "34 - 30", "4 ms"),
            ),
        ),
        pitfalls="Its size depends on where in the order the long actions lie, not on their spread alone.",
        where=_TABLE,
        see=("jitter.data", "jitter.pauses", "jitter.rest", "imbalance", "straggler", "causes.host"),
        section="why-the-causes",
        source=_REPLAY,
    ),
    Entry(
        name="jitter.data",
        summary="the part of jitter that follows the micro-batch: it is long on every rank",
        text="One micro-batch takes longer, forward and backward alike, wherever it comes: it holds more to do.",
        hidden=_cause("jitter.data"),
        unit="as jitter, of which it is a part",
        makers="sequences of different length packed into micro-batches: attention costs the sum of their squares",
        neighbours="Forward and backward of the micro-batch are both long, on all ranks; pauses hit one forward.",
        remedy="Form micro-batches, and the shares of the replicas, of equal sums of squared lengths.",
        example=Example(
            setting="two micro-batches of 4096 tokens, one of a single sequence, one of four",
            rows=(("attention, first over second", "4096 ** 2 / (4 * 1024 ** 2)", "4"),),
        ),
        where=_TABLE,
        see=("jitter", "data_length", "jitter.pauses", "jitter.rest"),
        section="why-the-causes",
        source="ByteDance, arXiv 2505.05713, section 5.3",
    ),
    Entry(
        name="jitter.pauses",
        summary="the part of jitter that stretches forwards only, now here and now there",
        text="Single forwards take far longer than the others of their stage, without their backwards doing so.",
        hidden=_cause("jitter.pauses"),
        unit="as jitter, of which it is a part",
        makers="Python's garbage collection: forwards are launched from Python, backwards from C++",
        neighbours="Backwards are unharmed; where they are long as well it is data. Gaps without work are the host's.",
        remedy="Switch automatic collection off (gc.disable), and collect every so many steps, on all ranks at once.",
        example=Example(
            setting="a stage whose forwards take 10 ms; one of eight is stretched by a pause of 50 ms",
            rows=(("the pause in its mean", "(7 * 10 + 60) / 8", "16.25 ms"),),
        ),
        where=_TABLE,
        see=("jitter", "imbalance.pauses", "host.pauses", "jitter.data"),
        section="why-the-causes",
        source="ByteDance, arXiv 2505.05713, section 5.4",
    ),
    Entry(
        name="jitter.rest",
        summary="the part of jitter that neither the micro-batch nor pauses explain",
        text="Times that vary without a pattern that is known here.",
        hidden=_cause("jitter.rest"),
        unit="as jitter, of which it is a part",
        makers="clock rates that change, experts with different loads, other work on the GPU or the links",
        neighbours="What is left when data and pauses are taken away; it may be below 0, as jitter may.",
        remedy="See which stages vary most; lock the clock rates for a trial; balance the experts.",
        example=Example(
            setting="jitter of 2.0 points, of which data is 1.2 and pauses 0.5",
            rows=(("rest", "0.020 - 0.012 - 0.005", "0.3 points"),),
        ),
        where=_TABLE,
        see=("jitter", "jitter.data", "jitter.pauses"),
        section="why-the-causes",
    ),
    Entry(
        name="p2p",
        summary="transfers between stages, as far as they hold somebody up",
        text="Messages of activations and gradients take time, and some of that time a rank waits for them.",
        also=("point-to-point",),
        hidden=_cause("p2p"),
        formula=_lies_between(5),
        unit=_UNIT,
        makers="slow or shared links, large activations, sends that hold their rank, receives posted late",
        neighbours=(
            "A receive that waits for a sender that is not ready is not p2p: that wait has the cause that made the "
            "sender late. Only the time in which bytes move counts, from when both sides were there."
        ),
        remedy=(
            "Overlap messages with compute; post receives early; place neighbouring stages on one node; send a share "
            "of the activation from each tensor-parallel rank. More chunks a rank hide messages, but send more."
        ),
        example=Example(
            setting=RUN,
            rows=(
                ("T5 - T4", "391 - 378", "13 ms"),
                ("share", "13 / 391", "3.3%"),
                ("points", "13 / 391 * (1 - 3 / 11)", "2.4 points"),
            ),
        ),
        pitfalls="Messages without a known partner take no time here, and end up in host and residual.",
        where=f"{_TABLE}; pp transfer of Ranks; the group pp of Communication",
        see=("findings.p2p", "pp_transfer", "pp_wait", "communication.transfer", "unpaired-p2p"),
        section="why-the-causes",
        source=_REPLAY,
    ),
    Entry(
        name="causes.host",
        summary="the host is late: the input is there and the work has not begun",
        text="The GPU could go on, but nothing was launched yet; or it pauses inside an action for the same reason.",
        also=("host gaps",),
        hidden=("bubble.causes.host",),
        formula=_lies_between(6),
        unit=_UNIT,
        makers="many small kernels, garbage collection, data loading, synchronizing calls, allocation of memory",
        neighbours=(
            "The gap lies after the arrival of the input. Before that it is waiting, which has another cause. A long "
            "kernel is no gap: that is imbalance, straggler or jitter."
        ),
        remedy="CUDA graphs, fewer and larger kernels, larger micro-batches, more loader workers, no .item().",
        example=Example(
            setting="the 391 ms of T5, in which late launches add 6 ms on the way; formula 3/11",
            rows=(
                ("T6 - T5", "397 - 391", "6 ms"),
                ("points", "6 / 397 * (1 - 3 / 11)", "1.1 points"),
            ),
        ),
        pitfalls="Its points can be far less than the column host: a rank that is late while all wait costs nothing.",
        where=f"{_TABLE}; the column host of Ranks",
        see=("ranks.host", "host.pauses", "host.rest", "p2p"),
        section="why-the-causes",
        source=_REPLAY,
    ),
    Entry(
        name="host.pauses",
        summary="the part of the host's gaps that are single long pauses",
        text="A few gaps that are far longer than the usual ones, in place of many short ones.",
        hidden=_cause("host.pauses"),
        unit="as the cause host, of which it is a part",
        makers="garbage collection, a late data loader, a checkpoint, allocation of memory (cudaMalloc)",
        neighbours="Many gaps of like length are launches, which this part leaves out.",
        remedy="See Longest idle gaps for when they come; collect garbage every so many steps, load data ahead.",
        example=Example(
            setting="100 gaps of 0.05 ms, and one of 20 ms",
            rows=(("the pause, of all gaps", "20 / (20 + 100 * 0.05)", "80%"),),
        ),
        where=_TABLE,
        see=("causes.host", "jitter.pauses", "worst_bubbles"),
        section="why-the-causes",
        source="ByteDance, arXiv 2505.05713, section 5.4",
    ),
    Entry(
        name="host.rest",
        summary="the part of the host's gaps that is no single long pause",
        text="The many gaps of like length: launches that come too late, one by one.",
        hidden=_cause("host.rest"),
        unit="as the cause host, of which it is a part",
        makers="many small kernels, slow Python between them, synchronizing calls in every micro-batch",
        neighbours="Pauses are few and long. These are many, and much alike.",
        remedy="CUDA graphs or torch.compile, larger micro-batches, no .item() or print in a step.",
        example=Example(
            setting="host of 1.1 points, of which pauses is 0.8",
            rows=(("rest", "0.011 - 0.008", "0.3 points"),),
        ),
        where=_TABLE,
        see=("causes.host", "host.pauses", "ranks.host"),
        section="why-the-causes",
    ),
    Entry(
        name="residual",
        summary="what no cause explains: the window minus the last replay",
        text="The replays leave out what they do not know. How much that is is shown, never spread over the causes.",
        hidden=_cause("residual"),
        formula=_lies_between(7),
        unit=_UNIT,
        makers="messages without a partner, actions wrongly told apart, collectives that order ranks, clocks",
        neighbours="Host and p2p are what was seen of gaps and messages; residual is what was not.",
        remedy="Look at the warnings: unpaired-p2p, unexplained-work and clock-uncertain say what to record.",
        example=Example(
            setting="a window of 400 ms, of which T6 explains 397 ms; formula 3/11",
            rows=(
                ("share", "(400 - 397) / 400", "0.75%"),
                ("points", "(400 - 397) / 400 * (1 - 3 / 11)", "0.5 points"),
            ),
        ),
        reading="If it is more than 5 % of the window, trusted is false. Below 0 the replays were slower than the run.",
        where=_TABLE,
        see=("trusted", "unpaired-p2p", "unexplained-work"),
        section="why-the-causes",
        source="ByteDance, arXiv 2505.05713, section 6",
    ),
)
