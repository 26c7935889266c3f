"""Which rank stands where: pp, tp, dp, cp, ep, and the position of each rank in its pipeline.

What is asked first wins: what the user states, the descriptions of process groups, the stages in
labels, the peers of messages, and last, where messages have no peers, how many each rank has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from bubblescope.align.coordinates import by_coordinates
from bubblescope.align.sizes import cut_short, is_sized, unsized
from bubblescope.align.unnamed import by_counting, grids, in_order, line, neighbours, shortage
from bubblescope.errors import UsageError
from bubblescope.model.groups import IN_STAGE, Purpose, purpose, serves
from bubblescope.model.job import Pipeline, Plan
from bubblescope.model.options import Options
from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["ASSUMED", "COUNTED", "plan"]

ASSUMED = "rank order, assumed"
COUNTED = "message counts"
Timelines = Mapping[int, RankTimeline]
Groups = Mapping[int, Mapping[Purpose, tuple[int, ...]]]


def plan(timelines: Timelines, options: Options) -> Plan:
    """Lay out the job; raises UsageError where the user's degrees cannot be."""
    world = _deep_enough(timelines, _world_size(timelines))
    drawn = _drawn(timelines, world)
    groups = {rank: {**drawn.get(rank, {}), **_described(rank, timeline)} for rank, timeline in timelines.items()}
    degree = {p: _degree(groups, p) or _counted(timelines, p) for p in ("pp", "tp", "dp", "cp", "ep")}
    for name in ("pp", "tp", "dp"):
        degree[name] = getattr(options, name) or degree[name]
    if options.pp is not None:
        pipelines, source = _by_grid(timelines, options), "stated"
        world = max(world, *(rank + 1 for pipeline in pipelines for ranks in pipeline for rank in ranks), 0)
    elif degree["pp"] is not None:
        pipelines = _by_description(groups) if degree["pp"] > 1 else ()
        source = "process groups"
    else:
        lanes, source = _by_evidence(timelines, world)
        pipelines = _with_partners(lanes, groups, options.tp or 1)
    if not pipelines and degree["pp"] is None and cut_short(timelines):
        pipelines, source = tuple(line([rank]) for rank in sorted(timelines)), ASSUMED
    pp = max((len(p) for p in pipelines), default=1)
    sized = source == "stated" or is_sized(timelines, pipelines, world, assumed=source == ASSUMED)
    evident = _evident_depth(timelines, world) if source == "stated" else None
    degrees = _completed(world, pp, degree, pipelines)
    untold = (
        source != "stated"
        and len(pipelines) > 1
        and not any(degree[name] for name in ("tp", "dp", "cp"))
        and any(len(timeline.unclear_collectives()) or _of_unknown_ranks(timeline) for timeline in timelines.values())
    )
    return Plan(
        world_size=world,
        pp=pp,
        source=source,
        pipelines=pipelines,
        sized=sized,
        findings=(
            *_conflicts(groups, options, pipelines, evident),
            *(_assumption(source) if sized else unsized(pipelines, timelines)),
            *_beside(pipelines, untold),
        ),
        **(degrees if not untold else {**degrees, "tp": None, "dp": None}),
    )


def _of_unknown_ranks(timeline: RankTimeline) -> bool:
    """Whether the stage's own collectives do not say with whom."""
    return any(serves(timeline.calls[c]) in IN_STAGE for c in timeline.collectives.call if not timeline.calls[c].ranks)


def _world_size(timelines: Timelines) -> int:
    """Ranks of the job: as many as stated, named, or members of a communicator; who sends or receives is not alone."""
    stated = [t.identity.world_size or 0 for t in timelines.values()]
    joined = [member.ranks for t in timelines.values() for member in t.identity.memberships]
    messages = [t.messages for t in timelines.values() if len(t.messages)]
    named = [int(m.peer.max()) + 1 for m in messages]
    talking = [2 for m in messages if np.any(m.direction != Messages.EITHER)]
    return max([*stated, *joined, *named, *talking, max(timelines, default=-1) + 1])


def _deep_enough(timelines: Timelines, world: int) -> int:
    """The ranks of the job, at least as many as the stages in labels ask for where nothing states a number.

    Where the deepest stage sends on, there is one more.
    """
    stages = _held(timelines)
    if not stages or any(t.identity.world_size for t in timelines.values()):
        return world
    depth = _depth(stages, world, timelines)
    return max(world, max(map(max, stages.values())) + 2 if depth is None else depth)


def _held(timelines: Timelines) -> dict[int, tuple[int, ...]]:
    """The stages that labels tell of each rank."""
    told = {r: tuple(sorted(set(t.actions.stage.tolist()) - {-1})) for r, t in timelines.items()}
    return {rank: stages for rank, stages in told.items() if stages}


def _drawn(timelines: Timelines, world: int) -> Groups:
    """Groups by where each rank says that it stands; no pipelines where the stages ask for more ranks than are there.

    How many there are the places alone do not tell where the last ones are missing.
    """
    found = by_coordinates({rank: timeline.identity for rank, timeline in timelines.items()})
    stages = _held(timelines)
    depth = (_depth(stages, world, timelines) if stages else None) or 0
    return {
        rank: {kind: ranks for kind, ranks in groups.items() if kind != "pp" or len(ranks) >= depth}
        for rank, groups in found.items()
    }


def _described(rank: int, timeline: RankTimeline) -> dict[Purpose, tuple[int, ...]]:
    """The group of each purpose that holds the rank; the smallest, as some join several purposes.

    The metadata describe groups, and so do the calls themselves.
    """
    found: dict[Purpose, tuple[int, ...]] = {}
    told = [(purpose(group.description), group.ranks) for group in timeline.identity.groups]
    for kind, ranks in (*told, *((serves(call), call.ranks) for call in timeline.calls if call.ranks)):
        if kind is not None and rank in ranks and len(ranks) < len(found.get(kind, range(2**31))):
            found[kind] = ranks
    return found


def _degree(groups: Groups, kind: Purpose) -> int | None:
    return max((len(g[kind]) for g in groups.values() if kind in g), default=None)


def _counted(timelines: Timelines, kind: Purpose) -> int | None:
    """The size of groups of whose members nothing but the number is told."""
    if kind == "pp":
        return None  # its size alone places no rank
    sizes = (call.group_size for t in timelines.values() for call in t.calls if not call.ranks and serves(call) == kind)
    return max((size for size in sizes if size > 0), default=None)


def _by_description(groups: Groups) -> tuple[Pipeline, ...]:
    """Pipelines from described groups: ranks that share a pipeline, tensor or context group belong together."""
    position = {r: i for g in groups.values() for i, r in enumerate(g.get("pp", ()))}
    joined: list[set[int]] = []
    for rank, group in groups.items():
        for kind in ("tp", "cp"):
            partners = group.get(kind, ())
            known = next((position[peer] for peer in (rank, *partners) if peer in position), 0)
            position.update({peer: known for peer in partners if peer not in position})
        joined = _join(joined, {rank, *(r for kind in ("pp", "tp", "cp") for r in group.get(kind, ()))})
    # A rank that no such group holds is in no pipeline.
    return tuple(_by_position(ranks, position) for ranks in sorted(joined, key=min) if ranks & position.keys())


def _join(sets: list[set[int]], new: set[int]) -> list[set[int]]:
    touching = [s for s in sets if s & new]
    return [*(s for s in sets if not s & new), set().union(new, *touching)]


def _by_position(ranks: Iterable[int], position: Mapping[int, int]) -> Pipeline:
    ranks = sorted(ranks)
    at: list[list[int]] = [[] for _ in range(1 + max(position[r] for r in ranks))]
    for rank in ranks:
        at[position[rank]].append(rank)
    return tuple(map(tuple, at))


def _by_grid(timelines: Timelines, options: Options) -> tuple[Pipeline, ...]:
    """The user's degrees in Megatron's default order: tensor-parallel ranks are neighbours, stages far apart.

    Megatron-LM, megatron/core/parallel_state.py (RankGenerator, order tp-cp-ep-dp-pp).
    """
    pp, tp = options.pp or 1, options.tp or 1
    stated = max((t.identity.world_size or 0 for t in timelines.values()), default=0)
    world = stated or max(max(timelines, default=0) + 1, pp * tp * (options.dp or 1))
    dp = options.dp or max(1, world // (pp * tp))
    if pp * tp * dp != world:
        source = "the traces say" if stated else "there are files of"
        raise UsageError(f"--pp {pp} x --tp {tp} x --dp {dp} is {pp * tp * dp} ranks, but {source} {world} ranks")
    if pp == 1:
        return ()
    grid = np.arange(world).reshape(pp, dp, tp)
    return tuple(tuple(tuple(map(int, grid[s, d])) for s in range(pp)) for d in range(dp))


def _by_evidence(timelines: Timelines, world: int) -> tuple[tuple[Pipeline, ...], str]:
    """Without descriptions, pipelines of one rank a position: stages in labels, then who sends to whom."""
    stages = _held(timelines)
    talking = [r for r, t in timelines.items() if np.any(t.messages.direction != Messages.EITHER)]
    near = {r: stage for r in stages if (stage := _near_stage(timelines[r])) is not None}
    if stages and near.keys() == stages.keys():
        return _by_stages(near, sum(stages[min(near)]) + 1, world), "labels"
    depth = _depth(stages, world, timelines) if stages else None
    if depth is not None:
        return _by_stages({rank: min(held) for rank, held in stages.items()}, depth, world), "labels"
    if not talking and all(map(_of_some_stage, timelines.values())) and world > 1:
        return (line(range(world)),), ASSUMED
    if not talking:
        return (), "no pipeline messages"
    peers = _by_peers(timelines, talking, world) if not stages else ()
    if peers:
        return peers, "message peers"
    counted = by_counting(timelines, world) if not stages else None
    if counted is not None:
        return counted, COUNTED
    return (line(range(world)),), ASSUMED


def _of_some_stage(timeline: RankTimeline) -> bool:
    """Whether a rank's actions are a pipeline's, although nothing tells which stage it holds.

    What names actions by hand names those of a pipeline. So do labels that only pipelines have, beside kernels that
    may be its messages.
    """
    if timeline.reconstruction == "table":
        return True
    labelled = timeline.reconstruction == "labels" and -1 in timeline.pipelined
    return labelled and len(timeline.unnamed_calls()) > 0


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


def _depth(stages: Mapping[int, tuple[int, ...]], world: int, timelines: Timelines) -> int | None:
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
    inner = len(timelines[deepest].messages) > 0 and abs(shortage(timelines[deepest])) < 0.1
    peers = set(timelines[deepest].messages.peer.tolist()) - {-1}
    before = {rank for rank in peers if stages.get(rank, (-1,))[0] == stages[deepest][0] - 1}
    inner |= bool(before) and not peers <= timelines.keys()  # between that stage and a rank that nobody recorded
    only_first = stages[deepest] == (0,) and len(timelines[deepest].messages) > 0
    return None if inner or only_first else stages[deepest][0] + 1


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


def _with_partners(lanes: Sequence[Pipeline], groups: Groups, tp: int) -> tuple[Pipeline, ...]:
    """Join the pipelines whose ranks share a tensor- or context-parallel group; without groups, `tp` neighbours."""
    described = [set(g[kind]) for g in groups.values() for kind in ("tp", "cp") if len(g.get(kind, ())) > 1]
    if described:
        joined = [{k} for k in range(len(lanes))]
        for partners in described:
            joined = _join(joined, {k for k, lane in enumerate(lanes) if partners & {r for at in lane for r in at}})
    else:
        joined = [set(range(k, min(k + tp, len(lanes)))) for k in range(0, len(lanes), tp)]
    members = [[lanes[k] for k in sorted(ks)] for ks in sorted(joined, key=lambda ks: min(ks, default=0)) if ks]
    if any(len(set(map(len, lane))) > 1 for lane in members):  # partners in pipelines of unequal depth are none
        members = [[lane] for lane in lanes]
    return tuple(
        tuple(tuple(sorted(rank for at in position for rank in at)) for position in zip(*lane, strict=True))
        for lane in members
    )


def _by_peers(timelines: Timelines, talking: Sequence[int], world: int) -> tuple[Pipeline, ...]:
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
        joined = _join(joined, {rank, *peers})
    return tuple(line(in_order(sorted(ranks), timelines)) for ranks in sorted(joined, key=min))


def _evident_depth(timelines: Timelines, world: int) -> int | None:
    """Positions of a pipeline by labels and messages, where these tell it."""
    lanes, source = _by_evidence(timelines, world)
    return len(lanes[0]) if lanes and source != ASSUMED else None


def _conflicts(
    groups: Groups, options: Options, pipelines: Sequence[Pipeline], evident: int | None
) -> tuple[Finding, ...]:
    """Degrees that the user states and the traces deny."""
    found = []
    shown = {"tp": max(len(at) for at in pipelines[0]), "dp": len(pipelines)} if pipelines else {}
    if evident is not None:
        shown["pp"] = evident
    for name in ("pp", "tp", "dp"):
        stated, described = getattr(options, name), _degree(groups, name) or shown.get(name)
        if stated is not None and described is not None and stated != described:
            used = "" if name == "pp" or options.pp is not None else "; it is not used"
            message = f"--{name} {stated} contradicts the traces, which say {described}{used}"
            found.append(Finding("metadata-conflict", "warning", message))
    return tuple(found)


def _assumption(source: str) -> tuple[Finding, ...]:
    if source != ASSUMED:
        return ()
    message = (
        "nothing tells which ranks form a pipeline, so all ranks are taken as one, in their order; "
        "state --pp, --tp and --dp if that is wrong"
    )
    return (Finding("layout-assumed", "warning", message),)


def _beside(pipelines: Sequence[Pipeline], untold: bool) -> tuple[Finding, ...]:
    if not untold:
        return ()
    message = (
        f"nothing tells whether the {len(pipelines)} pipelines found are replicas or tensor-parallel partners; "
        "each is measured by itself; state --tp or --dp to settle it"
    )
    return (Finding("replicas-assumed", "info", message),)


def _completed(
    world: int, pp: int, degree: Mapping[str, int | None], pipelines: tuple[Pipeline, ...]
) -> dict[str, int | None]:
    """Fill in the degrees that the others leave: what is not pp, tp or cp is dp."""
    tp, dp, cp, ep = (degree[name] for name in ("tp", "dp", "cp", "ep"))
    if pipelines:
        seen = max(len(ranks) for ranks in pipelines[0])
        tp = seen if pp * seen * len(pipelines) == world else tp or max(1, seen)
    if pp * (tp or 1) * (cp or 1) == world:
        tp, cp, dp = tp or 1, cp or 1, 1
    elif tp is not None:
        cp = cp or 1
        dp = dp or max(1, world // (pp * tp * cp))
    return {"tp": tp, "dp": dp, "cp": cp, "ep": ep or (1 if tp else None)}
