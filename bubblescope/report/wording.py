"""How numbers, names and lists are written; the one place that decides about digits and words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubblescope.model.report import Report

__all__ = [
    "ABSENT",
    "action",
    "amount",
    "bandwidth",
    "bare_points",
    "both_ways",
    "cause_words",
    "chance",
    "counted",
    "duration",
    "enumerate_words",
    "messages_seen",
    "milliseconds",
    "owes",
    "percent",
    "points",
    "rank_list",
    "ratio",
    "schedule_shape",
    "short",
    "size",
    "visible",
]

ABSENT = "–"  # noqa: RUF001  what stands where a number is unknown

CAUSES = {
    "structural": "the schedule itself",
    "imbalance": "uneven stages",
    "straggler": "slow ranks",
    "jitter": "actions that vary from one micro-batch to the next",
    "p2p": "transfers between stages",
    "host": "gaps of the host",
    "residual": "what no cause explains",
}

KINDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}


def cause_words(cause: str) -> str:
    """The cause in plain words; one that is unknown here keeps its name."""
    return CAUSES.get(cause, cause)


def messages_seen(report: Report) -> bool:
    """Whether any message between stages was recorded; if not, gaps of the host hold the transfers too."""
    return any(call.group == "pp" for call in report.communication)


def percent(share: float | None, digits: int = 1) -> str:
    """0.2871 -> 28.7%."""
    return ABSENT if share is None else f"{_unsigned_zero(100 * share, digits)}%"


def points(share: float | None) -> str:
    """0.0144 -> 1.4 points: the difference of two percentages."""
    text = bare_points(share)
    return text if share is None else f"{text} point{'' if text == '1.0' else 's'}"


def bare_points(share: float | None) -> str:
    """0.0144 -> 1.4, for a column whose title names the unit."""
    return ABSENT if share is None else _unsigned_zero(100 * share, 1)


def ratio(value: float | None) -> str:
    """1.3912 -> 1.39."""
    return ABSENT if value is None else f"{value:.2f}"


def chance(value: float) -> str:
    """How likely something is by accident: `p 0.004`, `p below 1e-9`."""
    return "p below 1e-9" if value < 1e-9 else f"p {value:.1g}"


def _unsigned_zero(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def duration(ns: float | None) -> str:
    """A time in the unit that leaves one to three digits before the point."""
    if ns is None:
        return ABSENT
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= scale:
            return f"{_significant(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def _significant(value: float) -> str:
    size_ = abs(value)
    return f"{value:.{0 if size_ >= 1000 else 1 if size_ >= 100 else 2}f}"


def milliseconds(column: Sequence[float | None]) -> list[str]:
    """A column of times in ms, all with the same digits so that the points stand in a line."""
    largest = max((abs(ns) for ns in column if ns is not None), default=0.0) / 1e6
    digits = 3 if largest < 10 else 2 if largest < 100 else 1
    return [ABSENT if ns is None else _unsigned_zero(ns / 1e6, digits) for ns in column]


def size(count: float | None) -> str:
    """A number of bytes in decimal units."""
    if count is None:
        return ABSENT
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


def short(value: float) -> str:
    """A rate in three digits: 0.0241, 2.41, 19.3, 412, 39.5k, 1.20M."""
    rounded = float(f"{value:.3g}")  # 999.6 is 1.00k
    scale, letter = next(((s, name) for s, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if rounded >= s), (1.0, ""))
    return f"{rounded / scale:#.3g}".rstrip(".") + letter


def bandwidth(value: float | None) -> str:
    """Bytes a second in decimal units."""
    return ABSENT if value is None else f"{size(value)}/s"


def amount(value: float) -> str:
    """A mean count: whole where it is whole."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def counted(count: int, noun: str) -> str:
    """`3 ranks`, `1 rank`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"


def enumerate_words(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def rank_list(ranks: Iterable[int], most: int = 6) -> str:
    """0, 1, 2, 5 -> `0-2, 5`; what is beyond `most` runs is only counted."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:most]]
    hidden = sum(map(len, runs[most:]))
    return ", ".join([*shown, f"… {hidden} more"] if hidden else shown) or ABSENT


def ranks_named(ranks: Sequence[int]) -> str:
    """`rank 3` or `ranks 2-4`."""
    return f"rank{'' if len(ranks) == 1 else 's'} {rank_list(ranks)}"


def action(name: str | None) -> str:
    """An action as its short name, or what stands for none."""
    return ABSENT if name is None else name


def schedule_shape(report: Report) -> str:
    """`4 stages and 8 micro-batches`, what the theory's formula takes in."""
    layout, count = report.layout, report.schedule.microbatches
    parts = [counted(layout.pp, "stage")]
    if both_ways(report):
        parts[0] += " in two copies"
    elif layout.virtual > 1:
        parts = [f"{counted(layout.pp * layout.virtual, 'stage')} on {layout.pp} pipeline ranks"]
    if count is not None:
        parts.append(counted(count, "micro-batch"))
    return " and ".join(parts)


def both_ways(report: Report) -> bool:
    """Whether two copies of the model lie on the ranks, one for each way through the pipeline."""
    return report.layout.virtual > 1 and len(report.layout.stages) == report.layout.pp


def owes(report: Report) -> str:
    """`1f1b owes with 4 stages and 8 micro-batches`."""
    return f"{report.schedule.name} owes with {schedule_shape(report)}"


# What an attacker, or a careless kernel author, can put into a name: terminal commands (Cc),
# letters that reverse or hide text (Cf), halves of letters (Cs), and line ends (Zl, Zp).
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with every character that acts instead of showing written as its escape."""
    if text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii") if char < "\ud800" else ascii(char)[1:-1]
