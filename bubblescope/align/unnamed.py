"""What ranks that no label and no group names show of their place in a pipeline: counts and peers of messages, times.

In a pipeline an inner rank receives a message for every forward and every backward that it runs, and sends one; the two
ends are short of half of that for every micro-batch, in an evaluation as in a training. So the ranks that are short
count the pipelines, and how short they are counts the chunks a rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import distinct
from bubblescope.model.job import Pipeline
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = [
    "END",
    "chunks",
    "first_forwards",
    "in_order",
    "line",
    "neighbours",
    "opens_with",
    "shortage",
    "shortages",
]

END = 0.1
"""Messages a forward or backward below which nothing is short."""

Timelines = Mapping[int, RankTimeline]


def line(ranks: Iterable[int]) -> Pipeline:
    """A pipeline of one rank a position."""
    return tuple((rank,) for rank in ranks)


def shortage(timeline: RankTimeline) -> float:
    """Messages that a rank is short of an inner one's two a forward or backward: 0 inside, on an end 1 / v."""
    passes, messages = _a_step(timeline)
    return 2 - messages / passes if passes else 0.0


def shortages(timelines: Timelines) -> dict[int, float]:
    """The same of each rank of a job, by the forwards and backwards that the ranks with most of them run in a step.

    Where stages turn back on a rank, no message parts the forwards of two stages, so that they may look like one.
    """
    counts = {rank: _a_step(timeline) for rank, timeline in timelines.items()}
    most = max((passes for passes, _ in counts.values()), default=0.0)
    return {rank: 2 - messages / most if passes else 0.0 for rank, (passes, messages) in counts.items()}


def _a_step(timeline: RankTimeline) -> tuple[float, float]:
    """Forwards and backwards, those of weights left out, and messages: of most steps, else on average.

    Of an evaluation whose forwards nothing tells, as it keeps no gradients, messages alone are there, in steps of their
    own or beside a training.
    """
    passed = timeline.actions.step[timeline.actions.kind != Kind.W]
    steps = distinct(passed)
    if not len(steps):
        return 0.0, 0.0
    counts = [(int(np.sum(passed == step)), int(np.sum(timeline.messages.step == step))) for step in steps.tolist()]
    usual, often = Counter(counts).most_common(1)[0]
    if 2 * often > len(counts):
        return usual
    return fmean(passes for passes, _ in counts), fmean(messages for _, messages in counts)


def chunks(timelines: Timelines) -> int | None:
    """Chunks a rank, from how short the ends are; None where that is no whole number, or differs."""
    counts = [1 / lacks for lacks in shortages(timelines).values() if lacks > END]
    if not counts or max(counts) - min(counts) > END or abs(min(counts) - round(min(counts))) > END:
        return None
    return max(1, round(min(counts)))


def in_order(ranks: Sequence[int], timelines: Timelines) -> tuple[int, ...]:
    """Ranks of a pipeline from its first stage on.

    Where a rank's first message of a step is a receive, it comes from the stage before: that makes a
    chain. If it does not (receives posted early), the starts of the first forwards order the ranks.
    """
    follower = {before: rank for rank in ranks if (before := _first_source(timelines[rank])) is not None}
    heads = [rank for rank in ranks if _first_source(timelines[rank]) is None]
    chain = heads if len(heads) == 1 else []
    while chain and chain[-1] in follower and len(chain) <= len(ranks):
        chain = [*chain, follower[chain[-1]]]
    if sorted(chain) == sorted(ranks):
        return tuple(chain)
    return tuple(sorted(ranks, key=lambda rank: (_mean_start(timelines[rank]), rank)))


def neighbours(timelines: Timelines, world: int) -> tuple[tuple[int, ...], ...]:
    """The ranks of each pipeline from its first stage on, recorded or named; () where the peers do not make chains.

    The first message of a step comes from the stage before, unless it is a send; the first send behind a
    forward goes to the stage behind. Round the ranks or back, from one chunk to the next, no chain goes on.
    All of `world` must be in one, and none may go on as another behind ranks that nobody recorded.
    """
    before = {rank: _first_source(timeline) for rank, timeline in timelines.items()}
    follower = {source: rank for rank, source in before.items() if source is not None}
    for rank, timeline in timelines.items():
        target = _first_target(timeline)
        if target is not None and target not in timelines:
            follower.setdefault(rank, target)
    chains = []
    for head in sorted({*timelines, *follower} - {*follower.values()}):
        chain = [head]
        while chain[-1] in follower and len(chain) <= len(follower):
            chain.append(follower[chain[-1]])
        chains.append(tuple(chain))
    chains = _both_ways(chains, timelines)
    ranks = sorted(rank for chain in chains for rank in chain)
    depths = {len(chain) for chain in chains}
    open_ = any(chain[0] not in timelines for chain in chains) and any(chain[-1] not in timelines for chain in chains)
    whole = ranks == list(range(world)) and len(depths) == 1 and min(depths) > 1
    return tuple(chains) if whole and (len(chains) == 1 or not open_) else ()


def _both_ways(chains: Sequence[tuple[int, ...]], timelines: Timelines) -> list[tuple[int, ...]]:
    """The chains, two of them as one where their last ranks talk: a pipeline that runs both ways begins at both ends.

    Which end is the first stage's is not told, as both directions do the same; the lower rank's is taken for it.
    """
    ends = {chain[-1]: chain for chain in chains}
    joined = list(chains)
    for last, chain in sorted(ends.items(), key=lambda end: end[1]):
        peers = timelines[last].messages.peer.tolist() if last in timelines else []
        other = next((ends[peer] for peer in peers if peer != last and peer in ends), None)
        if other is not None and chain in joined and other in joined:
            joined[joined.index(chain)] = chain + other[::-1]
            joined.remove(other)
    return joined


def _first_target(timeline: RankTimeline) -> int | None:
    """Whom the first send of most steps goes to, if a forward made it."""
    a, m = timeline.actions, timeline.messages
    sends = m.take((m.direction == Messages.SEND) & (m.after >= 0))
    first = sends.take(np.unique(sends.step, return_index=True)[1])
    targets = first.peer[a.kind[first.after] == Kind.F].tolist()
    return max(set(targets), key=targets.count) if 2 * len(targets) > len(first) else None


def _mean_start(timeline: RankTimeline) -> float:
    starts = first_forwards(timeline)
    return float(np.mean(list(starts.values()))) if starts else 0.0


def _first_source(timeline: RankTimeline) -> int | None:
    """Whom the first message of most steps comes from; None where it is a send."""
    m = _first_messages(timeline)
    sources = [int(peer) if way == Messages.RECV else None for peer, way in zip(m.peer, m.direction, strict=True)]
    return max(set(sources), key=sources.count, default=None)


def opens_with(timeline: RankTimeline) -> int | None:
    """The direction of the first message of most steps.

    Where nothing tells it, what is posted before the first action is its input.
    """
    first = _first_messages(timeline)
    by_place = np.where(first.after < 0, Messages.RECV, Messages.SEND)
    ways = np.where(first.direction == Messages.EITHER, by_place, first.direction).tolist()
    return max(set(ways), key=ways.count, default=None)


def _first_messages(timeline: RankTimeline) -> Messages:
    """The first message of each step."""
    return timeline.messages.take(np.unique(timeline.messages.step, return_index=True)[1])


def first_forwards(timeline: RankTimeline) -> dict[int, int]:
    """Start of the first forward of each step, by the number of the step."""
    a = timeline.actions
    forward = a.take((a.kind == Kind.F) & (a.step >= 0))
    steps, rows = np.unique(forward.step, return_index=True)
    return dict(zip(timeline.steps.number[steps].tolist(), forward.start[rows].tolist(), strict=True))
