"""The bubble that the schedule itself owes: more micro-batches, other schedules, fewer stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from bubblescope.advice.context import Basis, Context, gained, proposal, sentences
from bubblescope.model import writing as words
from bubblescope.model.actions import Kind
from bubblescope.model.changes import Changes, Trouble
from bubblescope.model.report import Proposal
from bubblescope.model.whatif import Forecast, Run
from bubblescope.schedules.family import Shape

__all__ = [
    "more_microbatches",
    "needed",
    "rule_of_thumb",
    "smaller_microbatches",
    "tensor_parallel",
    "virtual_stages",
    "zero_bubble",
]

_ASKED = (0.1, 0.05)
"""Shares of the window for which the number of micro-batches is told."""

_FILL_AND_DRAIN = frozenset({"1f1b", "gpipe", "eager-1f1b", "interleaved-1f1b", "looped-bfs"})
"""Schedules that stand idle for (p-1)(F+B)/v, however many micro-batches there are."""

_LOOPED = "interleaved-1f1b"
_HOLDS_SEVERAL = frozenset({_LOOPED, "looped-bfs"})
"""Schedules in which stages go round the ranks, as often as they like."""

_NODE = 8
"""Tensor-parallel ranks that a node takes at most; beyond it their collectives leave the fast links (SC'21, 3.1)."""
_LEAST_STAGES = 4

_EVEN = frozenset[Trouble]({"imbalance"})
_PART = {2: "half", 4: "a quarter"}
_COUNTS = {2: "two", 4: "four"}

_NEGLIGIBLE = 0.05
"""A bubble below this share is left out where m = 4p is said to leave one."""

_SPREAD = 0.01
"""Share of a step from which it is told that a gain comes from spreading a heavy stage over ranks."""


def needed(idle: float, share: float) -> int:
    """Micro-batches for a bubble of `share`; `idle` is the rank's idle time over its time for one micro-batch.

    From share = idle / (idle + m). With idle = (p-1)/v: m >= (p-1)(1-share) / (v share), GPipe, arXiv 1811.06965.
    """
    return ceil(idle * (1 - share) / share - 1e-9)


def rule_of_thumb(p: int, v: int = 1) -> float:
    """The bubble that m = 4p leaves, (p-1) / (4pv + p - 1): GPipe calls it negligible."""
    return (p - 1) / (4 * p * v + p - 1)


def more_microbatches(context: Context) -> Iterator[Proposal]:
    """Twice as many a step; how many a bubble of 10 % and of 5 % takes."""
    run = context.run
    told = None if run is None else context.ask(Changes(microbatches=2 * run.microbatches))
    if run is None or told is None:
        return
    yield proposal(
        "more-microbatches",
        f"Run more micro-batches a step: {2 * run.microbatches} instead of {run.microbatches}",
        sentences(_twice(context, run, told), _how_many(context, run)),
        gained(told),
        Basis(
            formula="m >= (p-1)(1-share) / (v share) for a share of the window; m = 4p leaves (p-1) / (4pv + p - 1)",
            limits=(
                "The global batch grows, which changes training; memory grows too where all are held (gpipe). "
                "GLM-130B ran p = 8 with m = 176, which leaves 3.8%, where m = 4p leaves 18%."
            ),
            source="GPipe, arXiv 1811.06965; Megatron-LM, arXiv 2104.04473, section 2.2; arXiv 2210.02414, B.4",
        ),
    )


def _twice(context: Context, run: Run, told: Forecast) -> str:
    becomes = context.becomes(told)
    opening = f"{words.counted(run.pp, 'rank')} fill and drain for {words.counted(run.microbatches, 'micro-batch')}"
    return f"{opening}; with twice as many {becomes}." if becomes else f"{opening}."


def _how_many(context: Context, run: Run) -> str:
    """What theory says of the run, of the shares in `_ASKED` that it does not reach, and of m = 4p."""
    idle = _idle(context, run)
    if idle is None:
        return ""
    owed = context.report.bubble.formula
    facts = [] if owed is None else [f"the bubble is {words.percent(owed)}"]
    missed = [share for share in _ASKED if needed(idle, share) > run.microbatches]
    if missed:
        counts = [(share, _runnable(context, run, needed(idle, share))) for share in missed]
        takes = [f"{share:.0%} {'' if k else 'takes '}m = {m}" for k, (share, m) in enumerate(counts)]
        facts.append(", ".join(takes) + (f" (multiples of p = {run.pp})" if _grouped(context) else ""))
    left = rule_of_thumb(run.pp, run.virtual)
    if run.schedule in _FILL_AND_DRAIN and left >= _NEGLIGIBLE:
        facts.append(f"m = 4p = {4 * run.pp}, often called negligible, still leaves {words.percent(left)}")
    return f"On paper, with stages alike and transfers free, {'; '.join(facts)}." if facts else ""


def _grouped(context: Context) -> bool:
    return context.family is not None and context.family.grouped and context.run is not None and context.run.virtual > 1


def _runnable(context: Context, run: Run, m: int) -> int:
    """The next number of micro-batches that the schedule takes: a multiple of p where it takes them in groups."""
    if _grouped(context):
        return -(-m // run.pp) * run.pp
    family = context.family
    fits = (
        each
        for each in range(m, m + 2 * run.pp)
        if family is None or family.problem(Shape(run.pp, each, run.virtual)) is None
    )
    return next(fits, m)


def _idle(context: Context, run: Run) -> float | None:
    """A rank's idle time over its time for one micro-batch, whatever m is; None where no closed form tells."""
    if run.schedule in _FILL_AND_DRAIN:
        return (run.pp - 1) / run.virtual
    family, schedule = context.family, context.found.schedule
    if family is None or family.idle is None or schedule is None or run.schedule == "naive":
        return None
    shape = schedule.shape
    idle = family.idle.value(Shape(run.pp, run.microbatches, shape.v, shape.slices), schedule.costs)
    return None if idle is None or not schedule.costs.total else idle / schedule.costs.total


def smaller_microbatches(context: Context) -> Iterator[Proposal]:
    """Half the size, twice as many, for the same batch."""
    run = context.run
    told = None if run is None else context.ask(Changes(microbatch=0.5))
    if run is None or told is None:
        return
    becomes = context.becomes(told)
    yield proposal(
        "smaller-microbatches",
        f"Cut micro-batches in half: {2 * run.microbatches} instead of {run.microbatches} for the same batch",
        sentences(
            "The pipeline fills and drains with less at a time.",
            f"If halves take half the time, {becomes}." if becomes else "",
        ),
        gained(told),
        Basis(
            formula="m' = 2m and F, B halved: idle (p-1)(F+B)/v halves too",
            limits=(
                "A micro-batch of one sample cannot be cut. Small kernels use the GPU less well, which is not "
                "replayed, and what the host needs a micro-batch is needed twice as often."
            ),
            source="GPipe, arXiv 1811.06965; Megatron-LM, arXiv 2104.04473, section 2.2",
        ),
    )


def virtual_stages(context: Context) -> Iterator[Proposal]:
    """Twice as many stages a rank, where stages go round the ranks."""
    run = context.run
    if run is None or context.family is None or not (run.schedule in _HOLDS_SEVERAL or run.virtual == 1):
        return
    schedule = run.schedule if run.schedule in _HOLDS_SEVERAL else _LOOPED
    v = 2 * run.virtual
    change = Changes(schedule=schedule, virtual=v)
    told = context.ask(change)
    if told is None:
        return
    becomes = context.becomes(told)
    yield proposal(
        "virtual-stages",
        f"Hold {v} virtual stages a rank instead of {run.virtual} ({schedule})",
        sentences(
            f"A rank fills and drains with {_PART.get(v, f'1/{v}')} of its layers at a time"
            + (f": {becomes}." if becomes else "."),
            _left(context, change, told),
            context.keeps(told, f"the layers must divide by p v = {run.pp * v}, or be laid out by hand"),
        ),
        gained(told),
        Basis(
            formula="idle (p-1)(F+B)/v",
            limits=(
                f"Layers divide by {run.pp * v} or have a custom layout; twice the messages; Megatron-LM wants "
                f"micro-batches in groups of p = {run.pp} or more. One public report at p = 2 saw 2.3% where theory "
                "says that a bubble of 20% becomes 11%."
            ),
            source="Megatron-LM, arXiv 2104.04473, section 2.2",
        ),
    )


def zero_bubble(context: Context) -> Iterator[Proposal]:
    """Split backwards: the same memory (zb-h1, interleaved-zb) or two chunks a rank (zb-v), whichever gains more."""
    run, family = context.run, context.family
    if run is None or family is None or family.asynchronous or run.schedule == "forward-only":
        return
    if Kind.W in family.kinds and run.schedule != "zb-h1":
        return
    names = [name for name in ("zb-h1" if run.virtual == 1 else "interleaved-zb", "zb-v") if name != run.schedule]
    told = {name: found for name in names if (found := context.ask(Changes(schedule=name))) is not None}
    if not told:
        return
    name = max(told, key=lambda each: gained(told[each]).share)
    best = told[name]
    yield proposal(
        "zero-bubble",
        f"Split backwards into input and weight gradients with {_called(name, run, best)}",
        sentences(
            _filling(context, told, name),
            _left(context, Changes(schedule=name), best),
            context.keeps(best, "the gain assumes that ranks still wait for each other at the step's end (a barrier)"),
        ),
        gained(best),
        Basis(
            formula=(
                "idle zb-h1 (p-1)(F+I-W); zb-v (p-1) max(I/2, I-W) where I >= F >= W. The spans of zb-h2 and zb-v are "
                "free of idle time where F = I = W, their windows with a step barrier are not: (p-1)F and (p-1)I/2 stay"
            ),
            limits=(
                "A global gradient norm, a check of the loss scale or anything else for which all ranks wait between "
                "steps is a barrier; the gain has it in. An optimizer with post-validation does without: its authors "
                "lost 7 to 10% of their throughput with the barrier. Splitting costs memory for what W still needs, "
                "and kernels that were fused."
            ),
            source="Zero Bubble, arXiv 2401.10241, sections 2 and 6, Table 2, appendix E (Table 10)",
        ),
    )


def _called(name: str, run: Run, told: Forecast) -> str:
    """`zb-v, two chunks a rank` where the run has another number."""
    chunks = run.virtual if told.run is None else told.run.virtual
    if chunks == run.virtual:
        return name
    return f"{name}, {_COUNTS.get(chunks, chunks)} {'chunk' if chunks == 1 else 'chunks'} a rank"


def _filling(context: Context, told: dict[str, Forecast], name: str) -> str:
    """What fills the gaps, what that makes of the bubble, and what the other schedule saves."""
    split = any(stage.weight_ns is not None for stage in context.report.stages)
    parts = ["Weight gradients fill the gaps" + ("" if split else ", half of a backward being taken for one")]
    if context.sure:
        parts.append(context.becomes(told[name]))
    rest = [f"{other} saves {context.saves(gained(each))}" for other, each in told.items() if other != name]
    return "; ".join([": ".join(filter(None, parts)), *(rest if context.sure else [])]) + "."


def tensor_parallel(context: Context) -> Iterator[Proposal]:
    """Twice the tensor-parallel ranks within a node, half the stages, the same GPUs."""
    run = context.run
    if run is None or run.tp is None or run.pp < _LEAST_STAGES or 2 * run.tp > _NODE:
        return
    change = Changes(tp=2 * run.tp)
    told = context.ask(change)
    if told is None or told.run is None:
        return
    becomes = context.becomes(told)
    free = run.tp == 1
    yield proposal(
        "tensor-parallel",
        f"Make the pipeline shorter, with {2 * run.tp} tensor-parallel ranks a stage instead of {run.tp}"
        + (", if their collectives cost nothing: this run shows none" if free else ""),
        sentences(
            f"On the same GPUs {told.run.pp} stages take the place of {run.pp}" + (f": {becomes}." if becomes else "."),
            _left(context, change, told),
            f"{'Both' if free else f'All {2 * run.tp}'} ranks of a stage belong in one node"
            + ("." if free else "; collectives are counted at the speed that was measured."),
        ),
        gained(told),
        Basis(
            formula="(n/t - 1) / (m + n/t - 1) with n = p t GPUs a pipeline",
            limits=(
                "More and smaller all-reduces in every layer, which the replay takes to cost nothing where the run has "
                "none to go by. Beyond the GPUs of a node they are slow; GLM-130B found t = 4 better than 8."
            ),
            source="GLM-130B, arXiv 2210.02414, appendix B.4 (Eq. 6); Megatron-LM, arXiv 2104.04473, section 3",
        ),
    )


def _left(context: Context, change: Changes, told: Forecast) -> str:
    """What of a gain is left where stages are even, if a heavy stage that is cut and spread over ranks makes up much.

    That is what the change saves together with even stages, less what even stages save. Where the layers are known a
    change of the stages divides them anew by itself, and the best division of the present stages is what is even.
    """
    heavy = context.report.imbalance.slowest_stage
    if heavy is None or not context.sure or context.points("imbalance") < _SPREAD or not _recut(context.run, told.run):
        return ""
    divided = context.ask(Changes(layers="best"))
    even = divided or context.ask(Changes(without=_EVEN))
    both = told if divided is not None else context.ask(replace(change, without=_EVEN))
    if both is None or even is None:
        return ""
    left = gained(both).share - gained(even).share
    if gained(told).share - left < _SPREAD:
        return ""
    return (
        f"Only {words.percent(max(0.0, left))} of a step would be left of that once stages are even: the rest comes "
        f"from spreading heavy stage {heavy} over ranks."
    )


def _recut(before: Run | None, after: Run | None) -> bool:
    """Whether the model has another number of stages then."""
    return before is not None and after is not None and before.pp * before.virtual != after.pp * after.virtual
