"""Which rank stands where: pp, tp, dp, cp, ep, and the position of each rank in its pipeline.

What is asked first wins: what the user states, the descriptions of process groups, the stages in
labels, the peers of messages, and last, where messages have no peers, how many each rank has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bubblescope.align.coordinates import by_coordinates
from bubblescope.align.degrees import completed, conflicts, fitting, told_degrees
from bubblescope.align.evidence import ASSUMED, COUNTED, by_evidence, deep_enough, join, labelled_depth
from bubblescope.align.sizes import cut_short, is_sized, unsized
from bubblescope.align.unnamed import line
from bubblescope.errors import UsageError
from bubblescope.model.groups import IN_STAGE, Purpose, purpose, serves
from bubblescope.model.job import Pipeline, Plan
from bubblescope.model.options import Options
from bubblescope.model.timeline import Messages, RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["ASSUMED", "COUNTED", "plan"]

Timelines = Mapping[int, RankTimeline]
_PARTNERS = {"tp": "tensor-parallel", "cp": "context-parallel"}
_EXCHANGES = frozenset({"send", "recv", "send_recv", "coalesced"})
Groups = Mapping[int, Mapping[Purpose, tuple[int, ...]]]


def plan(timelines: Timelines, options: Options) -> Plan:
    """Lay out the job; raises UsageError where the user's degrees cannot be."""
    world = deep_enough(timelines, _world_size(timelines))
    drawn = _drawn(timelines, labelled_depth(timelines, world) or 0)
    groups = {rank: {**drawn.get(rank, {}), **_described(rank, timeline)} for rank, timeline in timelines.items()}
    told = told_degrees(timelines, groups)
    rings = told["cp"] is None and _rings(timelines)
    level: Sequence[Pipeline] = ()
    if options.pp is not None:
        degree = told | {name: stated for name in ("pp", "tp", "dp") if (stated := getattr(options, name)) is not None}
        pipelines, source = _by_grid(timelines, options, told["cp"] or 1), "stated"
        world = max(world, *(rank + 1 for pipeline in pipelines for ranks in pipeline for rank in ranks), 0)
    elif told["pp"] is not None:
        degree = fitting(world, told["pp"], told, options, rings=rings)
        pipelines = _by_description(groups) if told["pp"] > 1 else ()
        source = "process groups"
    else:
        evidence = by_evidence(timelines, world)
        degree = fitting(world, max(map(len, evidence.lanes), default=1), told, options, rings=rings)
        pipelines = _with_partners(evidence.lanes, groups, _width(timelines, evidence.lanes, degree, rings=rings))
        source, level = evidence.source, evidence.level
    if not pipelines and degree["pp"] is None and cut_short(timelines):
        pipelines, source = tuple(line([rank]) for rank in sorted(timelines)), ASSUMED
    pp = max((len(p) for p in pipelines), default=1)
    sized = source == "stated" or is_sized(timelines, pipelines, world, assumed=source == ASSUMED)
    evident = _evident_depth(timelines, world) if source == "stated" else None
    degrees = completed(world, pp, degree, pipelines)
    untold = _untold(timelines, degree, pipelines, rings=rings) if source != "stated" else ()
    degrees |= dict.fromkeys(untold)
    return Plan(
        world_size=world,
        pp=pp,
        source=source,
        pipelines=pipelines,
        sized=sized,
        findings=(
            *conflicts(options, told, {**degrees, "pp": evident}, world, pp),
            *(_assumption(source) if sized else unsized(pipelines, timelines)),
            *_either(pipelines, level),
            *_beside(pipelines, untold),
        ),
        **degrees,
    )


def _untold(
    timelines: Timelines, degree: Mapping[str, int | None], pipelines: Sequence[Pipeline], *, rings: bool
) -> tuple[str, ...]:
    """The degrees that nothing tells: which of tp, cp and dp several pipelines are, or the ranks that share a position.

    Args:
        timelines: the ranks that were recorded.
        degree: what groups tell, or the user.
        pipelines: as they were found.
        rings: whether ranks pass messages round inside their actions that no group says to be those of a context.
    """
    several = len(pipelines) > 1
    if rings and several and degree["dp"] is None:
        return ("cp", "dp") if degree["tp"] else ("tp", "cp", "dp")
    if rings and degree["tp"] is None and any(len(ranks) > 1 for line in pipelines for ranks in line):
        return ("tp", "cp")
    nothing = not any(degree[name] for name in ("tp", "dp", "cp"))
    return ("tp", "dp") if several and nothing and _partnered(timelines) else ()


def _rings(timelines: Timelines) -> bool:
    """Whether ranks pass messages round inside actions, as those of a context do, and nobody says with whom."""
    return any(_in_rings(timeline) for timeline in timelines.values())


def _in_rings(timeline: RankTimeline) -> bool:
    calls = timeline.calls
    asked = {calls[c] for c in timeline.unclear_collectives().call.tolist()}
    told = {calls[c] for c in timeline.collectives.call.tolist() if serves(calls[c]) == "cp"}
    return any(not call.ranks for call in told) or any(not call.ranks and call.op in _EXCHANGES for call in asked)


def _partnered(timelines: Timelines) -> bool:
    """Whether ranks of a stage may be partners, nothing telling who is whose."""
    return any(len(timeline.unclear_collectives()) or _of_unknown_ranks(timeline) for timeline in timelines.values())


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


def _drawn(timelines: Timelines, depth: int) -> Groups:
    """Groups by where each rank says that it stands; no pipelines that are shorter than the stages in labels ask for.

    How many there are the places alone do not tell where the last ones are missing.
    """
    groups = by_coordinates({rank: timeline.identity for rank, timeline in timelines.items()})
    return {
        rank: {kind: ranks for kind, ranks in of_rank.items() if kind != "pp" or len(ranks) >= depth}
        for rank, of_rank in groups.items()
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


def _by_description(groups: Groups) -> tuple[Pipeline, ...]:
    """Pipelines from described groups: ranks that share a pipeline, tensor or context group belong together."""
    position = {r: i for g in groups.values() for i, r in enumerate(g.get("pp", ()))}
    joined: list[set[int]] = []
    for rank, group in groups.items():
        for kind in ("tp", "cp"):
            partners = group.get(kind, ())
            known = next((position[peer] for peer in (rank, *partners) if peer in position), 0)
            position.update({peer: known for peer in partners if peer not in position})
        joined = join(joined, {rank, *(r for kind in ("pp", "tp", "cp") for r in group.get(kind, ()))})
    # A rank that no such group holds is in no pipeline.
    return tuple(_by_position(ranks, position) for ranks in sorted(joined, key=min) if ranks & position.keys())


def _by_position(ranks: Iterable[int], position: Mapping[int, int]) -> Pipeline:
    ranks = sorted(ranks)
    at: list[list[int]] = [[] for _ in range(1 + max(position[r] for r in ranks))]
    for rank in ranks:
        at[position[rank]].append(rank)
    return tuple(map(tuple, at))


def _by_grid(timelines: Timelines, options: Options, cp: int) -> tuple[Pipeline, ...]:
    """The user's degrees in Megatron's default order: tensor-parallel ranks are neighbours, stages far apart.

    Context-parallel ranks, of which the traces tell, lie between.

    Megatron-LM, megatron/core/parallel_state.py (RankGenerator, order tp-cp-ep-dp-pp).
    """
    pp, tp = options.pp or 1, options.tp or 1
    stated = max((t.identity.world_size or 0 for t in timelines.values()), default=0)
    world = stated or max(max(timelines, default=0) + 1, pp * tp * (options.dp or 1))
    if world % (pp * tp * cp) or (options.dp or 0) * pp * tp == world:
        cp = 1  # what is stated leaves no room for it
    width = tp * cp
    dp = options.dp or max(1, world // (pp * width))
    if pp * width * dp != world:
        source = "the traces say" if stated else "there are files of"
        beside = f" x {cp} context-parallel ranks" if cp > 1 else ""
        raise UsageError(
            f"--pp {pp} x --tp {tp} x --dp {dp}{beside} is {pp * width * dp} ranks, but {source} {world} ranks"
        )
    if pp == 1:
        return ()
    grid = np.arange(world).reshape(pp, dp, width)
    return tuple(tuple(tuple(map(int, grid[s, d])) for s in range(pp)) for d in range(dp))


def _width(timelines: Timelines, lanes: Sequence[Pipeline], degree: Mapping[str, int | None], *, rings: bool) -> int:
    """How many ranks share a position by the degrees; by that of replicas alone only where some ranks are partners."""
    tp, cp, dp = (degree[name] for name in ("tp", "cp", "dp"))
    untold = not cp and (rings or (not tp and _partnered(timelines)))
    if untold and dp and len(lanes) % (dp * (tp or 1)) == 0:
        return max(1, len(lanes) // dp)
    return (tp or 1) * (cp or 1)


def _with_partners(lanes: Sequence[Pipeline], groups: Groups, width: int) -> tuple[Pipeline, ...]:
    """Join the pipelines whose ranks share a tensor- or context-parallel group; without groups, `width` neighbours.

    Pipelines that so many do not divide stay as they are.
    """
    described = [set(g[kind]) for g in groups.values() for kind in ("tp", "cp") if len(g.get(kind, ())) > 1]
    if described:
        joined = [{k} for k in range(len(lanes))]
        for partners in described:
            joined = join(joined, {k for k, lane in enumerate(lanes) if partners & {r for at in lane for r in at}})
    else:
        width = 1 if len(lanes) % width else width
        joined = [set(range(k, k + width)) for k in range(0, len(lanes), width)]
    members = [[lanes[k] for k in sorted(ks)] for ks in sorted(joined, key=lambda ks: min(ks, default=0)) if ks]
    if any(len(set(map(len, lane))) > 1 for lane in members):  # partners in pipelines of unequal depth are none
        members = [[lane] for lane in lanes]
    return tuple(
        tuple(tuple(sorted(rank for at in position for rank in at)) for position in zip(*lane, strict=True))
        for lane in members
    )


def _evident_depth(timelines: Timelines, world: int) -> int | None:
    """Positions of a pipeline by labels and messages, where these tell it."""
    evidence = by_evidence(timelines, world)
    return len(evidence.lanes[0]) if evidence.lanes and evidence.source != ASSUMED else None


def _assumption(source: str) -> tuple[Finding, ...]:
    if source != ASSUMED:
        return ()
    message = (
        "nothing tells which ranks form a pipeline, so all ranks are taken as one, in their order; "
        "state --pp, --tp and --dp if that is wrong"
    )
    return (Finding("layout-assumed", "warning", message),)


def _either(pipelines: Sequence[Pipeline], level: Sequence[Pipeline]) -> tuple[Finding, ...]:
    if not level:
        return ()
    one, other = (", ".join(str(rank) for at in lines[0] for rank in at) for lines in (pipelines, level))
    message = (
        f"what the ranks did fits a first pipeline of ranks {one} as well as one of ranks {other}; the former is "
        "taken; state --pp, --tp and --dp if that is wrong"
    )
    return (Finding("layout-assumed", "warning", message),)


def _beside(pipelines: Sequence[Pipeline], untold: Sequence[str]) -> tuple[Finding, ...]:
    if "dp" not in untold:
        return ()
    kinds = ["replicas", *(words for name, words in _PARTNERS.items() if name in untold)]
    message = (
        f"nothing tells whether the {len(pipelines)} pipelines found are {' or '.join(kinds)} partners; "
        f"each is measured by itself; state {'--dp' if 'cp' in untold else '--tp or --dp'} to settle it"
    )
    return (Finding("replicas-assumed", "info", message),)
