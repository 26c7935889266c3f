"""Links between ranks, and which of them are slow: surely, by more than others vary, and at a price worth a word.

A line is what one rank sends to another in one direction. The median of a line is compared with that of a peer: of
the lines that carry the same, the lower median of their medians, so that one slow link does not hide another. Where
sizes are known, times are taken per byte. The limits of all medians hold together with a chance of 1 - ALPHA
(Bonferroni); a line is slow if its lower limit is over MARGIN times the upper one of its peer, whatever the clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from bubblescope.align.pairs import NONE
from bubblescope.analysis.edges import BACKWARD, FORWARD, Edges, edges
from bubblescope.analysis.medians import Sorted, needed
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.study import Study
from bubblescope.model.columns import Bools, Floats, Ints
from bubblescope.model.report import Link

__all__ = ["ALPHA", "MARGIN", "MOST", "WORTH", "links", "slow_links"]

ALPHA = 0.01
"""The chance that any limit of any line is wrong."""
MARGIN = 1.2
"""Up to this many times the peer's time a line is like it: links of one kind differ, too."""
WORTH = 0.01
"""Share of the window that a slow line must cost a step, all of its messages together."""
MOST = 32
"""So many links are listed at the most, unless more are slow."""

_DIRECTIONS = {FORWARD: "forward", BACKWARD: "backward"}


def slow_links(found: Study) -> tuple[Link, ...]:
    """The links of a job, the slow ones first, then those that differ most from their peers."""
    moved = edges(found.views, found.job.clock, found.used)
    windows = [step.window.length for step in found.whole or found.steps]
    return links(moved, _hosts(found.views), len(found.used), fmean(windows) if windows else None)


def _hosts(views: Mapping[int, RankView]) -> dict[int, str]:
    named = {rank: view.timeline.identity.host for rank, view in views.items()}
    return {rank: host for rank, host in named.items() if host is not None}


def links(moved: Edges, hosts: Mapping[int, str], steps: int, window: float | None) -> tuple[Link, ...]:
    """The links that messages went over.

    Args:
        moved: the messages.
        hosts: the host of each rank that tells it.
        steps: of how many steps they are.
        window: nanoseconds of the pipeline's window, None where it has none: then no price is asked.
    """
    if not len(moved):
        return ()
    lines = _Lines.of(moved, hosts)
    peers = lines.peers()
    found = [_link(lines, row, peer, steps, window) for row, peer in enumerate(peers.tolist())]
    found.sort(key=lambda link: (not link.slow, -(link.ratio or 0.0), link.source, link.target, link.direction or ""))
    return tuple(found[: max(MOST, sum(link.slow for link in found))])


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Lines and what is known of each, by its number.

    `kind` and `span` are equal for lines that may be compared; `value` are medians, `low` and `high` their limits, in
    nanoseconds, per byte where `sized`; `transfer`, `wait` and `bytes` are medians of the messages, NaN if unknown.
    `doubt` is by how many nanoseconds clocks may be off, infinite if by any. `told` sorts messages by line and value,
    `step` is the step of each of these.
    """

    source: Ints
    target: Ints
    direction: Ints
    messages: Ints
    kind: Ints
    span: Ints
    sized: Bools
    value: Floats
    low: Floats
    high: Floats
    transfer: Floats
    wait: Floats
    bytes: Floats
    bandwidth: Floats
    doubt: Floats
    told: Sorted
    step: Ints
    needed: int

    @classmethod
    def of(cls, moved: Edges, hosts: Mapping[int, str]) -> _Lines:
        """Sort messages by line."""
        keys = np.stack([moved.source, moved.target, moved.direction], axis=1).astype(np.int64)
        first, line = _numbered(keys)
        count, known = len(first), moved.transfer >= 0
        nameless = np.bincount(line, moved.bytes <= 0, count) > 0
        per = np.where(nameless[line], 1, moved.bytes).astype(np.float64)
        told = Sorted(line[known], moved.transfer[known] / per[known], count)
        judged = int(np.sum(told.count > 0))
        tail = ALPHA / (2 * max(judged, 1))
        low, high = told.limits(tail)
        doubt = np.zeros(count)
        unsure = np.where(moved.doubt < 0, np.inf, moved.doubt)
        np.maximum.at(doubt, line[known], unsure[known])
        size = np.where(nameless, np.nan, Sorted(line, moved.bytes, count).median())
        value = told.median()
        return cls(
            source=keys[first, 0],
            target=keys[first, 1],
            direction=keys[first, 2],
            messages=np.bincount(line, minlength=count),
            kind=2 * keys[first, 2] + nameless,
            span=_spans(keys[first, :2], hosts),
            sized=~nameless,
            value=value,
            low=low,
            high=high,
            transfer=Sorted(line[known], moved.transfer[known], count).median(),
            wait=Sorted(line[known], moved.wait[known], count).median(),
            bytes=size,
            bandwidth=np.where(nameless | ~(value > 0), np.nan, 1e9 / np.where(value > 0, value, 1)),
            doubt=doubt,
            told=told,
            step=moved.step[known][told.order],
            needed=needed(tail),
        )

    def peers(self) -> Ints:
        """For each line the one that it is compared with, -1 if there is none.

        Those that run like it between hosts or within one come before all others that carry the same.
        """
        fit = self.told.count >= self.needed
        result = np.full(len(self.value), NONE)
        for groups in (self.kind, 3 * self.kind + self.span):
            for group in np.unique(groups).tolist():
                mine = np.flatnonzero(groups == group)
                peers = _lower_median_of_others(self.value, mine, fit[mine])
                result[mine] = np.where(peers == NONE, result[mine], peers)
        return result

    def weight(self, row: int) -> float:
        """Bytes of a message by which its values count."""
        return float(self.bytes[row]) if self.sized[row] else 1.0


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """Rows of the different keys, sorted by their columns, and for each key the place of its like among them."""
    order = np.lexsort(keys.T[::-1])
    new = np.any(np.diff(keys[order], axis=0, prepend=keys[order[:1]] - 1) != 0, axis=1)
    place = np.empty(len(keys), np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


def _spans(ends: Ints, hosts: Mapping[int, str]) -> Ints:
    """0 within a host, 1 between two, 2 where nobody tells."""
    named = [(hosts.get(a), hosts.get(b)) for a, b in ends.tolist()]
    return np.array([2 if None in pair else int(pair[0] != pair[1]) for pair in named])


def _lower_median_of_others(value: Floats, rows: Ints, fit: Bools) -> Ints:
    """For each of the rows the one of the other fit rows whose value is their lower median, -1 without others."""
    ranked = rows[fit][np.argsort(value[rows[fit]], kind="stable")]
    if not len(ranked):
        return np.full(len(rows), NONE)
    place = np.full(len(value), len(ranked))  # those that are not fit stand behind all
    place[ranked] = np.arange(len(ranked))
    others = len(ranked) - fit
    middle = (others - 1) // 2
    at = middle + (middle >= place[rows])
    return np.where(others > 0, ranked[np.minimum(at, len(ranked) - 1)], NONE)


def _link(lines: _Lines, row: int, peer: int, steps: int, window: float | None) -> Link:
    told, ratio = int(lines.told.count[row]), None
    if peer >= 0 and told and lines.value[peer] > 0:
        ratio = float(lines.value[row] / lines.value[peer])
    slow, evidence = _judged(lines, row, peer, steps, window)
    return Link(
        source=int(lines.source[row]),
        target=int(lines.target[row]),
        direction=_DIRECTIONS.get(int(lines.direction[row])),  # type: ignore[arg-type]
        messages=int(lines.messages[row]),
        untold=int(lines.messages[row]) - told,
        bytes=_whole(lines.bytes[row]),
        transfer_ns=_whole(lines.transfer[row]),
        wait_ns=_whole(lines.wait[row]),
        bandwidth=None if np.isnan(lines.bandwidth[row]) else float(lines.bandwidth[row]),
        ratio=ratio,
        slow=slow,
        evidence=evidence,
    )


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else round(float(value))


def _judged(lines: _Lines, row: int, peer: int, steps: int, window: float | None) -> tuple[bool, str]:
    """Whether a line is slow, and why or why not."""
    told, messages = int(lines.told.count[row]), int(lines.messages[row])
    if not told:
        return False, "nothing tells when its bytes moved"
    if told < lines.needed:
        return False, f"too few: {told} of {messages} messages tell how long they moved, {lines.needed} are needed"
    if peer < 0:
        return False, "no other link that carries the same has messages enough to compare with"
    weight = lines.weight(row)
    low, high = float(lines.low[row]) * weight, float(lines.high[peer]) * weight
    if lines.value[row] <= MARGIN * lines.value[peer]:
        return False, f"no more than {MARGIN:g} times its peers"
    limits = f"median surely over {_time(low)}, of its peers under {_time(high)}"
    if low <= MARGIN * high:
        return False, f"slower, but not surely: {limits}"
    unsure = float(lines.doubt[row]), float(lines.doubt[peer]) * weight / lines.weight(peer)
    if low - unsure[0] <= MARGIN * (high + unsure[1]):
        return False, f"slower, but the clocks may be off by as much: {limits}"
    cost = float(lines.value[row] - lines.value[peer]) * weight * messages / max(steps, 1)
    if window is not None and cost < WORTH * window:
        return False, f"slower, but that takes under {WORTH:.0%} of the window: {limits}"
    return True, f"{limits}; slower in {_slower_steps(lines, row, peer)}{_between(lines, row, peer)}"


def _slower_steps(lines: _Lines, row: int, peer: int) -> str:
    """In how many of the steps the median of a line is over that of its peer by the margin."""
    mine = slice(lines.told.first[row], lines.told.first[row + 1])
    numbers = np.unique(lines.step[mine], return_inverse=True)[1]
    medians = Sorted(numbers, lines.told.values[mine], int(numbers.max()) + 1).median()
    slower = int(np.sum(medians > MARGIN * lines.value[peer]))
    return f"{slower} of {len(medians)} steps"


def _between(lines: _Lines, row: int, peer: int) -> str:
    """A remark where a line crosses from host to host and its peer does not."""
    return "; it runs between hosts, its peers within one" if (lines.span[row], lines.span[peer]) == (1, 0) else ""


def _time(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms" if ns >= 1e5 else f"{ns / 1e3:.3g} us"
