"""The pipeline as a picture in characters: a lane a line, time to the right.

A bar shows its text as far as it fits, so that `F12` is the forward of micro-batch 12; a bar too narrow for
that shows its first letter alone. Time in which nothing runs is dotted. Where a terminal is too narrow for
the whole time the picture goes on in further bands below, and where these become too many it is cut.

    time    0        10
    rank 0 |F0F1......B0  B1  |
    rank 1 |..F0B0  F1B1  ....|
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log10
from statistics import median_low

from rich.text import Text

__all__ = ["Bar", "Lane", "Picture", "draw"]

IDLE = "."
STYLES = {"F": "black on bright_blue", "B": "black on green", "I": "black on cyan", "W": "black on yellow"}
"""Colours by the first letter of a bar, of either case."""

_IDLE_STYLE = "dim"
_MOST_LINES = 48
_LEAST_COLUMNS = 20
_STRETCH = 3
"""A bar that needs more than this many times the room of the usual one goes without its number."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What ran from `start` to `end`; its text begins with the letter of its kind."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Lane:
    """The bars of a line from left to right; they do not overlap."""

    label: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Picture:
    """The lines, and what to know about them: that it was cut, or why there are none."""

    lines: tuple[Text, ...]
    notes: tuple[str, ...] = ()


def draw(lanes: Sequence[Lane], width: int, *, most_lines: int = _MOST_LINES) -> Picture:
    """Draw the lanes in lines of at most `width` columns; times are in any unit, and begin at 0."""
    if not any(bar.end > bar.start for lane in lanes for bar in lane.bars):
        return Picture(())
    if len(lanes) >= most_lines:
        return Picture((), (f"No picture: {len(lanes)} lanes are too many lines.",))
    margin = max(len("time"), *(len(lane.label) for lane in lanes))
    columns = width - margin - len(" ||")
    if columns < _LEAST_COLUMNS:
        return Picture((), ("No picture: the terminal is too narrow.",))
    end = max(bar.end for lane in lanes for bar in lane.bars)
    scale = _scale(lanes, columns, end)
    bands = max(1, ceil(_place(end, scale) / columns))
    frame = _Frame(lanes, margin, ceil(_place(end, scale) / bands), scale, end)
    shown = min(bands, max(1, most_lines // (len(lanes) + 1)))
    lines = tuple(line for band in range(shown) for line in frame.band(band))
    return Picture(lines, tuple(_notes(frame, shown, bands)))


def _notes(frame: _Frame, shown: int, bands: int) -> Iterator[str]:
    if shown < bands:
        seen = shown * frame.columns / frame.scale
        yield f"Cut: the picture shows the first {seen / frame.end:.1%} of the time; a wider terminal shows more."
    if any(
        _place(bar.end, frame.scale) - _place(bar.start, frame.scale) < len(bar.text)
        for lane in frame.lanes
        for bar in lane.bars
    ):
        yield "A bar too narrow for its number shows its letter alone, or nothing."


def _scale(lanes: Sequence[Lane], columns: int, end: float) -> float:
    """Columns a unit of time.

    If all fits in one band with all texts, the widest at which the shortest bar is a whole number of columns, so
    that equal bars look equal, and at most two more than the texts need. Otherwise just enough for most texts.
    """
    bars = [bar for lane in lanes for bar in lane.bars if bar.end > bar.start]
    needs = [len(bar.text) / (bar.end - bar.start) for bar in bars]
    shortest = min(bar.end - bar.start for bar in bars)
    whole, widest = ceil(max(needs) * shortest - 1e-9), floor(columns * shortest / end + 1e-9)
    if whole <= widest:
        return min(widest, whole + 2) / shortest
    return max(min(max(needs), _STRETCH * median_low(needs)), columns / end)


def _place(time: float, scale: float) -> int:
    """The column at which a moment lies; a length of whole columns is as wide wherever it begins."""
    return floor(time * scale + 0.5 + 1e-6)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where things lie: `columns` to a band, `scale` columns a unit of time."""

    lanes: Sequence[Lane]
    margin: int
    columns: int
    scale: float
    end: float

    def span(self, bar: Bar) -> tuple[int, int]:
        """The columns from which and to which a bar reaches, counted through all bands."""
        return _place(bar.start, self.scale), _place(bar.end, self.scale)

    def band(self, number: int) -> Iterator[Text]:
        """A ruler, and the part of each lane that lies in a band."""
        first = number * self.columns
        last = min(first + self.columns, _place(self.end, self.scale))
        yield self._ruler(first, last)
        yield from (self._line(lane, first, last) for lane in self.lanes)

    def _line(self, lane: Lane, first: int, last: int) -> Text:
        line = Text(f"{lane.label:<{self.margin}} |", no_wrap=True)
        at = first
        for k in range(bisect_right(lane.bars, first, key=lambda bar: self.span(bar)[1]), len(lane.bars)):
            bar = lane.bars[k]
            start, end = self.span(bar)
            if start >= last:
                break
            line.append(IDLE * (start - at), _IDLE_STYLE)
            line.append(_piece(bar.text, start, end, first, last), STYLES.get(bar.text[:1].upper(), ""))
            at = min(end, last)
        line.append(IDLE * (last - at), _IDLE_STYLE)
        return line.append("|")

    def _ruler(self, first: int, last: int) -> Text:
        """Round times above the columns at which they lie, as far as they do not run into each other."""
        step = _round_up(10 / self.scale)
        text, k = "", ceil(first / self.scale / step - 1e-9)
        while (column := _place(k * step, self.scale) - first) < last - first:
            mark = f"{k * step:.10g}"
            if column >= len(text) + bool(text):
                text = text.ljust(column) + mark
            k += 1
        return Text(f"{'time':<{self.margin}}  {text}"[: self.margin + 3 + self.columns], "dim", no_wrap=True)


def _piece(text: str, start: int, end: int, first: int, last: int) -> str:
    """What a band from `first` to `last` shows of a bar: its text where it first fits whole, else its letter."""
    width = min(end, last) - max(start, first)
    if start >= first:
        return (text if len(text) <= width else text[:1]).ljust(width)[:width]
    told = first - start >= len(text)
    return ("" if told or len(text) > width else text).ljust(width)


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if not 0 < value < inf:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= value * (1 - 1e-9))
