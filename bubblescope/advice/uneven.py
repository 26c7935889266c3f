"""Work that is uneven: over stages, over replicas, over micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from bubblescope.advice.context import Basis, Context, Gain, gained, proposal, sentences
from bubblescope.model import writing as words
from bubblescope.model.changes import Changes, Trouble
from bubblescope.model.report import Proposal
from bubblescope.model.whatif import Forecast

__all__ = ["NOTED", "data_length", "garbage_collection", "paused", "stage_imbalance", "straggler", "uneven_actions"]

NOTED = 0.002
"""Points / 100 of a cause below which no replay is asked what it costs."""

_SURE = 0.01
"""The chance up to which a difference is called real."""
_LIGHTER = 1.5
"""How many times as far the lightest stage must be from the mean as the heaviest one to be the one that is named."""
_ALIKE = 0.001
"""Gains that differ by less are told as one."""

_STUDY = "ByteDance, arXiv 2505.05713"


def stage_imbalance(context: Context) -> Iterator[Proposal]:
    """The heaviest stage: the best partition of the layers where they are known, else what even stages bring."""
    imbalance = context.report.imbalance
    heavy, level = imbalance.slowest_stage, imbalance.stage_ratio
    if context.points("imbalance") < NOTED or heavy is None or level is None:
        return
    even = context.without("imbalance")
    if even is None:
        return
    best = context.ask(Changes(layers="best"))
    moved = best if best is not None and gained(best).share >= even.share / 2 else None
    last = max((stage.stage for stage in context.report.stages), default=-1)
    light, lower = _lightest(context)
    if 1 - lower > _LIGHTER * (level - 1):
        title = (
            f"Give more work to stage {light}{_place(light, last)}: it does {words.ratio(lower)} times the mean stage's"
        )
        doubt, why = "", "Move layers to it from the heavier stages."
    else:
        title = f"Take work off stage {heavy}{_place(heavy, last)}: it does {words.ratio(level)} times the mean stage's"
        doubt, why = _doubt(context, heavy), _why(heavy, last)
    yield proposal(
        "stage-imbalance",
        title,
        sentences(
            f"Uneven stages cost {context.costs('imbalance')}{doubt}.",
            _moving(context, moved, even),
            why,
        ),
        even if moved is None else gained(moved),
        Basis(
            formula="T2 - T1 of the causes; an output layer weighs V / (12h + 2s) transformer layers in a forward",
            limits=(
                "Layers are whole: no partition makes stages quite even. Memory moves with the layers. With one "
                "replica a slow GPU looks like a heavy stage: compare clock rates first."
            ),
            source=f"{_STUDY}, section 5; Llama 3, arXiv 2407.21783, section 3.3.2; vocabulary parallelism, 2411.05288",
        ),
    )


def _doubt(context: Context, stage: int) -> str:
    """That a stage may be the heaviest by chance."""
    chances = [row.chance for row in context.report.imbalance.stages if row.stage == stage]
    return ", though which is the heaviest may be chance" if any(p is not None and p >= _SURE for p in chances) else ""


def _lightest(context: Context) -> tuple[int, float]:
    """The stage with the least work, and that over the mean stage's."""
    stages = context.report.stages
    mean = fmean(stage.work_ns for stage in stages) if stages else 0.0
    if not mean:
        return -1, 1.0
    least = min(stages, key=lambda stage: stage.work_ns)
    return least.stage, least.work_ns / mean


def _place(stage: int, last: int) -> str:
    return " (the last)" if stage == last else " (the first)" if stage == 0 else ""


def _moving(context: Context, moved: Forecast | None, even: Gain) -> str:
    """The best partition where that is the gain, and what quite even stages would save beyond it."""
    if moved is None:
        return ""
    beyond = context.sure and abs(gained(moved).share - even.share) >= _ALIKE
    more = f"; quite even stages would save {context.saves(even)}" if beyond else ""
    return f"The best way to divide the layers is {moved.title.removeprefix('layers ')}{more}."


def _why(stage: int, last: int) -> str:
    if stage == last:
        return (
            "The last stage also has the output layer and the loss: count them as layers when dividing, or spread the "
            "vocabulary over all ranks."
        )
    if stage == 0:
        return "The first stage also has the embedding: count it as a layer when dividing."
    return "Move layers from it to the lighter stages."


def straggler(context: Context) -> Iterator[Proposal]:
    """Ranks that are slow against the replicas of their stage."""
    slow = context.report.imbalance.stragglers
    gain = context.without("straggler") if slow else None
    if not slow or gain is None:
        return
    worst = slow[0]
    named = sorted({rank for one in slow for rank in one.ranks})
    steps = "" if worst.persistent is None else " in every step" if worst.persistent else " in some steps"
    verb = "is" if len(named) == 1 else "are"
    yield proposal(
        "straggler",
        f"Look after {words.ranks_named(named)}, which {verb} slower than the replicas of the same stage",
        sentences(
            f"{words.ranks_named(worst.ranks).capitalize()} take{'s' if len(worst.ranks) == 1 else ''} "
            f"{words.ratio(worst.slowdown)} times as long{steps}, and all replicas wait at the gradients.",
            "Check clock rates, power, temperature, ECC errors and other processes there; replace the node if that "
            "does not help.",
        ),
        gain,
        Basis(
            formula="T - T(the rank as its replicas): M_W of the paper",
            limits=(
                "With two replicas nobody knows whether one is slow or the other quick. If the replicas get different "
                "data, the slow one may just have more of it."
            ),
            source=f"{_STUDY}, sections 3 and 5",
        ),
    )


def data_length(context: Context) -> Iterator[Proposal]:
    """Micro-batches that are long on every rank."""
    data = context.report.imbalance.data_length
    gain = context.without("data") if data is not None and data.found else None
    if data is None or gain is None:
        return
    spread = "" if data.spread is None else f" by {words.percent(data.spread)}"
    longest = ""
    if data.slowest:
        worst = data.slowest[0]
        longest = (
            f", the longest being {words.ratio(worst.factor)} times the median (micro-batch {worst.microbatch} of step "
            f"{worst.step})"
        )
    yield proposal(
        "data-length",
        "Balance the sequences over the micro-batches",
        sentences(
            f"Micro-batches differ{spread} on all ranks alike, forwards and backwards{longest}.",
            "Form micro-batches, and the shares of the replicas, of equal sums of squared sequence lengths.",
        ),
        gain,
        Basis(
            formula="attention costs sum s_i^2 over the sequences of a micro-batch, the rest of a layer sum s_i",
            limits="Samples must be sorted or packed before they are dealt out, which changes the order of the data.",
            source=f"{_STUDY}, section 5.3",
        ),
    )


def paused(context: Context) -> bool:
    """Whether forwards pause."""
    pauses = context.report.imbalance.pauses
    return pauses is not None and pauses.count > 0


def garbage_collection(context: Context) -> Iterator[Proposal]:
    """Forwards that pause now and then, in their work or before it."""
    pauses = context.report.imbalance.pauses
    gain = context.without("pauses") if paused(context) else None
    if pauses is None or gain is None:
        return
    longest = ""
    if pauses.longest:
        worst = pauses.longest[0]
        longest = (
            f", the longest for {words.duration(worst.ns)} (rank {worst.rank}, {worst.action} of step {worst.step})"
        )
    yield proposal(
        "garbage-collection",
        "Collect garbage every so many steps, on all ranks together",
        sentences(
            f"{words.counted(pauses.count, 'forward')} pause{'s' if pauses.count == 1 else ''} and no backwards"
            f"{longest}: what stops Python does that, as forwards are launched from there.",
            "Switch automatic collection off (gc.disable) and call gc.collect every N steps on all ranks at once.",
        ),
        gain,
        Basis(
            formula="the replay without what paused forwards took beyond their like",
            limits="Memory grows between collections. Late data and checkpoints pause forwards as well.",
            source=f"{_STUDY}, section 5.4",
        ),
    )


def uneven_actions(context: Context) -> Iterator[Proposal]:
    """Actions that vary without a pattern: what long data and pauses leave of jitter."""
    data = context.report.imbalance.data_length
    explained: frozenset[Trouble] = frozenset(["data"] if data is not None and data.found else [])
    explained |= frozenset[Trouble](["pauses"] if paused(context) else [])
    gain = context.without("jitter", explained) if context.points("jitter") >= NOTED else None
    if gain is None:
        return
    beside = "" if not explained else ", beside what long data and pauses explain"
    yield proposal(
        "uneven-actions",
        "Find out why equal actions take unequal times",
        sentences(
            f"Actions vary from one micro-batch to the next without a pattern{beside}; jitter as a whole costs "
            f"{context.costs('jitter')}.",
            "Lock the clock rates for a trial, look for other work on GPUs and links, and balance the experts.",
        ),
        gain,
        Basis(
            formula="the replay without jitter, less what it saves without long data and pauses",
            limits="Some variation always stays: the gain is that of none at all.",
            source=f"{_STUDY}, section 3",
        ),
    )
