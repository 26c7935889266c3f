"""What findings about a single recording mean, what they do to the numbers, and what to do."""

from __future__ import annotations

from bubblescope.report.finding_code import Code

__all__ = ["OF_FILES"]

OF_FILES = (
    Code(
        name="skipped",
        severity="info, warning",
        summary="a file was passed over",
        meaning=(
            "a file of a directory is no trace and was passed over; or it is a report of Nsight Systems whose "
            "export is read. A warning where a report cannot be exported: what it recorded is missing, and the "
            "command to run is in the message"
        ),
        effect="None, if the file is no trace. A report that could not be exported is a rank that is missing.",
        remedy="Name the traces themselves. Of a report, run the command in the message, where nsys is.",
        see=(
            "exported",
            "missing-ranks",
        ),
    ),
    Code(
        name="exported",
        severity="info",
        summary="a report of Nsight Systems was exported, and the export read",
        meaning="a report of Nsight Systems was exported; the file that was read in its place is in the message",
        effect="None.",
        remedy="Nothing. The export is kept until its report changes.",
        see=("skipped",),
    ),
    Code(
        name="other-processes",
        severity="info",
        summary="events that are not the rank's own were left out",
        meaning=(
            "events of other processes (data loaders) or devices are left out; a rank is what ran at least a "
            "hundredth of the busiest one's kernels"
        ),
        effect="None, if the process named is the training.",
        remedy="If the wrong process was taken, record the training process alone.",
        see=("missing-ranks",),
    ),
    Code(
        name="repaired",
        severity="info, warning",
        summary="a trace is damaged, and was mended as far as it goes",
        meaning=(
            "the text of a trace is damaged; what was mended and how often is in the message, and the places of what "
            "had to be left out. A warning where something was left out"
        ),
        effect="None where all was mended; degraded where something was left out, for it may have been work.",
        remedy="Ask what wrote or copied the file. Record again if much was left out; --strict refuses such files.",
        see=("truncated", "unpaired-events", "implausible-times"),
    ),
    Code(
        name="truncated",
        severity="warning",
        summary="the end of a trace is missing",
        meaning="a trace is cut off, as a run leaves it that is killed while it writes; where is in the message",
        effect=(
            "degraded: what is whole is used, steps that lack actions are left out, and what stood behind the cut "
            "nobody knows."
        ),
        remedy="Copy the file again, or record again; let the profiler finish before the job ends.",
        see=("repaired", "incomplete-steps", "lost-kernels"),
    ),
    Code(
        name="unpaired-events",
        severity="info, warning",
        summary="a range lacks its beginning or its end",
        meaning="a range begins or ends without its other half; info where the recording ended inside it",
        effect="The range is left out: an action whose label it was may be missing, and its step incomplete.",
        remedy="Stop the profiler behind a step, not inside one.",
        see=(
            "incomplete-steps",
            "repaired",
        ),
    ),
    Code(
        name="implausible-times",
        severity="info, warning",
        summary="events whose times cannot be",
        meaning=(
            "events lie where they cannot have been (an hour from all else, out of the order of their stream) or have "
            "no usable time, and are left out; or they last less than no time, or longer than the recording, and count "
            "without that length; or kernels end after the next one of their stream began, and are cut there, unless "
            "they are too many; or kernels begin before their launches. A warning where a used step may be concerned"
        ),
        effect="None of them moves a window. A used step that may lack their work is too idle by its length: degraded.",
        remedy="Update the profiler and the driver; record again if there are many.",
        see=(
            "doubled-events",
            "repaired",
            "lost-kernels",
        ),
    ),
    Code(
        name="doubled-events",
        severity="info",
        summary="events that a file holds twice",
        meaning="events stand in a file twice, word for word; each counts once",
        effect="None.",
        remedy="Ask what joined or wrote the file.",
        see=(
            "repeated-steps",
            "implausible-times",
        ),
    ),
    Code(
        name="narrow-marks",
        severity="info",
        summary="marks of steps stand closer than steps",
        meaning=(
            "far more steps are marked than there are: step() of the profiler was called for each micro-batch, or for "
            "each part of a step"
        ),
        effect="None: names of actions that come again, or the optimizer, tell where steps begin; they count on from "
        "the first mark.",
        remedy="Call step() of the profiler once a step, behind the optimizer.",
        see=("steps-assumed", "used"),
    ),
    Code(
        name="repeated-steps",
        severity="warning",
        summary="steps that a file marks more than once",
        meaning="steps are marked more than once in one recording, at different times; the first of each number counts",
        effect="Later steps of the same numbers are in no mean.",
        remedy="Keep the files of different runs apart.",
        see=(
            "doubled-events",
            "incomplete-steps",
        ),
    ),
    Code(
        name="implausible-metadata",
        severity="warning",
        summary="a rank or a number of ranks that cannot be",
        meaning="the metadata tell a rank or a number of ranks that cannot be; it counts as not told",
        effect="The rank is told by something else: environment, label or file name.",
        remedy="Name the files by rank, rank0.json, or correct what wrote the metadata.",
        see=("metadata-conflict",),
    ),
    Code(
        name="steps-assumed",
        severity="warning",
        summary="nothing tells where steps begin",
        meaning="nothing tells where steps begin: the recording is taken as one step",
        effect="degraded: several steps count as one, and their optimizers as bubble.",
        remedy="Call profiler.step() behind each step, or label the optimizer's step.",
        see=(
            "incomplete-steps",
            "used",
        ),
    ),
    Code(
        name="counted-microbatches",
        severity="info",
        summary="actions of a timeline name no micro-batch",
        meaning="actions of a timeline name no micro-batch: they are taken to run in the order of their micro-batches",
        effect="None where they do, as in gpipe and 1f1b. Elsewhere replay and causes are off.",
        remedy="Write the micro-batch into the timeline.",
        see=("jitter", "replay"),
    ),
    Code(
        name="repeated-actions",
        severity="warning",
        summary="actions of a timeline come more than once in their step",
        meaning=(
            "actions of a timeline come more than once in their step: rows are written twice, or numbers of steps or "
            "micro-batches begin anew, or several ranks are taken as one"
        ),
        effect="degraded: order and replay are wrong, and where steps are mixed up the bubble is too large.",
        remedy="Count steps through the whole run, and micro-batches from 0 in each step; give each rank its number.",
        see=("incomplete-steps", "counted-microbatches"),
    ),
    Code(
        name="overlapping-slices",
        severity="warning",
        summary="actions of one rank run at the same time",
        meaning=(
            "actions of one rank overlap in a timeline: an end is written as a duration, starts are taken before the "
            "work begins, or several ranks are taken as one, as where rows of one rank name several replicas; the "
            "message names the first"
        ),
        effect="What overlaps counts once, as work: the bubble is too small, and durations and causes are off.",
        remedy=(
            "Look at the two actions that the message names. Take starts behind the receive, synchronize the device "
            "around them, and give each rank its number. Overlapped pairs by design need nothing."
        ),
        see=("repeated-actions", "unusable-rows"),
    ),
    Code(
        name="ids-from-one",
        severity="warning",
        summary="stages, micro-batches or ranks that seem to count from 1",
        meaning=(
            "stages, micro-batches or ranks of a timeline, or those of labels, seem to count from 1: the numbers from "
            "there on are all there, and 0 is not. Those of labels are moved to count from 0, unless a rank before "
            "stage 1 may be missing; those of timelines are taken as they are"
        ),
        effect=(
            "Labels: the numbers of the report are one lower than those of the labels. Timelines: number 0 counts as "
            "missing: a stage more, an unknown bubble, or departures from every order."
        ),
        remedy="Write ids from 0. Where number 0 is missing indeed, give its file too.",
        see=("missing-ranks", "ignored-columns"),
    ),
    Code(
        name="ignored-columns",
        severity="info",
        summary="columns of a table that mean nothing here",
        meaning=(
            "columns of a table that mean nothing here, or tell what another column tells, are left aside; the message "
            "names the first"
        ),
        effect="None, unless a column was meant to tell something.",
        remedy="Name columns as docs/timelines.md lists them.",
        see=("unusable-rows", "ignored-slices"),
    ),
    Code(
        name="ignored-slices",
        severity="info",
        summary="slices of a timeline that are no part of the pipeline by their names",
        meaning=("slices of a timeline are no part of the pipeline by their names; they count as idle time"),
        effect="If they are work of forwards or backwards, the bubble is too large by their time.",
        remedy="Rename what is forward or backward, or state it with --label.",
        see=("unusable-rows", "unexplained-work"),
    ),
    Code(
        name="unusable-rows",
        severity="warning",
        summary="rows or events of a timeline that cannot be used",
        meaning=(
            "rows or events of a timeline have no usable time, or tell neither rank nor stage nor step; they are left "
            "out"
        ),
        effect="What they stood for is missing: a few make steps incomplete, many make the bubble too large.",
        remedy="Mend what writes the timeline; the message names the first row, or says what lacks.",
        see=("incomplete-steps", "ignored-slices", "repaired"),
    ),
    Code(
        name="unjoined-labels",
        severity="warning",
        summary="labels name actions, and nothing says which kernels are theirs",
        meaning=(
            "labels name actions, and no launch joins kernels to them: the export lacks the launches, or their "
            "correlation ids. The order and the stages of the labels are used, and kernels tell when actions ran"
        ),
        effect=(
            "Stages and the layout stand. Where kernels come out as the actions that labels name, these are their "
            "names (told-by-kernels); where they do not, the bubble is unknown (unlabelled)."
        ),
        remedy="Keep the launches of kernels, and their correlation ids, in the recording and in what is cut from it.",
        see=("told-by-kernels", "unlabelled"),
    ),
    Code(
        name="backward-unlabelled",
        severity="warning",
        summary="labels name forwards only",
        meaning=(
            "the labels of a training name forwards only and nothing tells its backwards; its forwards are not read"
        ),
        effect="The labels are not used: the rank's actions are told by other means, or not at all.",
        remedy="Label the backwards too, or read them with --label B=REGEX.",
        see=(
            "unmatched-label",
            "unlabelled",
        ),
    ),
    Code(
        name="unmatched-label",
        severity="warning",
        summary="a pattern of --label matches nothing",
        meaning="a pattern of --label matches nothing in a file",
        effect="As if the option were not there, for that file.",
        remedy="Look at the names of the ranges in the file, and mend the pattern.",
        see=("backward-unlabelled",),
    ),
    Code(
        name="no-launch",
        severity="info",
        summary="kernels without a launch",
        meaning=(
            "kernels of an export of Nsight Systems have no launch in it: most were launched before the recording began"
        ),
        effect="They are told by when they ran; the first step is mostly incomplete.",
        remedy="None is needed. To avoid it, let the recording begin before the step does.",
        see=(
            "lost-kernels",
            "lost-events",
        ),
    ),
    Code(
        name="hidden-kernels",
        severity="warning",
        summary="CUDA graphs were recorded as one block each",
        meaning=(
            "CUDA graphs were recorded as one block each: their kernels and messages are hidden and count as "
            "compute; the option that shows them is in the message"
        ),
        effect="degraded: waiting in receives inside a graph counts as compute, so that the bubble looks too small.",
        remedy="Record with nsys profile --cuda-graph-trace=node.",
        see=(
            "told-by-kernels",
            "compute",
        ),
    ),
    Code(
        name="nccl-payloads",
        severity="info, warning",
        summary="sends and receives do not name their peer",
        meaning=(
            "sends and receives of NCCL do not name their peer; the flag of the export that brings it is in the "
            "message. A warning where the layout would have needed it"
        ),
        effect="None where process groups or labels tell the layout. Else pairs of messages go by order and counts.",
        remedy="Export with the flag in the message, from the same report.",
        see=(
            "layout-assumed",
            "unpaired-p2p",
        ),
    ),
    Code(
        name="lost-events",
        severity="warning",
        summary="Nsight Systems says that events may be missing",
        meaning="Nsight Systems warns that events may be missing from the recording",
        effect="degraded: lost kernels look like idle time, and the bubble may be too large.",
        remedy="Record less (fewer steps, fewer kinds of event), and look for lost-kernels.",
        see=(
            "lost-kernels",
            "incomplete-steps",
        ),
    ),
    Code(
        name="unmerged-log",
        severity="warning",
        summary="the file of an export was not finished",
        meaning=(
            "a log or journal of SQLite lies beside its file: whatever wrote it did not finish, or still writes, "
            "so that rows may be missing or half written"
        ),
        effect="Rows may be missing or half written: actions and whole ranks may lack.",
        remedy="Export again, with the command in the message.",
        see=("lost-events",),
    ),
    Code(
        name="lost-kernels",
        severity="warning",
        summary="the profiler lost events",
        meaning=(
            "more than 0.5 % of the launches have no kernel, or of the kernels no launch: the profiler lost events"
        ),
        effect="degraded: lost kernels look like idle time, and the bubble may be too large.",
        remedy="Record fewer steps, or with less (no stacks, no shapes, no memory).",
        see=(
            "lost-events",
            "incomplete-steps",
        ),
    ),
)
