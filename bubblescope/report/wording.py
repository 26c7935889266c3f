"""How numbers, names and lists are written; the one place that decides about digits and words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bubblescope.model.writing import (
    ABSENT,
    amount,
    bandwidth,
    bare_points,
    chance,
    counted,
    duration,
    enumerate_words,
    percent,
    plain,
    points,
    rank_list,
    ranks_named,
    ratio,
    size,
    sizes,
    steps_named,
)

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
    "plain",
    "points",
    "rank_list",
    "ranks_named",
    "ratio",
    "schedule_shape",
    "short",
    "size",
    "sizes",
    "steps_named",
    "visible",
]

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
    return any((call.group, call.op) == ("pp", "send_recv") for call in report.communication)


def milliseconds(column: Sequence[float | None]) -> list[str]:
    """A column of times in ms, all with the same digits so that the points stand in a line."""
    largest = max((abs(ns) for ns in column if ns is not None), default=0.0) / 1e6
    digits = 3 if largest < 10 else 2 if largest < 100 else 1
    return [ABSENT if ns is None else plain(ns / 1e6, digits) for ns in column]


def short(value: float) -> str:
    """A rate in three digits: 0.0241, 2.41, 19.3, 412, 39.5k, 1.20M."""
    rounded = float(f"{value:.3g}")  # 999.6 is 1.00k
    scale, letter = next(((s, name) for s, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if rounded >= s), (1.0, ""))
    return f"{rounded / scale:#.3g}".rstrip(".") + letter


def action(name: str | None) -> str:
    """An action as its short name, or what stands for none."""
    return ABSENT if name is None else name


def schedule_shape(report: Report) -> str:
    """`4 stages and 8 micro-batches`, what the theory's formula takes in."""
    layout, count = report.layout, report.schedule.microbatches
    if layout.pp is None:
        parts = ["an unknown number of stages"]
    elif both_ways(report):
        parts = [f"{counted(layout.pp, 'stage')} in two copies"]
    elif layout.virtual == 1:
        parts = [counted(layout.pp, "stage")]
    else:
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
# `::error file=a::text` at the beginning of a line, where a word may come to stand, and `##[error]text` anywhere
# (actions/runner, src/Runner.Common/ActionCommand.cs).
_COMMAND = re.compile(r"(?<!\S)(?=::[a-zA-Z-]+[^:]*::)|(?<=##)(?=\[)")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with every character that acts instead of showing written as its escape.

    A backslash before what a CI system would take for a command of its own makes it text.
    """
    text = _COMMAND.sub(r"\\", text)
    if text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii") if char < "\ud800" else ascii(char)[1:-1]
