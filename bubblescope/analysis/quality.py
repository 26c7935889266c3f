"""How far the data carries: what is missing, what nobody explains, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bubblescope.align.layout import ASSUMED, COUNTED
from bubblescope.analysis.absence import signs
from bubblescope.analysis.communication import unpaired
from bubblescope.analysis.coverage import coverage, explained
from bubblescope.analysis.implausible import implausible
from bubblescope.analysis.missing import assumptions
from bubblescope.analysis.odd_steps import odd_steps
from bubblescope.analysis.overlaps import overlapping
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.steps import StepUse
from bubblescope.analysis.study import Study
from bubblescope.model import writing as words
from bubblescope.model.groups import serves
from bubblescope.model.job import Job
from bubblescope.model.quality import Quality, Verdict
from bubblescope.model.recorders import recorder
from bubblescope.model.timeline import Work
from bubblescope.model.trace import Finding

__all__ = ["judge", "missing_ranks"]

DEGRADING = frozenset(
    {
        "unexplained-work",
        "unlabelled",
        "told-by-kernels",
        "lost-kernels",
        "lost-events",
        "layout-assumed",
        "steps-assumed",
        "repeated-actions",
        "untold-chunks",
        "hidden-kernels",
        "repaired",
        "truncated",
        "implausible-times",
    }
)
"""Findings under which no number of the pipeline can be fully trusted."""

_WITHOUT_PEERS = frozenset({COUNTED, ASSUMED})
"""Where the layout comes from if nothing names the peers of messages."""

_NOTHING_TOLD = "neither labels nor autograd numbers are there"

EXPLAINED = 0.9
"""Below this share of compute inside actions the numbers are degraded (docs/definitions.md)."""


def missing_ranks(job: Job) -> tuple[int, ...]:
    """Ranks of the job that nobody recorded."""
    return tuple(rank for rank in range(job.plan.world_size) if rank not in job.timelines)


def judge(found: Study, unseen: Sequence[int], doubtful: Sequence[Finding], stated: Sequence[Finding] = ()) -> Quality:
    """The verdict and everything that a reader must know.

    Args:
        found: the study.
        unseen: stages that no rank recorded.
        doubtful: contradictions in its numbers.
        stated: contradictions in what the user said of it, on which no number of the pipeline rests.
    """
    job = found.job
    findings = [f for timeline in job.timelines.values() for f in timeline.findings]
    findings = list(dict.fromkeys(findings))  # what is said of a file that holds several ranks is said once
    odd = implausible(job, {use.number for use in found.uses if use.used})
    findings += [*odd, *job.findings, *found.findings, *doubtful, *stated]
    noticed = [
        _missing(found, unseen),
        _incomplete(found.uses) if found.piped else None,
        odd_steps(found.uses) if found.piped else None,
        _unlabelled(job) if found.piped else _ambiguous(job),
        _told_by_kernels(job) if found.piped else None,
        _unexplained(found.views, found.uses) if found.piped else None,
        _unpaired(found.views) if found.piped and not missing_ranks(job) else None,
        _unaligned(job),
        _assumed(job),
        overlapping(job),
    ]
    findings += [finding for finding in noticed if finding is not None]
    findings = [_pressing(finding, job) for finding in findings]
    unmeasured = {use.left_out for use in found.uses} - {"not-asked", "evaluation"}
    degraded = bool(unseen or doubtful) or (found.piped and not found.used and bool(unmeasured))
    degraded |= any(f.code in DEGRADING and f.severity != "info" for f in findings)
    verdict: Verdict = "degraded" if degraded else "ok"
    return Quality(verdict=verdict, findings=tuple(findings), coverage=coverage(found))


def _pressing(finding: Finding, job: Job) -> Finding:
    """Peers that an export leaves out are worth a warning where the layout would have needed them."""
    talking = any(len(t.messages) for t in job.timelines.values())
    needed = talking and (None in (job.plan.tp, job.plan.dp) or job.plan.source in _WITHOUT_PEERS)
    return replace(finding, severity="warning") if finding.code == "nccl-payloads" and needed else finding


def _missing(found: Study, unseen: Sequence[int]) -> Finding | None:
    job = found.job
    ranks = missing_ranks(job)
    if not ranks:
        return None
    of = f" of {job.plan.world_size}" if job.plan.sized else ""
    message = f"{words.ranks_named(ranks)}{of} {'has' if len(ranks) == 1 else 'have'} no trace"
    if unseen:
        parts = (f"{message}; unseen stages: {_some(unseen)}", *assumptions(job, found.steps))
        return Finding("missing-ranks", "warning", "; ".join(parts))
    return Finding("missing-ranks", "info", message)


def _incomplete(uses: Sequence[StepUse]) -> Finding | None:
    left = [use.number for use in uses if not use.complete]
    if not left:
        return None
    steps = ", ".join(map(str, left[:8])) + (", ..." if len(left) > 8 else "")
    message = f"left out, for actions are missing in them: {len(left)} of {len(uses)} steps ({steps})"
    return Finding("incomplete-steps", "warning", message)


def _unlabelled(job: Job) -> Finding | None:
    ranks = [rank for rank, t in job.timelines.items() if not len(t.actions)]
    if not ranks:
        return None
    whole = [rank for rank in ranks if all(f.code != "truncated" for f in job.timelines[rank].findings)]
    lacking = "no launch joins their labels to kernels" if whole and _unjoined(job, whole[0]) else _NOTHING_TOLD
    why = (
        f"{lacking}, and the kernels between messages do not recur as those of micro-batches would. "
        f"{_remedy(job, whole[0])}"
        if whole
        else "what is left of what was cut off does not tell them"
    )
    message = f"no forward or backward could be told on {words.ranks_named(ranks)}: {why}"
    return Finding("unlabelled", "warning", message)


def _told_by_kernels(job: Job) -> Finding | None:
    ranks = [rank for rank, t in job.timelines.items() if t.reconstruction in {"kernels", "p2p"}]
    if not ranks:
        return None
    owned = sum(_length(t.work.take(t.work.action >= 0)) for t in map(job.timelines.__getitem__, ranks))
    share = owned / max(1, sum(_length(job.timelines[rank].work) for rank in ranks))
    message = (
        f"forwards and backwards of {words.ranks_named(ranks)} were told from kernels and messages alone, "
        f"which explains {share:.0%} of the compute. {_remedy(job, ranks[0])}"
    )
    return Finding("told-by-kernels", "warning", message)


def _remedy(job: Job, rank: int) -> str:
    """What to add, so that forwards and backwards need not be guessed."""
    says = recorder(job.timelines[rank].source)
    if _unjoined(job, rank):
        return f"Keep the launches of kernels in the recording: {says.both_sides}"
    return says.name_work


def _unjoined(job: Job, rank: int) -> bool:
    """Whether a rank has labels that nothing joins to its kernels."""
    return any(finding.code == "unjoined-labels" for finding in job.timelines[rank].findings)


def _length(work: Work) -> int:
    return int(np.sum(work.end - work.start))


def _some(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


def _ambiguous(job: Job) -> Finding | None:
    """Without a pipeline identified: what points to one."""
    found = signs(job)
    if not found:
        return None
    more = "; give the files of all ranks" if len(job.timelines) == 1 or missing_ranks(job) else ""
    message = (
        f"no pipeline could be identified, but the recording may hold one: {'; '.join(found)}. "
        f"{_remedy_of_stages(job)}{more}; or state --pp, which is 1 if there is none"
    )
    return Finding("unlabelled", "warning", message)


def _remedy_of_stages(job: Job) -> str:
    """What to add, so that the stages of the ranks are known: where all actions are, no more than these."""
    if all(len(timeline.actions) for timeline in job.timelines.values()):
        says = recorder(next(iter(job.timelines.values())).source).name_stages
        return says[:1].upper() + says[1:]
    return _remedy(job, min(job.timelines))


def _unexplained(views: Mapping[int, RankView], uses: Sequence[StepUse]) -> Finding | None:
    used = [use.number for use in uses if use.used]
    parts = [explained(view, used) for view in views.values()]
    owned, total = sum(mine for mine, _ in parts), sum(whole for _, whole in parts)
    if not total or owned / total >= EXPLAINED:
        return None
    remedy = recorder(next(iter(views.values())).timeline.source).name_work
    message = f"only {owned / total:.0%} of the compute inside the pipeline belongs to a known action. {remedy}"
    return Finding("unexplained-work", "warning", message)


def _unpaired(views: Mapping[int, RankView]) -> Finding | None:
    halves = unpaired(views)
    if not halves:
        return None
    what = "1 send or receive" if halves == 1 else f"{halves} sends and receives"
    return Finding("unpaired-p2p", "info", f"{what} could not be paired with the other side")


def _assumed(job: Job) -> Finding | None:
    """What groups that nobody describes are taken for."""
    told = {(serves(call) or "", call.op) for t in job.timelines.values() for call in t.calls if call.purpose}
    if not told:
        return None
    by_purpose = {p: ", ".join(sorted(op for each, op in told if each == p)) for p, _ in sorted(told)}
    what = "; ".join(f"{ops} as {purpose}" for purpose, ops in by_purpose.items())
    return Finding("purpose-assumed", "info", f"groups without a description are taken by what they do: {what}")


def _unaligned(job: Job) -> Finding | None:
    if len(job.timelines) < 2 or job.clock.method != "none":
        return None
    lone = [r for pipeline in job.plan.pipelines for ranks in pipeline for r in ranks if r in job.timelines]
    tied = lone and all(job.clock.ties(r for at in p for r in at if r in job.timelines) for p in job.plan.pipelines)
    what = "ranks of different pipelines" if tied else "ranks"
    message = f"the files hold no absolute times, so {what} cannot be compared moment by moment"
    return Finding("clock-uncertain", "warning", message)
