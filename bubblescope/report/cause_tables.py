"""The tables of the causes: what the bubble is made of, and where and when.

All in points, parts of the pipeline window of which the structural ones are what the formula says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bubblescope.model.report import Cause, CausePart, PhaseCauses, PositionCauses, Report
from bubblescope.report import wording as words
from bubblescope.report.table import Table

__all__ = ["PHASES", "causes", "where"]

PHASES = {"warmup": "warm-up", "steady": "steady", "cooldown": "cool-down"}

_NOTHING = 0.0005  # rounds to 0.0 points
_MOST_ROWS = 4


def causes(report: Report) -> Table | None:
    """The causes, in the order in which they are asked for, with how far the steps leave each open."""
    bubble = report.bubble
    if not bubble.causes:
        return None
    shown = [cause for cause in bubble.causes if abs(cause.points) >= _NOTHING]
    nothing = [cause.cause for cause in bubble.causes if cause not in shown]
    columns = _columns(report)
    rows = [row for cause in shown for row in _cause(report, cause, columns)]
    blank = [""] * (len(columns) - 1)
    if nothing:
        rows.append((", ".join(nothing), words.bare_points(0.0), *blank, ""))
    rows.append(("measured", words.bare_points(bubble.measured), *blank, _other_ratios(report)))
    largest = max((cause for cause in shown if cause.cause != "structural"), key=lambda c: c.points, default=None)
    strong = [at for at, row in enumerate(rows) if largest and largest.points >= _NOTHING and row[0] == largest.cause]
    return Table(
        title="Where the bubble comes from",
        denominator="points, adding up to the measured bubble; ± standard error over steps",
        align="l" + "r" * len(columns) + "l",
        headers=("cause", *(name for name, _ in columns), "meaning"),
        rows=tuple(rows),
        strong=frozenset(strong),
    )


Column = tuple[str, Callable[[Cause | CausePart], float | None]]


def _columns(report: Report) -> list[Column]:
    """Points, their error where there is any, and the brackets where they were asked for."""
    columns: list[Column] = [("points", lambda cause: cause.points)]
    if any(cause.error is not None for cause in report.bubble.causes):
        columns.append(("±", lambda cause: cause.error))
    if report.bubble.attribution == "shapley":
        columns.append(("alone", lambda cause: getattr(cause, "alone", None)))
        columns.append(("removed", lambda cause: getattr(cause, "removed", None)))
    return columns


def _cause(report: Report, cause: Cause, columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """The row of a cause, and one for each part of it that is some but not all of it."""
    rows = [(cause.cause, *(_optional(value(cause)) for _, value in columns), _meaning(report, cause.cause))]
    parts = [part for part in cause.parts if abs(part.points) >= _NOTHING]
    if [part.part for part in parts] != ["rest"]:
        rows += [
            (f"  {part.part}", *(_optional(value(part)) for _, value in columns), PARTS[part.part]) for part in parts
        ]
    return rows


def _optional(points: float | None) -> str:
    return "" if points is None else words.bare_points(points)


PARTS = {
    "data": "of it: micro-batches that are long on every rank",
    "pauses": "of it: pauses of forwards only, as garbage collection makes them",
    "rest": "of it: all else",
}

MEANINGS = {
    "imbalance": "stages differ in work",
    "straggler": "a rank is slower than the other replicas of its stage",
    "jitter": "times vary from one micro-batch or step to the next",
    "p2p": "transfers between stages",
    "host": "launch gaps, data loading, garbage collection",
    "residual": "left over by the causes above",
}


def _meaning(report: Report, cause: str) -> str:
    if cause == "structural" and report.bubble.formula_source == "simulated":
        return f"what {report.schedule.name} owes with every action as long as the mean of its kind, transfers free"
    if cause == "structural":
        owing = "this order" if report.schedule.name == "unknown" else report.schedule.name
        return f"what {owing} owes even with equal stages and free transfers"
    if cause == "host" and not words.messages_seen(report):
        return "gaps that no action explains; no message was recorded, so transfers are among them"
    return MEANINGS.get(cause, "")


def _other_ratios(report: Report) -> str:
    parts = []
    if report.bubble.ratio_to_ideal is not None:
        parts.append(f"{words.percent(report.bubble.ratio_to_ideal)} of useful time")
    if report.bubble.span is not None:
        parts.append(f"{words.percent(report.bubble.span)} of the longest rank's own span")
    return f"the sum; also {words.enumerate_words(parts)}" if parts else "the sum"


def where(report: Report) -> Table | None:
    """The causes by the ranks that stand idle for them, and by phase."""
    bubble = report.bubble
    if not bubble.by_position:
        return None
    rows: list[PositionCauses | PhaseCauses] = [*_farthest(bubble.by_position), *bubble.by_phase]
    names = [cause for cause in bubble.by_position[0].points if any(abs(row.points[cause]) >= _NOTHING for row in rows)]
    hidden = len(bubble.by_position) + len(bubble.by_phase) - len(rows)
    return Table(
        title="Who waits for what, and when",
        denominator="points; a rank's add up to its bubble, the phases' to the whole; negative: it waits less for it",
        align="l" + "r" * (len(names) + 1),
        headers=("stages or phase", "bubble", *names),
        rows=tuple(
            (_whose(row), words.bare_points(row.bubble), *(words.bare_points(row.points[name]) for name in names))
            for row in rows
        ),
        more=f"… and {hidden} more, see --json" if hidden > 0 else None,
        detail=True,
    )


def _whose(row: PositionCauses | PhaseCauses) -> str:
    if isinstance(row, PhaseCauses):
        return PHASES[row.phase]
    return f"stage {words.rank_list(row.stages, most=3)}"


def _farthest(rows: Sequence[PositionCauses]) -> list[PositionCauses]:
    """A few, those whose bubbles differ most from the mean, in their order."""
    mean = sum(row.bubble for row in rows) / len(rows)
    chosen = sorted(range(len(rows)), key=lambda at: -abs(rows[at].bubble - mean))[:_MOST_ROWS]
    return [rows[at] for at in sorted(chosen)]
