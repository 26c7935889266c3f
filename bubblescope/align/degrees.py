"""Degrees of parallelism: what groups tell, what the user states, and what both leave of the number of ranks.

The product of pp, tp, cp and dp is the number of ranks; ep takes its ranks from among these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubblescope.model.groups import Purpose, serves
from bubblescope.model.job import Pipeline
from bubblescope.model.options import Options
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["completed", "conflicts", "told_degrees"]

Timelines = Mapping[int, RankTimeline]
Groups = Mapping[int, Mapping[Purpose, tuple[int, ...]]]
Degrees = Mapping[str, int | None]
_PURPOSES: tuple[Purpose, ...] = ("pp", "tp", "dp", "cp", "ep")
_WITH_CONTEXT = "DATA_PARALLEL_GROUP_WITH_CP"  # Megatron-LM, megatron/core/parallel_state.py


def told_degrees(timelines: Timelines, groups: Groups) -> dict[str, int | None]:
    """The degree of each purpose by the ranks of its groups, else by their number; None where nothing tells."""
    described = {kind: max((len(g[kind]) for g in groups.values() if kind in g), default=None) for kind in _PURPOSES}
    told: dict[str, int | None] = {kind: described[kind] or _counted(timelines, kind) for kind in _PURPOSES}
    both, dp = _with_context(timelines), told["dp"]
    if told["cp"] is None and dp and both > dp and both % dp == 0:
        told["cp"] = both // dp
    return told


def _counted(timelines: Timelines, kind: Purpose) -> int | None:
    """The size of groups of whose members nothing but the number is told."""
    if kind == "pp":
        return None  # its size alone places no rank
    sizes = (call.group_size for t in timelines.values() for call in t.calls if not call.ranks and serves(call) == kind)
    return max((size for size in sizes if size > 0), default=None)


def _with_context(timelines: Timelines) -> int:
    """Ranks of a group of replicas that holds their context-parallel partners, as Megatron describes it; 0 for none."""
    groups = (group for t in timelines.values() for group in t.identity.groups)
    return max((len(group.ranks) for group in groups if _WITH_CONTEXT in group.description), default=0)


def completed(world: int, pp: int, told: Degrees, pipelines: Sequence[Pipeline]) -> dict[str, int | None]:
    """Fill in the degrees that the others leave: the ranks of a position are tp x cp, what is not pp, tp or cp is dp.

    Args:
        world: the ranks of the job.
        pp: positions of a pipeline.
        told: degrees as groups and the user tell them.
        pipelines: as they were found; where they hold all ranks, so many share a position.
    """
    tp, dp, cp, ep = (told[name] for name in ("tp", "dp", "cp", "ep"))
    if pipelines:
        width = max(len(ranks) for ranks in pipelines[0])
        if pp * width * len(pipelines) == world and (tp or 1) * (cp or 1) != width:
            tp, cp = (width // cp, cp) if cp and width % cp == 0 else (width, None)
        tp = tp or max(1, width // (cp or 1))
    if pp * (tp or 1) * (cp or 1) == world:
        tp, cp, dp = tp or 1, cp or 1, 1
    elif tp is not None:
        cp = cp or 1
        dp = _replicas(world, pp * tp * cp, cp, dp)
    return {"tp": tp, "dp": dp, "cp": cp, "ep": ep or (1 if tp else None)}


def _replicas(world: int, each: int, cp: int, told: int | None) -> int:
    """How many replicas of so many ranks there are.

    Groups that replicas share with their context-parallel partners are larger, those of one of several axes of replicas
    smaller; of more ranks than are known they tell all the same.
    """
    if told and each // cp * told == world:
        told = told // cp if told % cp == 0 else told
    rest = max(1, world // each)
    return told if told and (each * told > world or world % each) else rest


def conflicts(options: Options, told: Degrees, shown: Degrees) -> tuple[Finding, ...]:
    """Degrees that the user states and the traces deny, by their groups (`told`) or by what else they show.

    Without --pp the traces win, and with it the user does.
    """
    found = []
    for name in ("pp", "tp", "dp"):
        stated, known = getattr(options, name), told[name] or shown.get(name)
        if stated is not None and known is not None and stated != known:
            used = f"{name} {stated if options.pp is not None else known} is used"
            message = f"--{name} {stated} contradicts the traces, which say {known}; {used}"
            found.append(Finding("metadata-conflict", "warning", message))
    return tuple(found)
