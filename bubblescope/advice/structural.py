"""The bubble that the schedule itself owes: more micro-batches, other schedules, fewer stages."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from bubblescope.advice.context import Basis, Context, gained, proposal, sentences
from bubblescope.model import writing as words
from bubblescope.model.actions import Kind
from bubblescope.model.changes import Changes
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

_PART = {2: "half", 4: "a quarter"}


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
                "GLM-130B ran p = 8 with m = 176, which leaves 3.8%."
            ),
            source="GPipe, arXiv 1811.06965; Megatron-LM, arXiv 2104.04473, section 2.2; arXiv 2210.02414, B.4",
        ),
    )


def _twice(context: Context, run: Run, told: Forecast) -> str:
    count = words.counted(run.microbatches, "micro-batch")
    becomes = context.becomes(told)
    owed = context.report.bubble.formula
    opening = f"{words.counted(run.pp, 'rank')} fill and drain for {count}"
    if owed is not None:
        opening += f", which owes {words.percent(owed)}"
    return f"{opening}; with twice as many {becomes}." if becomes else f"{opening}."


def _how_many(context: Context, run: Run) -> str:
    idle = _idle(context, run)
    if idle is None:
        return ""
    counts = [f"{needed(idle, share)} for a bubble of {share:.0%}" for share in _ASKED]
    text = f"Theory needs {words.enumerate_words(counts)}"
    if run.schedule not in _FILL_AND_DRAIN:
        return f"{text}."
    left = words.percent(rule_of_thumb(run.pp, run.virtual))
    return f"{text}; the rule of thumb m >= 4p is not enough, as m = {4 * run.pp} still leaves {left}."


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
    told = context.ask(Changes(schedule=schedule, virtual=v))
    if told is None:
        return
    becomes = context.becomes(told)
    yield proposal(
        "virtual-stages",
        f"Hold {v} virtual stages a rank instead of {run.virtual} ({schedule})",
        sentences(
            f"A rank fills and drains with {_PART.get(v, f'1/{v}')} of its layers at a time"
            + (f": {becomes}." if becomes else "."),
            context.keeps(told),
            f"The layers must divide by p v = {run.pp * v}, or be laid out by hand.",
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
        f"Split backwards into input and weight gradients ({name})",
        sentences(
            "Weight gradients wait for nobody and fill the gaps" + _each(context, told),
            context.keeps(best),
            "The step's barrier is counted: only an optimizer with post-validation gets rid of it, and with the "
            "barrier zero bubble lost 7 to 10% of its throughput.",
        ),
        gained(best),
        Basis(
            formula=(
                "idle zb-h1 (p-1)(F+I-W); zb-v (p-1) max(I/2, I-W) where I >= F >= W. The spans of zb-h2 and zb-v are "
                "free of idle time where F = I = W, their windows with a step barrier are not: (p-1)F and (p-1)I/2 stay"
            ),
            limits=(
                "Backwards that are not split in the run are taken as half input, half weight gradients. Splitting "
                "costs memory for what W still needs, and kernels that were fused. A global gradient norm, a check of "
                "the loss scale or anything else for which all ranks wait between steps is a barrier."
            ),
            source="Zero Bubble, arXiv 2401.10241, sections 2 and 6, Table 2, appendix E (Table 10)",
        ),
    )


def _each(context: Context, told: dict[str, Forecast]) -> str:
    """`: with zb-h1 the bubble is 18.2%, with zb-v 16.7%.`."""
    bubbles = [f"{words.percent(each.run.bubble)} with {name}" for name, each in told.items() if each.run is not None]
    if not context.sure or context.run is None:
        return "."
    return f": the bubble goes from {words.percent(context.run.bubble)} to {words.enumerate_words(bubbles)}."


def tensor_parallel(context: Context) -> Iterator[Proposal]:
    """Twice the tensor-parallel ranks within a node, half the stages, the same GPUs."""
    run = context.run
    if run is None or run.tp is None or run.pp < _LEAST_STAGES or 2 * run.tp > _NODE:
        return
    told = context.ask(Changes(tp=2 * run.tp))
    if told is None or told.run is None:
        return
    becomes = context.becomes(told)
    yield proposal(
        "tensor-parallel",
        f"Make the pipeline shorter: {2 * run.tp} tensor-parallel ranks a stage instead of {run.tp}",
        sentences(
            f"On the same GPUs {told.run.pp} stages take the place of {run.pp}" + (f": {becomes}." if becomes else "."),
            f"All {2 * run.tp} ranks of a stage belong in one node.",
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
