"""What of a report adds up to what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubblescope.model.report import Communication, Rank, Report

__all__ = ["check"]

Sum = tuple[float, list[float], str]
"""A whole, its parts, and what they are in words."""

ROUNDING = 1e-6
"""What sums of shares may be off by: durations are whole nanoseconds, in windows of a millisecond and more."""


def check(report: Report) -> None:
    """Raise ValueError unless the parts of every whole add up to it.

    The causes to the measured bubble, in shares and in points; all but the structural one to the gap; those of a
    position, a phase and a step to its bubble, positions and phases to the whole; to the nanosecond the parts of a
    rank's window to it, and what calls wait and transfer to their total.
    """
    _demand(_of_bubble(report), ROUNDING)
    for rank in report.ranks:
        _demand(_of_rank(rank), 0)
    for call in report.communication:
        _demand(_of_call(call), 0)


def _demand(sums: Iterator[Sum], tolerance: float) -> None:
    for whole, parts, words in sums:
        if not abs(sum(parts) - whole) <= tolerance:
            raise ValueError(f"{words}: the parts add up to {sum(parts)}, not {whole}")


def _of_bubble(report: Report) -> Iterator[Sum]:
    bubble = report.bubble
    if bubble.measured is None or not bubble.causes:
        return
    yield bubble.measured, [cause.share for cause in bubble.causes], "shares of the causes"
    yield bubble.measured, [cause.points for cause in bubble.causes], "points of the causes"
    if bubble.gap is not None:
        yield bubble.gap, [cause.points for cause in bubble.causes[1:]], "points of all causes but the structural"
    for cause in bubble.causes:
        if cause.parts:
            yield cause.points, [part.points for part in cause.parts], f"parts of {cause.cause}"
    at = bubble.by_position
    yield bubble.measured, [row.bubble / len(at) for row in at], "mean of the positions"
    yield bubble.measured, [row.bubble for row in bubble.by_phase], "phases"
    for row in at:
        yield row.bubble, [*row.points.values()], f"points of ranks {row.ranks}"
    for phase in bubble.by_phase:
        yield phase.bubble, [*phase.points.values()], f"points of {phase.phase}"
    for step in report.steps:
        if step.points is not None and step.bubble is not None:
            yield step.bubble, [*step.points.values()], f"points of step {step.step}"


def _of_rank(rank: Rank) -> Iterator[Sum]:
    parts = [rank.compute_ns, rank.in_stage_comm_ns, rank.dp_ns, rank.pp_ns, rank.host_ns, rank.other_ns]
    yield rank.window_ns, [*parts], f"window of rank {rank.rank}"
    if rank.pp_wait_ns is not None and rank.pp_transfer_ns is not None:
        yield rank.pp_ns, [rank.pp_wait_ns, rank.pp_transfer_ns], f"pipeline time of rank {rank.rank}"


def _of_call(call: Communication) -> Iterator[Sum]:
    if call.wait_ns is not None and call.transfer_ns is not None:
        yield call.total_ns, [call.wait_ns, call.transfer_ns], f"{call.group} {call.op}"
