"""How numbers and lists of names are written, wherever a text holds any; the one place that decides about digits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "ABSENT",
    "amount",
    "bandwidth",
    "bare_points",
    "chance",
    "counted",
    "duration",
    "enumerate_words",
    "percent",
    "plain",
    "points",
    "rank_list",
    "ranks_named",
    "ratio",
    "size",
    "sizes",
    "steps_named",
]

ABSENT = "–"  # noqa: RUF001  what stands where a number is unknown


def percent(share: float | None, digits: int = 1) -> str:
    """0.2871 -> 28.7%."""
    return ABSENT if share is None else f"{plain(100 * share, digits)}%"


def points(share: float | None) -> str:
    """0.0144 -> 1.4 points: the difference of two percentages."""
    text = bare_points(share)
    return text if share is None else f"{text} point{'' if text == '1.0' else 's'}"


def bare_points(share: float | None) -> str:
    """0.0144 -> 1.4, for a column whose title names the unit."""
    return ABSENT if share is None else plain(100 * share, 1)


def ratio(value: float | None) -> str:
    """1.3912 -> 1.39."""
    return ABSENT if value is None else f"{value:.2f}"


def chance(value: float) -> str:
    """How likely something is by accident: `p 0.004`, `p below 1e-9`."""
    return "p below 1e-9" if value < 1e-9 else f"p {value:.1g}"


def plain(value: float, digits: int) -> str:
    """A number with so many digits behind the point, and no minus before a 0."""
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


def size(count: float | None) -> str:
    """A number of bytes in decimal units."""
    if count is None:
        return ABSENT
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


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


def steps_named(steps: Sequence[int]) -> str:
    """`step 3` or `steps 2-4`."""
    return f"step{'' if len(steps) == 1 else 's'} {rank_list(steps)}"


def sizes(steps: Mapping[int, Sequence[int]], most: int = 6) -> str:
    """`1 micro-batch in steps 0-1, 2 in step 4`: the steps of each size; beyond `most` sizes are only counted."""
    numbers = sorted(steps)[:most]
    named = [counted(m, "micro-batch") if m == numbers[0] else str(m) for m in numbers]
    shown = [f"{name} in {steps_named(steps[m])}" for name, m in zip(named, numbers, strict=True)]
    hidden = len(steps) - len(shown)
    return ", ".join([*shown, f"… {counted(hidden, 'more size')}"] if hidden else shown)
