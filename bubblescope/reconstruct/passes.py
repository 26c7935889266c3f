"""The order of the passes: from the events of one rank to its timeline."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Bools, Times
from bubblescope.model.groups import IN_STAGE
from bubblescope.model.options import Options
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import RankTimeline, Reconstruction
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct import actions, autograd, kernels, labels, messages, segments, steps
from bubblescope.reconstruct.calls import Talk, describe
from bubblescope.reconstruct.process import main_process
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units, gather, matching

__all__ = ["reconstruct"]

How = Reconstruction | None

_OPTIMIZER_RANGE = r"Optimizer\.(step|zero_grad)#"
_FENCE = rf"ProfilerStep#|{_OPTIMIZER_RANGE}"
_OPTIMIZER_KERNEL = r".*(multi_tensor_apply_kernel|[aA]dam|fused_?sgd|[lL]amb)"


def reconstruct(trace: RankTrace, options: Options, rank: int) -> RankTimeline:
    """All that one rank's trace tells by itself."""
    trace = main_process(trace)
    work, communication = _dated(*gather(trace))
    talk = describe(trace, communication)
    sent, shared = talk.take(talk.between_stages), talk.take(~talk.between_stages)
    optimizer = _optimizer(trace, work)
    ranges, how = _ranges(trace, options, sent, shared, (work.take(~optimizer), work.take(optimizer)))
    marks = _marks(trace, Units.concat((work, communication)), ranges, how, work.host[optimizer])
    step = steps.rows_at(marks, ranges.start)
    numbered = actions.number(ranges, step)
    done, owned, asked, place = actions.build(numbered, step, work.take(~optimizer), shared.units)
    posted = messages.messages(sent, steps.rows_of(marks, sent.units), labels.message_labels(trace))
    return RankTimeline(
        rank=rank,
        source=trace.source,
        identity=trace.identity,
        absolute=trace.absolute,
        on_gpu=trace.on_gpu,
        steps=steps.extent(marks, work, communication, on_gpu=trace.on_gpu),
        actions=done,
        work=owned,
        messages=posted.replace(
            step=messages.beside(posted, sent.units.host, ranges, step),
            after=messages.following(posted, sent.units.host, ranges, place),
        ),
        collectives=messages.collectives(shared, steps.rows_of(marks, shared.units), asked),
        calls=talk.calls,
        optimizer=Spans.of(work.start[optimizer], work.end[optimizer]),
        reconstruction=how if len(done) else None,
        findings=(*trace.findings, *labels.unmatched(trace, options.labels)),
    )


def _dated(work: Units, communication: Units) -> tuple[Units, Units]:
    """Units with the moment they ran in place of the one they were asked for, if no launch at all was recorded."""
    if any(np.any(units.host != NO_HOST) for units in (work, communication)):
        return work, communication
    both = (units.replace(host=units.start) for units in (work, communication))
    work, communication = (units.in_host_order() for units in both)
    return work, communication


def _ranges(
    trace: RankTrace, options: Options, sent: Talk, shared: Talk, work: tuple[Units, Units]
) -> tuple[actions.Ranges, How]:
    """Actions by what tells most: labels, then autograd's numbers, then kernels (`work`: compute, optimizer)."""
    named = labels.action_labels(trace, options.labels)
    if len(named):
        return actions.from_labels(named, autograd.backward_starts(trace)), "labels"
    fences = _fences(trace)
    own = shared.take(shared.serving(IN_STAGE)).posted
    borders = np.sort(np.concatenate((sent.posted, fences)))
    how: How = "autograd"
    blocks = autograd.find_blocks(trace, sent.posted, fences)
    if not len(blocks) and trace.on_gpu:
        how, blocks = "kernels", _from_kernels(trace, (sent, shared), fences, work)
    return actions.drawn_out(actions.from_blocks(blocks), own, borders), how if len(blocks) else None


def _from_kernels(
    trace: RankTrace, talk: tuple[Talk, Talk], fences: Times, work: tuple[Units, Units]
) -> autograd.Blocks:
    """Actions from kernels and messages alone; `talk` is between stages and all other, `work` compute and optimizer."""
    (sent, shared), (compute, optimizer) = talk, work
    launched = len(trace.launches) > 0
    cuts = sent.posted if launched else segments.gaps_at_messages(compute, sent, shared.units)
    fences = np.sort(np.concatenate((fences, optimizer.host)))
    return kernels.find_blocks(trace, compute, cuts, fences, trains=len(optimizer) > 0)


def _marks(trace: RankTrace, units: Units, ranges: actions.Ranges, how: How, optimizer: Times) -> steps.Marks:
    """Where the steps begin and end; `optimizer` are the host moments of the optimizer's units."""
    named_again = actions.recurrences(ranges) if how == "labels" else np.empty(0, np.int64)
    if how == "kernels" and not np.any(matching(trace.names, _OPTIMIZER_RANGE)[trace.annotations.name]):
        named_again = actions.starts_after(ranges, optimizer)

    def tear(marks: steps.Marks) -> bool:
        return actions.torn(ranges, steps.rows_at(marks, ranges.start))

    return steps.find(trace, units, named_again, ranges.start, tear)


def _fences(trace: RankTrace) -> Times:
    """Host moments at which a step or an optimizer begins or ends."""
    rows = trace.annotations.take(matching(trace.names, _FENCE)[trace.annotations.name])
    return np.concatenate((rows.start, rows.end))


def _optimizer(trace: RankTrace, work: Units) -> Bools:
    """Units of the optimizer: asked for inside its own range, or known by the kernel's name."""
    rows = trace.annotations.take(matching(trace.names, _OPTIMIZER_RANGE)[trace.annotations.name])
    inside = owners(rows.start, rows.end, work.host) >= 0
    named = matching(trace.names, _OPTIMIZER_KERNEL)[work.name] if trace.on_gpu else np.zeros(len(work), bool)
    optimizer: Bools = inside | (named & ((work.host == NO_HOST) | (len(rows) == 0)))
    return optimizer
