"""What the numbers rest on and which of them stand, explained."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["TRUST"]

TRUST = (
    Entry(
        name="launched",
        also=("covered", "coverage"),
        summary="the share of the kernels that have a launch",
        text="Only a launch tells what a kernel was for: one without it belongs to no action, and counts as idle time.",
        keys=(
            "quality.coverage.launched",
            "quality.coverage.kernels",
            "quality.coverage.ranks[].launched",
            "quality.coverage.ranks[].kernels",
        ),
        formula="those whose correlation id is that of a launch in the file",
        unit="share of the kernels of the whole recording, copies and fills apart; null without any",
        example=Example(setting="of 2400 kernels 60 have no launch", rows=(("launched", "1 - 60 / 2400", "97.5%"),)),
        reading="The ends of a recording cut off a few. Many are lost-kernels.",
        pitfalls="0 where the host was not recorded at all: then kernels and messages alone tell the actions.",
        where="Covered, where it is not 100 %",
        see=("explained", "paired", "lost-kernels", "no-launch"),
        section="what-the-numbers-rest-on",
    ),
    Entry(
        name="explained",
        summary="the share of the compute inside the pipeline that belongs to an action",
        text="Compute of no action is not useful work: the bubble is too large by as much.",
        keys=(
            "quality.coverage.explained",
            "quality.coverage.inside_ns",
            "quality.coverage.ranks[].explained",
            "quality.coverage.ranks[].inside_ns",
        ),
        formula="the union of the work of actions in there",
        unit="share of the compute from the first to the last action of each rank and used step; null without any",
        example=Example(
            setting="352 of 400 ms of compute belong to an action", rows=(("explained", "352 / 400", "88%"),)
        ),
        reading="Below 90 % the numbers of the pipeline are degraded (unexplained-work).",
        pitfalls="Before the first action and after the last one nothing needs an explanation.",
        where="Covered, where it is not 100 %",
        see=("launched", "unexplained-work", "compute"),
        section="what-the-numbers-rest-on",
    ),
    Entry(
        name="paired",
        summary="the share of the sends and receives whose other half was found",
        text="Only both halves tell how long a transfer took, and how long its rank waited for the other one.",
        keys=(
            "quality.coverage.paired",
            "quality.coverage.messages",
            "quality.coverage.ranks[].paired",
            "quality.coverage.ranks[].messages",
        ),
        formula="those whose other half was found",
        unit="share of the halves of messages of used steps; null without any",
        example=Example(
            setting="of 192 halves 3 are lost, so that their 3 partners are alone",
            rows=(("messages", "192 - 3", "189"), ("paired", "(192 - 2 * 3) / (192 - 3)", "98.4%")),
        ),
        reading="Below 90 % what is told of communication is degraded (unpaired-p2p).",
        pitfalls="Of a rank that was not recorded no half can be found.",
        where="Covered, where it is not 100 %",
        see=("unpaired-p2p", "communication.transfer", "missing-ranks"),
        section="what-the-numbers-rest-on",
    ),
    Entry(
        name="numbers",
        also=("trust",),
        summary="which numbers of the report stand, and what speaks against the others",
        text=(
            "ok: nothing speaks against it. degraded: a finding does, and is its reason. unusable: it is not there. "
            "Reasons that are no findings: no-step, no-training, no-actions, no-work, no-schedule, no-formula, "
            "residual."
        ),
        keys=("quality.numbers[].verdict", "quality.numbers[].reasons[]", "quality.numbers[].number"),
        hidden=("no-step", "no-training", "no-actions", "no-work", "no-schedule", "no-formula"),
        formula="A number that is not there is unusable",
        unit="a verdict and its reasons for each number",
        example=Example(
            setting="9 numbers, of which layout-assumed speaks against 5", rows=(("numbers that are ok", "9 - 5", "4"),)
        ),
        reading="Use those that are ok, whatever the verdict on the data as a whole.",
        pitfalls="ok says that nothing known speaks against a number, not how exact it is: see spread and the clocks.",
        where="Trust, where one does not stand",
        see=("verdict", "trusted", "launched"),
        section="which-numbers-stand",
    ),
    Entry(
        name="left_out",
        summary="why a step or a rank has no part in the numbers",
        text=(
            "A step: not asked for, incomplete (missing_ranks lack actions of it), an evaluation or with one "
            "inside, of another size than most, or the first. A rank: it is in no pipeline, or none of its actions "
            "could be told."
        ),
        keys=("steps[].left_out", "quality.coverage.ranks[].left_out"),
        hidden=("not-asked", "incomplete", "other-size", "first"),
        formula="it is the first where at least two others remain",
        unit="a word; null if it has a part",
        example=Example(setting="5 steps, the first and a cut one left out", rows=(("used", "5 - 2", "3"),)),
        reading="not-asked comes from --steps; all the rest from the traces.",
        pitfalls="Ranks that were not recorded stand in layout.missing_ranks.",
        where="JSON; Covered",
        see=("used", "kind", "by_microbatches", "incomplete-steps", "missing-ranks"),
        section="what-the-numbers-rest-on",
    ),
)
