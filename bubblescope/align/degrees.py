"""Degrees of parallelism: what groups tell, what the user states, and what both leave of the number of ranks.

The product of pp, tp, cp and dp is the number of ranks; ep takes its ranks from among these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bubblescope.model.groups import Purpose, serves
from bubblescope.model.job import Pipeline
from bubblescope.model.options import Options
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Finding

__all__ = ["completed", "conflicts", "fitting", "told_degrees"]

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


def fitting(world: int, pp: int, told: Degrees, options: Options, *, rings: bool) -> dict[str, int | None]:
    """The degrees that the traces tell, else those that the user states, unless they do not fit the number of ranks.

    Args:
        world: the ranks of the job.
        pp: positions of a pipeline; of a job without any the ranks that were not recorded may be many.
        told: degrees as groups tell them.
        options: what the user states.
        rings: whether some ranks may be context-parallel, so that tp and dp need not tell all.
    """
    degree = {name: told[name] or getattr(options, name, None) for name in told}
    tp, cp, dp = (degree[name] for name in ("tp", "cp", "dp"))
    ranks = pp * (tp or 1) * (cp or 1) * (dp or 1)
    whole = tp is not None and dp is not None and (cp is not None or not rings)
    fits = ranks == world if whole else world % ranks == 0
    return degree if fits or pp == 1 or world % pp else dict(told)


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
            if tp and cp is None and width % tp == 0:
                cp = width // tp
            else:
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


def conflicts(options: Options, told: Degrees, shown: Degrees, world: int, pp: int) -> tuple[Finding, ...]:
    """Degrees that the user states and the traces deny, by their groups (`told`) or by what else they show.

    Without --pp the traces win, and with it the user does. Degrees that nothing but the number of ranks (`world`, in
    pipelines of `pp`) denies are denied together, for any of them may be wrong.
    """
    stated = {name: n for name in ("pp", "tp", "dp") if (n := getattr(options, name)) is not None}
    free = {name: degree for name, degree in stated.items() if not told[name]}
    denied = [name for name, degree in free.items() if degree != shown.get(name)]
    if options.pp is None and denied and (len(free) > 1 or shown[denied[0]] is None):
        others = {name: degree for name in stated if (degree := told[name])}
        return (*_denied(options, others), _misfit(free, shown, (world, pp, told["cp"] or 1)))
    return _denied(options, {name: told[name] or shown.get(name) for name in stated})


def _denied(options: Options, known: Degrees) -> tuple[Finding, ...]:
    """A finding for each degree that was stated and is known to be another."""
    found = []
    for name, degree in known.items():
        stated = getattr(options, name)
        if degree is not None and stated != degree:
            used = f"{name} {stated if options.pp is not None else degree} is used"
            message = f"--{name} {stated} contradicts the traces, which say {degree}; {used}"
            found.append(Finding("metadata-conflict", "warning", message))
    return tuple(found)


def _misfit(stated: Mapping[str, int], shown: Degrees, ranks: tuple[int, int, int]) -> Finding:
    """Stated degrees that do not fit the ranks: those of the job, of a pipeline, and of a context."""
    world, pp, cp = ranks
    factors = [f"{pp} pipeline ranks", *(f"--{name} {degree}" for name, degree in stated.items())]
    factors += [f"{cp} context-parallel ranks"] if cp > 1 else []
    known = [f"{name} {shown[name]}" for name in stated if shown[name]]
    used = f"{' and '.join(known)} {'are' if len(known) > 1 else 'is'}" if known else "what is stated is not"
    message = f"{' x '.join(factors)} is {pp * cp * math.prod(stated.values())} ranks, but the traces have {world}"
    return Finding("metadata-conflict", "warning", f"{message}; {used} used")
