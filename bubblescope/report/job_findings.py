"""What findings about the job as a whole mean, what they do to the numbers, and what to do."""

from __future__ import annotations

from bubblescope.report.finding_code import Code

__all__ = ["OF_JOBS"]

OF_JOBS = (
    Code(
        name="metadata-conflict",
        severity="warning",
        summary="two sources contradict each other",
        meaning=(
            "a file name, or a range that says the rank, contradicts the metadata, which win; or an option "
            "contradicts what the traces say (the message tells which counts)"
        ),
        effect="What the message says counts; if that is wrong, ranks or stages are mixed up.",
        remedy="Take back the option that contradicts, or give the file its right name.",
        see=(
            "implausible-metadata",
            "layout-assumed",
        ),
    ),
    Code(
        name="layout-assumed",
        severity="warning",
        summary="nothing tells which ranks form a pipeline",
        meaning=(
            "nothing tells which ranks form a pipeline; all ranks are taken as one, in their order. Or two ways to "
            "lay pipelines over the ranks fit as well. Or nothing tells how many ranks the pipeline has: the bubble is "
            "an interval"
        ),
        effect="degraded: stages may be in the wrong order, replicas taken as stages, or ranks be missing unnoticed.",
        remedy="State --pp, --tp and --dp, or record with peers of messages and descriptions of groups.",
        see=(
            "replicas-assumed",
            "nccl-payloads",
            "metadata-conflict",
        ),
    ),
    Code(
        name="purpose-assumed",
        severity="info",
        summary="what groups are for was told by what they do",
        meaning="what groups without a description are for was told by what they do",
        effect="A wrong guess moves time between in_stage_comm, dp and other, and so in or out of the bubble.",
        remedy="Give groups a description: group_desc of torch.distributed.new_group.",
        see=(
            "unnamed-communication",
            "replicas-assumed",
            "in_stage_comm",
        ),
    ),
    Code(
        name="several-recordings",
        severity="info",
        summary="recordings of one process, joined as one rank",
        meaning=(
            "a process was recorded several times, in files of their own or in one: these are earlier and later steps "
            "of one rank, and numbers of steps that come again count on; or the same recording was given twice and "
            "counts once"
        ),
        effect="None: what lies between two recordings is part of no step.",
        remedy="Nothing, if the files are of one run; keep the files of different runs apart.",
        see=("repeated-steps", "incomplete-steps"),
    ),
    Code(
        name="replicas-assumed",
        severity="info",
        summary="several pipelines, whether replicas or partners is not told",
        meaning=(
            "several pipelines whose forwards ask for collectives of undescribed groups, or pass messages round, and "
            "nothing tells whether they are replicas, tensor-parallel or context-parallel partners: these degrees are "
            "unknown, and each pipeline is measured by itself"
        ),
        effect=(
            "tp, cp and dp are null where nothing tells them. Straggler and replica_ratio take the pipelines for "
            "replicas."
        ),
        remedy="State --tp and --dp, or describe the groups.",
        see=(
            "purpose-assumed",
            "replica_ratio",
        ),
    ),
    Code(
        name="untold-chunks",
        severity="warning",
        summary="the chunks of a rank cannot be told apart",
        meaning=(
            "a rank may hold several chunks, and neither labels nor messages nor orders tell their actions apart, or "
            "whether their stages go round the ranks or fold back"
        ),
        effect="degraded: the bubble stands, but m, schedule, formula, replay and causes are unknown.",
        remedy="Label actions with their stage, or state --virtual.",
        see=(
            "told-by-kernels",
            "formula",
        ),
    ),
    Code(
        name="missing-ranks",
        severity="info, warning",
        summary="ranks of the job were not recorded",
        meaning="ranks of the job were not recorded; a warning if a stage is unseen",
        effect=(
            "Without an unseen stage none. With one, degraded: the bubble is the interval lower to upper, without "
            "causes."
        ),
        remedy="Add their traces, or record a rank of each stage.",
        see=(
            "lower",
            "upper",
            "bubble",
        ),
    ),
    Code(
        name="incomplete-steps",
        severity="warning",
        summary="steps lack actions",
        meaning=(
            "steps lack actions and are left out; an action counts as lacking if the recording ended before its "
            "last launches ran"
        ),
        effect="They are left out of the means. With no complete step of a pipeline, degraded.",
        remedy="Record a few steps more; stop the profiler behind a step.",
        see=(
            "used",
            "lost-kernels",
        ),
    ),
    Code(
        name="odd-steps",
        severity="info",
        summary="steps of other kinds: evaluations, or other numbers of micro-batches",
        meaning=(
            "steps hold forwards only, or as many forwards more than backwards on every rank, as of an evaluation; or "
            "steps differ in their number of micro-batches. The message says which, and which are counted"
        ),
        effect=(
            "None on the bubble, which is that of the trainings of the commonest size; by_microbatches has that of "
            "each size. Where every training has an evaluation inside, step time and speed include it."
        ),
        remedy="Nothing. To measure others choose them with --steps, or their size with --microbatches.",
        see=(
            "used",
            "kind",
            "by_microbatches",
            "incomplete-steps",
        ),
    ),
    Code(
        name="unlabelled",
        severity="warning",
        summary="no forward or backward could be told on a rank",
        meaning=(
            "no forward or backward could be told on a rank; or no pipeline could be identified, and something points "
            "to one: the message says what"
        ),
        effect="degraded: that rank counts as not recorded, or what may be a pipeline is taken for none.",
        remedy=(
            "Label the actions, as the message says; a trace that is cut off must be recorded again. State --pp 1 "
            "where there is no pipeline."
        ),
        see=(
            "told-by-kernels",
            "backward-unlabelled",
        ),
    ),
    Code(
        name="told-by-kernels",
        severity="warning",
        summary="kernels and messages alone told the actions",
        meaning=(
            "neither labels nor autograd numbers stand on a rank: kernels and messages alone told its forwards "
            "and backwards; how much of the compute that explains, and what to add to the training script, is in "
            "the message"
        ),
        effect="degraded: borders of actions are guesses, and micro-batches are counted in order.",
        remedy="Label the actions, as the message says.",
        see=(
            "unlabelled",
            "unexplained-work",
            "confidence",
        ),
    ),
    Code(
        name="unexplained-work",
        severity="warning",
        summary="much compute belongs to no known action",
        meaning="under 90 % of the compute inside the pipeline belongs to a known action",
        effect="degraded: work that belongs to no action counts as bubble.",
        remedy="Label all that the pipeline runs, and make labels reach over all of their work.",
        see=(
            "ranks.other",
            "told-by-kernels",
            "verdict",
        ),
    ),
    Code(
        name="unpaired-p2p",
        severity="info",
        summary="messages whose other half was not found",
        meaning=(
            "sends or receives, of all steps, whose other half should be in the traces and is not; those that do not "
            "say which they are not counted. A warning, where more than 2 % arrive before they are sent by the clock "
            "that both ranks share"
        ),
        effect="Their waiting and transfer cannot be told apart, and their share goes from p2p to host and residual.",
        remedy="A few are ordinary. With many, see whether the layout is right, and all ranks of one run.",
        see=(
            "p2p",
            "residual",
            "pp",
        ),
    ),
    Code(
        name="clock-uncertain",
        severity="warning",
        summary="the clocks of the ranks are not known well enough",
        meaning=(
            "a file holds no absolute times; the clocks, step numbers or runs of the ranks do not fit each other; "
            "or the clocks are known less well than to 1 % of the window"
        ),
        effect=(
            "degraded, if the numbers contradict themselves: waiting against transfer, and a window that two "
            "clocks make, may be wrong."
        ),
        remedy=(
            "Record all ranks in the same run, with absolute times; synchronize the hosts' clocks (NTP, better PTP)."
        ),
        see=(
            "clock.error",
            "violations",
            "communication.transfer",
        ),
    ),
    Code(
        name="unnamed-communication",
        severity="warning",
        summary="collectives of actions whose purpose nobody tells",
        meaning=(
            "collectives that forwards and backwards ask for, or fused messages inside them, may be the stage's "
            "own; they count as bubble as long as the group has no description"
        ),
        effect="degraded: if they are the stage's own, the bubble is smaller by the share in the message.",
        remedy="Give the groups a description: group_desc of torch.distributed.new_group.",
        see=(
            "purpose-assumed",
            "in_stage_comm",
            "ranks.other",
        ),
    ),
    Code(
        name="contradiction",
        severity="warning",
        summary="the numbers cannot all be true",
        meaning="the numbers cannot all be true: actions, steps or ranks are wrongly told apart",
        effect="degraded, and trusted is false: do not use the numbers.",
        remedy="State --pp, --tp and --microbatches, or label the actions; see whether all files are of one run.",
        see=(
            "trusted",
            "verdict",
            "clock-uncertain",
        ),
    ),
)
