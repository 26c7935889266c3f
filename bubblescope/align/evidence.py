"""Pipelines of one rank a position, where no group is described: stages in labels, then who sends to whom.

What somebody named outranks what is counted, and names of peers outrank numbers of messages. Kernels that send and
receive may be anything where they tell no peer and no direction, so that they make no pipeline, but for one whose
order of actions no other run has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubblescope.align.grids import Counted, by_counting, grids
from bubblescope.align.guess import guess
from bubblescope.align.unnamed import END, in_order, line, neighbours, shortage
from bubblescope.model.job import Pipeline
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["ASSUMED", "COUNTED", "Evidence", "by_evidence", "deep_enough", "join", "labelled_depth"]

ASSUMED = "rank order, assumed"
COUNTED = "message counts"

Timelines = Mapping[int, RankTimeline]
Lanes = Sequence[Pipeline]
Stages = Mapping[int, tuple[int, ...]]
"""The stages that labels name on each rank."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Pipelines of one rank a position, and what tells them; `level` are others that fit as well."""

    lanes: Lanes
    source: str
    level: Lanes = ()


def by_evidence(timelines: Timelines, world: int) -> Evidence:
    """The pipelines that the strongest evidence tells; none where nothing does."""
    for source, evidence in _EVIDENCE:
        found = evidence(timelines, world)
        if isinstance(found, Counted):
            return Evidence(found.lanes, source, found.level)
        if found is not None:
            return Evidence(found, source)
    return Evidence((), "no pipeline messages")


def deep_enough(timelines: Timelines, world: int) -> int:
    """The ranks of the job, at least as many as the stages in labels ask for where nothing states a number.

    Where the deepest stage sends on, there is one more.
    """
    stages = _held(timelines)
    if not stages or any(t.identity.world_size for t in timelines.values()):
        return world
    depth = labelled_depth(timelines, world)
    return max(world, max(map(max, stages.values())) + 2 if depth is None else depth)


def labelled_depth(timelines: Timelines, world: int) -> int | None:
    """Positions of a pipeline by the stages that labels name; None where they name none, or leave it open."""
    stages = _held(timelines)
    return _depth(stages, world, timelines) if stages else None


def _held(timelines: Timelines) -> Stages:
    """The stages that labels tell of each rank."""
    told = {r: tuple(sorted({*t.actions.stage.tolist(), *t.named_stages} - {-1})) for r, t in timelines.items()}
    return {rank: stages for rank, stages in told.items() if stages}


def _talking(timelines: Timelines) -> list[int]:
    """Ranks that send or receive for certain: what tells no direction may be an all-to-all."""
    return [r for r, t in timelines.items() if np.any(t.messages.direction != Messages.EITHER)]


def _by_labels(timelines: Timelines, world: int) -> Lanes | None:
    """By the stages that labels name; None where they name none, or leave open how deep the pipeline is."""
    stages = _held(timelines)
    if not stages:
        return None
    near = {r: stage for r in stages if (stage := _near_stage(timelines[r])) is not None}
    if near.keys() == stages.keys():
        return _by_stages(near, sum(stages[min(near)]) + 1, world)
    depth = _depth(stages, world, timelines)
    return None if depth is None else _by_stages({rank: min(held) for rank, held in stages.items()}, depth, world)


def _of_no_stage(timelines: Timelines, world: int) -> Lanes | None:
    """All ranks as one pipeline, where the actions of each are a pipeline's and name no stage."""
    piped = all(map(_of_some_stage, timelines.values()))
    return [line(range(world))] if piped and world > 1 and not _talking(timelines) else None


def _of_some_stage(timeline: RankTimeline) -> bool:
    """Whether a rank's actions are a pipeline's, although nothing tells which stage it holds.

    What names actions by hand names those of a pipeline. So do labels that only pipelines have, beside kernels that
    may be its messages.
    """
    if timeline.reconstruction == "table":
        return True
    labelled = timeline.reconstruction == "labels" and -1 in timeline.pipelined
    return labelled and len(timeline.unnamed_calls()) + len(timeline.messages) > 0


def _by_peers(timelines: Timelines, world: int) -> Lanes | None:
    """By who sends to whom; None where a label names a stage, or a peer was not named."""
    return None if _held(timelines) else _chains(timelines, _talking(timelines), world) or None


def _by_counts(timelines: Timelines, world: int) -> Counted | None:
    """By how many messages a rank sends and receives, where no label names a stage.

    Without directions the actions must be those of a pipeline, too: one with several stages a rank, as otherwise
    the rank's place would have told the directions (`bubblescope.reconstruct.sides`).
    """
    counted = None if _held(timelines) else by_counting(timelines, world)
    if counted is None or _talking(timelines):
        return counted
    places = {at: timelines[rank] for at, (rank,) in enumerate(counted.lanes[0])}
    return counted if guess(places, len(places)) is not None else None


def _in_a_row(timelines: Timelines, world: int) -> Lanes | None:
    """All ranks as one pipeline, where there surely is one."""
    return [line(range(world))] if _talking(timelines) or (_held(timelines) and world > 1) else None


_EVIDENCE: tuple[tuple[str, Callable[[Timelines, int], Lanes | Counted | None]], ...] = (
    ("labels", _by_labels),
    (ASSUMED, _of_no_stage),
    ("message peers", _by_peers),
    (COUNTED, _by_counts),
    (ASSUMED, _in_a_row),
)
"""What tells pipelines, the strongest first."""


def _near_stage(timeline: RankTimeline) -> int | None:
    """The stage that works on the lower micro-batches, of two that share none: pipelines that run both ways.

    There stage s lies on positions s and p-1-s, and the first half of the micro-batches enters at position 0.
    """
    a = timeline.actions
    stages = np.unique(a.stage[a.stage >= 0]).tolist()
    if len(stages) != 2:
        return None
    first, second = (np.unique(a.microbatch[a.stage == stage]) for stage in stages)
    if first[-1] < second[0]:
        return int(stages[0])
    return int(stages[1]) if second[-1] < first[0] else None


def _depth(stages: Stages, world: int, timelines: Timelines) -> int | None:
    """Positions of a pipeline by the stages that its ranks hold; None where a rank deeper down is missing.

    Chunks that loop are p apart on every rank; chunks that fold back add up to 2p-1.
    """
    apart = {b - a for held in stages.values() for a, b in pairwise(held)}
    folded = {held[0] + held[1] + 1 for held in stages.values() if len(held) == 2}
    round_ = len(apart) == 1 and (min(apart) > 1 or world == 1)  # neighbouring stages of one rank: there it turns back
    if round_ and (world % min(apart) == 0 or len(folded) != 1 or min(folded) % 2):
        return min(apart)
    if apart and len(folded) == 1:
        return min(folded) // 2
    if apart:
        return -(-(max(map(max, stages.values())) + 1) // max(map(len, stages.values())))
    deepest = max(stages, key=lambda rank: stages[rank])
    only_first = stages[deepest] == (0,) and len(timelines[deepest].messages) > 0
    return None if only_first or _goes_on(deepest, stages, timelines) else stages[deepest][0] + 1


def _goes_on(deepest: int, stages: Stages, timelines: Timelines) -> bool:
    """Whether a pipeline goes on behind the deepest stage that a label names, on a rank that nobody recorded.

    That stage talks with the one before it and a rank beyond the files, or sends and receives as an inner one does.
    Numbers say so only if they hold for the first stage, which is no inner one.
    """
    peers = set(timelines[deepest].messages.peer.tolist()) - {-1}
    before = {rank for rank in peers if stages.get(rank, (-1,))[0] == stages[deepest][0] - 1}
    first = [rank for rank, held in stages.items() if held == (0,)]
    counted = _inner(timelines[deepest]) and not any(_inner(timelines[rank]) for rank in first)
    return counted or (bool(before) and not peers <= timelines.keys())


def _inner(timeline: RankTimeline) -> bool:
    """Whether a rank has as many messages as one between two others.

    Where nothing joins labels to kernels it is open how many forwards ran, and what is a message.
    """
    return not timeline.named_stages and len(timeline.messages) > 0 and abs(shortage(timeline)) < END


def _by_stages(position: Mapping[int, int], depth: int, world: int) -> tuple[Pipeline, ...]:
    """Pipelines from the position of each rank, the number of its first stage."""
    if depth < 2:
        return ()
    if world % depth == 0:
        for layout in grids(world, depth):
            placed = {rank: at for pipeline in layout for at, (rank,) in enumerate(pipeline)}
            if all(placed[rank] == at for rank, at in position.items()):
                return tuple(p for p in layout if any(rank in position for (rank,) in p))
    # Neither way fits: the k-th ranks of each position are taken to belong together.
    holders = [[rank for rank in sorted(position) if position[rank] == at] for at in range(depth)]
    return tuple(tuple(tuple(ranks[k : k + 1]) for ranks in holders) for k in range(max(map(len, holders))))


def _chains(timelines: Timelines, talking: Sequence[int], world: int) -> tuple[Pipeline, ...]:
    """Connected components of the graph of peers, first stage first; () where a peer was not named.

    A rank that was not recorded has its place where both of its neighbours were, or at an end.
    """
    chains = neighbours({rank: timelines[rank] for rank in talking}, world)
    if chains:
        return tuple(line(chain) for chain in chains)
    joined: list[set[int]] = []
    for rank in talking:
        peers = set(timelines[rank].messages.peer.tolist()) - {-1}
        if not peers or not peers <= set(timelines):
            return ()
        joined = join(joined, {rank, *peers})
    return tuple(line(in_order(sorted(ranks), timelines)) for ranks in sorted(joined, key=min))


def join(sets: list[set[int]], new: set[int]) -> list[set[int]]:
    """Disjoint sets with one more, which joins those that it touches."""
    touching = [s for s in sets if s & new]
    return [*(s for s in sets if not s & new), set().union(new, *touching)]
