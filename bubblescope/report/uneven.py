"""Who is slow, and how sure that is: ranks, micro-batches, pauses; nothing where nothing was found."""

from __future__ import annotations

from bubblescope.model.report import Report, Straggler
from bubblescope.report import wording as words

__all__ = ["heaviest", "microbatches", "pauses", "slow_ranks"]

_MOST = 3
_SURE = 0.01  # the chance up to which docs/definitions.md calls a difference real


def heaviest(report: Report) -> str:
    """The heaviest stage over the mean; nothing where no stage was seen."""
    imbalance = report.imbalance
    if imbalance.stage_ratio is None:
        return ""
    who = "the slowest stage" if imbalance.slowest_stage is None else f"stage {imbalance.slowest_stage}"
    level = words.ratio(imbalance.stage_ratio)
    seen = "" if report.bubble.measured is not None else "seen "
    if level == "1.00":
        return f"{seen}stages equally heavy"
    return f"{who} works {level} times the mean {seen}stage{_doubt(report)}"


def _doubt(report: Report) -> str:
    """That the heaviest stage may be so by chance."""
    chances = [stage.chance for stage in report.imbalance.stages if stage.stage == report.imbalance.slowest_stage]
    unsure = [chance for chance in chances if chance is not None and chance >= _SURE]
    return f", which may be chance ({words.chance(unsure[0])})" if unsure else ""


def slow_ranks(report: Report) -> str:
    """The stragglers, and what the slowest costs."""
    slow = report.imbalance.stragglers
    named = [_straggler(one, report) for one in slow[:_MOST]]
    hidden = len(slow) - len(named)
    return "; ".join([*named, *([f"… and {hidden} more, see --json"] if hidden else []), *_price(report)])


def _straggler(one: Straggler, report: Report) -> str:
    text = f"{words.ranks_named(one.ranks)} {words.ratio(one.slowdown)} times the replicas of the stage"
    if one.persistent is not None:
        text += ", in every step" if one.persistent else f", in {words.counted(len(one.steps), 'step')}"
    pair = " or its only replica is quick" if len(report.pipelines) == 2 else ""
    return f"{text} ({words.chance(one.chance)}){pair}"


def _price(report: Report) -> list[str]:
    """By how much shorter steps would be with the slowest rank like the others, if any: others wait for it outside."""
    imbalance = report.imbalance
    if not imbalance.stragglers or imbalance.slowdown is None or imbalance.slowest_rank_share is None:
        return []
    saved = (1 - 1 / imbalance.slowdown) * imbalance.slowest_rank_share
    return [f"without it a step would be {words.percent(saved)} shorter"] if saved >= 0.001 else []


def microbatches(report: Report) -> str:
    """Data length: by how much micro-batches differ, and the longest."""
    data = report.imbalance.data_length
    if data is None or not data.found or data.spread is None:
        return ""
    text = f"micro-batches differ by {words.percent(data.spread)}"
    if data.correlation is not None and data.chance is not None:
        text += f" (correlation {words.ratio(data.correlation)}, {words.chance(data.chance)})"
    if data.slowest:
        worst = data.slowest[0]
        text += f"; longest {words.ratio(worst.factor)} times ({worst.microbatch} in step {worst.step})"
    return text + ("; the same ones in every step" if data.persistent else "")


def pauses(report: Report) -> str:
    """Pauses of forwards."""
    found = report.imbalance.pauses
    if found is None or not found.longest:
        return ""
    worst = found.longest[0]
    return (
        f"{words.counted(found.count, 'forward')}, no backwards: "
        f"{words.percent(found.share)} of the time, longest {words.duration(worst.ns)} "
        f"(rank {worst.rank}, step {worst.step}, {worst.action})"
    )
