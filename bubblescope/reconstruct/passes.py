"""The order of the passes: from the events of one rank to its timeline."""

from __future__ import annotations

from functools import partial

import numpy as np

from bubblescope.model.columns import Bools, Times
from bubblescope.model.groups import IN_STAGE, serving
from bubblescope.model.options import Options
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import RankTimeline, Reconstruction
from bubblescope.model.trace import RankTrace
from bubblescope.reconstruct import actions, autograd, labels, messages, steps
from bubblescope.reconstruct.calls import describe
from bubblescope.reconstruct.process import main_process
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.units import NO_HOST, Units, gather, matching

__all__ = ["reconstruct"]

_OPTIMIZER_RANGE = r"Optimizer\.(step|zero_grad)#"
_FENCE = rf"ProfilerStep#|{_OPTIMIZER_RANGE}"
_OPTIMIZER_KERNEL = r".*(multi_tensor_apply_kernel|[aA]dam|fused_?sgd|[lL]amb)"


def reconstruct(trace: RankTrace, options: Options, rank: int) -> RankTimeline:
    """All that one rank's trace tells by itself."""
    trace = main_process(trace)
    work, communication = gather(trace)
    calls, row = describe(trace, communication)
    is_message = messages.between_stages(calls, row)
    cuts = messages.posted(communication.take(is_message))
    ranges, how = _ranges(trace, options, cuts)
    if how == "autograd":
        own = communication.take(serving(calls, row, IN_STAGE))
        borders = np.sort(np.concatenate((cuts, _fences(trace))))
        ranges = actions.drawn_out(ranges, messages.posted(own), borders)
    named_again = actions.recurrences(ranges) if how == "labels" else np.empty(0, np.int64)
    marks = steps.find(trace, Units.concat((work, communication)), named_again, ranges.start, partial(_tear, ranges))
    step_of_unit, step_of_range = steps.rows_of(marks, communication), steps.rows_at(marks, ranges.start)
    sent, shared = (
        (communication.take(keep), calls, row[keep], step_of_unit[keep]) for keep in (is_message, ~is_message)
    )
    posted = messages.messages(*sent, labels.message_labels(trace))
    posted = posted.replace(step=messages.beside(posted, sent[0].host, ranges, step_of_range))
    optimizer = _optimizer(trace, work)
    numbered = actions.number(ranges, step_of_range)
    done, owned, asked = actions.build(numbered, step_of_range, work.take(~optimizer), shared[0])
    return RankTimeline(
        rank=rank,
        source=trace.source,
        identity=trace.identity,
        absolute=trace.absolute,
        on_gpu=trace.on_gpu,
        steps=steps.extent(marks, work, communication, on_gpu=trace.on_gpu),
        actions=done,
        work=owned,
        messages=posted,
        collectives=messages.collectives(*shared, asked),
        calls=calls,
        optimizer=Spans.of(work.start[optimizer], work.end[optimizer]),
        reconstruction=how if len(done) else None,
        findings=(*trace.findings, *labels.unmatched(trace, options.labels), *labels.unread(trace)),
    )


def _tear(ranges: actions.Ranges, marks: steps.Marks) -> bool:
    return actions.torn(ranges, steps.rows_at(marks, ranges.start))


def _ranges(trace: RankTrace, options: Options, posted: Times) -> tuple[actions.Ranges, Reconstruction | None]:
    """Actions by what tells most: labels, then autograd's numbers."""
    named = labels.action_labels(trace, options.labels)
    if len(named):
        return actions.from_labels(named), "labels"
    blocks = autograd.find_blocks(trace, posted, _fences(trace))
    return actions.from_blocks(blocks), "autograd" if len(blocks) else None


def _fences(trace: RankTrace) -> Times:
    """Host moments at which a step or an optimizer begins or ends."""
    rows = trace.annotations.take(matching(trace.names, _FENCE)[trace.annotations.name])
    return np.concatenate((rows.start, rows.end))


def _optimizer(trace: RankTrace, work: Units) -> Bools:
    """Units of the optimizer: asked for inside its own range, or known by the kernel's name."""
    rows = trace.annotations.take(matching(trace.names, _OPTIMIZER_RANGE)[trace.annotations.name])
    inside = owners(rows.start, rows.end, work.host) >= 0
    named = matching(trace.names, _OPTIMIZER_KERNEL)[work.name] if trace.on_gpu else np.zeros(len(work), bool)
    optimizer: Bools = inside | (named & (work.host == NO_HOST))
    return optimizer
