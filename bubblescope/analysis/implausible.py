"""What is said of events whose times cannot be: one finding an input, graver where a used step lacks them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from bubblescope.model import writing as words
from bubblescope.model.job import Job
from bubblescope.model.trace import Doubts, Finding, Severity

__all__ = ["implausible"]

_DONE: tuple[tuple[str, str, str], ...] = (
    ("unplaced", "event", "left out: no usable time"),
    ("misplaced", "event", "left out: nothing can have been there"),
    ("shortened", "event", "kept without a length, which is negative or longer than can be"),
    ("overran", "kernel", "cut where the next one of the stream had begun, or as long as others of the name"),
    ("ahead", "kernel", "kept that began before the launch: the clock of the GPU is off"),
    ("overlapping", "kernel", "kept that overlap others of the stream: they are many, so that it may be several"),
)
"""Counts of doubts, what they count, and what became of it."""


def implausible(job: Job, used: AbstractSet[int]) -> list[Finding]:
    """Findings by input: a warning where a used step may lack work, as it may where an event has no place at all."""
    inputs: dict[str, list[int]] = {}
    for rank, timeline in job.timelines.items():
        inputs.setdefault(timeline.source.path, []).append(rank)
    findings = []
    for path, ranks in inputs.items():
        doubts = [job.timelines[rank].doubts for rank in ranks]
        steps = used & {step for rank in ranks for step in job.timelines[rank].doubted}
        counts = {name: _total(doubts, name) for name, *_ in _DONE}
        if any(counts.values()):
            severity: Severity = "warning" if steps or counts["unplaced"] else "info"
            longest = max(each.overran_ns for each in doubts)
            findings.append(Finding("implausible-times", severity, _said(counts, longest, sorted(steps)), path))
        if doubled := _total(doubts, "doubled"):
            message = f"{doubled} events stand in the file twice; each counts once"
            findings.append(Finding("doubled-events", "info", message, path))
    return findings


def _total(doubts: list[Doubts], name: str) -> int:
    return sum(getattr(each, name) for each in doubts)


def _said(counts: dict[str, int], longest: int, steps: list[int]) -> str:
    by = {"overran": f" (by up to {words.duration(longest)})"}
    parts = [
        f"{words.counted(counts[name], what)} {done}{by.get(name, '')}" for name, what, done in _DONE if counts[name]
    ]
    where = [f"used steps that may be concerned: {words.rank_list(steps)}"] if steps else []
    return "; ".join((*parts, *where))
