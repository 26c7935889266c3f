"""What the numbers rest on, and which of them do not stand; nothing where all is there and all do."""

from __future__ import annotations

from bubblescope.model.quality import Coverage, Quality, RankCoverage
from bubblescope.report import wording as words

__all__ = ["covered", "trust"]

_WHOLE = 0.9995
"""From here on a share is shown as 100.0%."""
_SHARES = (
    ("launched", "of the kernels have a launch"),
    ("explained", "of the compute belongs to an action"),
    ("paired", "of the sends and receives are paired"),
)
_LEFT_OUT = {"no-pipeline": "in no pipeline", "no-actions": "without actions"}


def covered(quality: Quality) -> str:
    """The shares that are not whole, each with the rank where it is least; and ranks without a part in the pipeline."""
    found = quality.coverage
    if found is None:
        return ""
    return "; ".join([*_shares(found), *_left_out(found)])


def _shares(found: Coverage) -> list[str]:
    return [
        f"{words.percent(share)} {text}{_least(found, name)}"
        for name, text in _SHARES
        if (share := getattr(found, name)) is not None and share < _WHOLE
    ]


def _least(found: Coverage, name: str) -> str:
    """Which rank has the least, where it has less than the job."""
    known: list[tuple[float, RankCoverage]] = [(s, r) for r in found.ranks if (s := getattr(r, name)) is not None]
    least, rank = min(known, key=lambda pair: pair[0])
    return (
        f" (rank {rank.rank}: {words.percent(least)})"
        if words.percent(least) != words.percent(getattr(found, name))
        else ""
    )


def _left_out(found: Coverage) -> list[str]:
    why: dict[str, list[int]] = {}
    for rank in found.ranks:
        if rank.left_out is not None:
            why.setdefault(rank.left_out, []).append(rank.rank)
    return [f"{words.ranks_named(ranks)} {_LEFT_OUT[reason]}" for reason, ranks in why.items()]


def trust(quality: Quality) -> str:
    """The numbers that do not stand, by verdict and reasons."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in quality.numbers:
        if each.verdict != "ok":
            alike.setdefault((each.verdict, each.reasons), []).append(each.number)
    return "; ".join(
        f"{words.enumerate_words(numbers)} {verdict} ({', '.join(reasons)})"
        for (verdict, reasons), numbers in alike.items()
    )
