"""The order of the passes: from the events of one rank to its timeline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Bools, Times
from bubblescope.model.groups import IN_STAGE, Purpose
from bubblescope.model.names import plainly
from bubblescope.model.options import Options
from bubblescope.model.recorders import recorder
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import RankTimeline, Reconstruction
from bubblescope.model.trace import Finding, RankTrace
from bubblescope.reconstruct import (
    actions,
    autograd,
    frames,
    host,
    kernels,
    labels,
    messages,
    segments,
    step_cuts,
    steps,
    updates,
)
from bubblescope.reconstruct.announced import announcements
from bubblescope.reconstruct.calls import Talk, describe
from bubblescope.reconstruct.layers import layer_work
from bubblescope.reconstruct.lost import lost, unfinished
from bubblescope.reconstruct.narrow import narrow, said_of
from bubblescope.reconstruct.process import main_process
from bubblescope.reconstruct.purposes import with_purposes
from bubblescope.reconstruct.ranges import owners
from bubblescope.reconstruct.rings import amid, found_without, nameless, rings
from bubblescope.reconstruct.sides import with_sides
from bubblescope.reconstruct.units import NO_HOST, Gathered, Units, gather, launched, matching
from bubblescope.reconstruct.unjoined import gpu_alone, in_order, unjoined, without_filler

__all__ = ["reconstruct"]

How = Reconstruction | None

EXPLAINED = 0.9
"""Share of the work inside labels below which autograd's numbers are asked, too (docs/definitions.md)."""

_OPTIMIZER_RANGE = r"Optimizer\.(step|zero_grad)#"
_FENCE = rf"ProfilerStep#|{_OPTIMIZER_RANGE}"
# What fills, copies or measures many tensors at once, before a step or behind its backwards, is no update of weights.
_OPTIMIZER_KERNEL = r".*(multi_tensor_apply_kernel(?!.*(Zero|Fill|Copy|Norm)Functor)|[aA]dam|fused_?sgd|[lL]amb(?!da))"


def reconstruct(trace: RankTrace, options: Options, rank: int) -> RankTimeline:
    """All that one rank's trace tells by itself."""
    recorded = without_filler(main_process(plainly(trace)))
    units = gather(recorded)
    trace, named = gpu_alone(recorded, *units), _unjoined_labels(recorded, units, options)
    units = _dated(units)
    work, communication, copies = units
    talk = describe(trace, communication)
    between = talk.between_stages(trace.identity)
    sent, shared = talk.take(between), talk.take(~between)
    optimizer = _optimizer(trace, work)
    ranges, how = _ranges(trace, options, sent, shared, (work.take(~optimizer), work.take(optimizer)))
    ranges, how = _as_named(ranges, how, named)
    said = _said(trace)
    talk, between = _without_others(talk, between, (ranges, how), work, said)
    sent, shared = talk.take(between), talk.take(~between)
    borders = _borders(trace, sent, work.host[optimizer if how == "kernels" else slice(0)])
    if len(sent.row):  # without a pipeline there are no stages whose own communication it could be
        shared = with_purposes(shared, ranges, borders)
    if np.any(ranges.open):
        ranges = host.drawn_out(ranges, shared.take(shared.serving(IN_STAGE)).posted, borders)
    untold = _half_told(trace, ranges, how, work)
    ranges, how = (host.Ranges.empty(), None) if untold else (ranges, how)
    marks = _marks(trace, Units.concat(units), (ranges, how), work, optimizer)
    marks = marks if trace is recorded else steps.numbered(recorded, marks)
    step = steps.rows_at(marks, ranges.start)
    noted = _on_steps(recorded, marks, (ranges, how), work, optimizer)
    numbered = host.number(ranges, step)
    ran = actions.finished(ranges, step, unfinished(trace, several=len(marks) > 1))
    own = shared.take(shared.serving(IN_STAGE))
    done, owned, asked, place = actions.build(numbered, ran, work.take(~optimizer), shared.units)
    collectives = messages.collectives(shared, steps.rows_of(marks, shared.units), asked)
    posted = messages.messages(sent, steps.rows_of(marks, sent.units), said).replace(
        after=messages.following(sent.units.host, actions.begun(ranges, work), place)
    )
    posted = posted.replace(step=messages.beside(posted, sent.units.host, ranges, step))
    known = launched(trace)
    return RankTimeline(
        rank=rank,
        source=trace.source,
        identity=trace.identity,
        absolute=trace.absolute,
        on_gpu=trace.on_gpu,
        steps=steps.extent(marks, *units, on_gpu=trace.on_gpu),
        actions=done,
        work=owned,
        layers=layer_work(trace, ranges, place, Units.concat((work.take(~optimizer), own.units))),
        messages=with_sides(posted, done, sent.units.lane),
        collectives=collectives,
        calls=shared.calls,
        optimizer=Spans.of(work.start[optimizer], work.end[optimizer]),
        copies=Spans.of(copies.start, copies.end),
        reconstruction=how if len(done) else None,
        pipelined=() if sent.directed else labels.pipeline_stages(trace),
        kernels=known[0],
        launched=known[1],
        doubts=trace.doubts,
        doubted=steps.holding(marks, trace.doubts.moments),
        named_stages=tuple(np.unique(named.stage[named.stage >= 0]).tolist()),
        findings=(*trace.findings, *untold, *noted, *_noticed(recorded, named, options)),
    )


def _borders(trace: RankTrace, sent: Talk, optimizer: Times) -> Times:
    """Host moments that no action reaches over, sorted: of messages, steps and optimizers."""
    return np.sort(np.concatenate((sent.posted, _fences(trace), optimizer)))


def _said(trace: RankTrace) -> labels.Labels:
    """What ranges say of messages, or else frames."""
    said = labels.message_labels(trace)
    return said if len(said) else frames.message_frames(trace)


def _as_named(ranges: host.Ranges, how: How, named: host.Ranges) -> tuple[host.Ranges, How]:
    """Actions as labels name them that nothing joins to kernels, and what told them; none where these contradict."""
    ranges = in_order(ranges, named)
    return ranges, how if len(ranges) else None


def _without_others(
    talk: Talk, between: Bools, told: tuple[host.Ranges, How], work: Units, said: labels.Labels
) -> tuple[Talk, Bools]:
    """The communication, and which of it the pipeline needs: not what stays in an action, nor what only announces.

    `told` are the actions, and how they were told; `said` is what ranges say of messages.
    """
    ranges, how = told
    if how in {"labels", "frames"}:
        unnamed = talk.unnamed & ~between
        either = between | unnamed
        sure, open_ = rings(talk.take(either), ranges, work)
        _, talk = _set_aside(talk, unnamed, sure[unnamed[either]], "tp")
        sure, open_ = sure[between[either]], open_[between[either]]
        _, talk = _set_aside(talk, between, sure, "cp")
        between, _ = _set_aside(talk, between, sure | open_, None)
    forwards = int(np.sum(ranges.kind == Kind.F))
    if how in {"autograd", "kernels"}:
        between, talk = _set_aside(talk, between, amid(talk.take(between), ranges, work), "cp")
    if how == "autograd":
        between, talk = _set_aside(talk, between, nameless(talk.take(between), ranges, said), "cp")
    if forwards:
        between, talk = _set_aside(talk, between, announcements(talk.take(between), work.host, forwards), "pp")
    return talk, between


def _set_aside(talk: Talk, between: Bools, others: Bools, purpose: Purpose | None) -> tuple[Bools, Talk]:
    """What is left between stages without some of it, which is told to be for a purpose, if any."""
    rows = np.flatnonzero(between)[others]
    mine = np.zeros(len(between), bool)
    mine[rows] = True
    return between & ~mine, talk if purpose is None else talk.told(mine, purpose)


def _noticed(trace: RankTrace, named: host.Ranges, options: Options) -> tuple[Finding, ...]:
    """What the events tell of the recording, whatever is made of them; `named` are labels that nothing joins to it."""
    apart = [unjoined(trace, named)] if len(named) else []
    return (*steps.repeated(trace), *lost(trace), *apart, *labels.unmatched(trace, options.labels))


def _unjoined_labels(trace: RankTrace, units: Gathered, options: Options) -> host.Ranges:
    """What labels name where no launch joins them to kernels; nothing where one does."""
    if gpu_alone(trace, *units) is trace:
        return host.Ranges.empty()
    return _named(trace, labels.action_labels(trace, options.labels))


def _dated(gathered: Gathered) -> Gathered:
    """Units with the moment they ran in place of the one they were asked for, if no launch at all was recorded."""
    if any(np.any(units.host != NO_HOST) for units in gathered):
        return gathered
    return Gathered(*(units.replace(host=units.start).in_host_order() for units in gathered))


def _ranges(
    trace: RankTrace, options: Options, sent: Talk, shared: Talk, work: tuple[Units, Units]
) -> tuple[host.Ranges, How]:
    """Actions by what tells most: labels, then autograd's numbers, then frames, then kernels.

    Where labels name forwards only, what comes next tells the backwards, and the other way round; kernels tell
    all or nothing. `work` is what is not the optimizer's, and what is.
    """
    sources: tuple[tuple[How, Callable[[], host.Ranges]], ...] = (
        ("labels", lambda: _named(trace, labels.action_labels(trace, options.labels))),
        ("autograd", lambda: _by_autograd(trace, sent, shared, work[0])),
        ("frames", lambda: _named(trace, frames.action_frames(trace))),
    )
    ranges, how = host.Ranges.empty(), None
    for name, source in sources:
        if host.lacking(ranges):
            ranges = host.completed(ranges, source())
            how = how or (name if len(ranges) else None)
    if how == "labels" and not host.lacking(ranges) and _share_in(ranges, work[0]) < EXPLAINED:
        numbered = _by_autograd(trace, sent, shared, work[0])
        if not host.lacking(numbered) and _share_in(numbered, work[0]) >= EXPLAINED:
            ranges, how = numbered, "autograd"  # labels of something else, or of a part of the work
    if how is None and trace.on_gpu:
        ranges = _by_kernels(trace, sent, shared, work)
        how = "kernels" if len(ranges) else None
    return host.linked(step_cuts.unshared(ranges), trace), how


def _share_in(ranges: host.Ranges, work: Units) -> float:
    """The share of the work between the first and the last range that was asked for inside one; 1 without any."""
    inside = (work.host >= ranges.start.min(initial=NO_HOST)) & (work.host <= ranges.end.max(initial=NO_HOST))
    work = work.take(inside)
    length = work.end - work.start
    owned = owners(ranges.start, ranges.end, work.host) >= 0
    return float(length[owned].sum() / length.sum()) if length.any() else 1.0


def _named(trace: RankTrace, found: labels.Labels) -> host.Ranges:
    """Actions that ranges name; only those of two actions need autograd, to part them."""
    turns = autograd.backward_starts(trace) if np.any(found.block >= 0) else np.empty(0, np.int64)
    return host.from_labels(found, turns)


def _half_told(trace: RankTrace, ranges: host.Ranges, how: How, work: Units) -> tuple[Finding, ...]:
    """A warning where labels name the forwards of a training and nothing tells its backwards.

    To read them as inference would call the backwards idle time.
    """
    names = trace.names
    trains = np.any(matching(names, _OPTIMIZER_RANGE)[trace.annotations.name]) or (
        trace.on_gpu and np.any(matching(names, _OPTIMIZER_KERNEL)[work.name])
    )
    if how != "labels" or not trains or np.any(ranges.kind != Kind.F):
        return ()
    message = (
        "the labels name forwards only, while an optimizer runs: the backwards are not told; "
        f"name them with --label B=..., or {recorder(trace.source).operators}"
    )
    return (Finding("backward-unlabelled", "warning", message, trace.source.path),)


def _by_autograd(trace: RankTrace, sent: Talk, shared: Talk, work: Units) -> host.Ranges:
    """Actions as the numbers of autograd tell them.

    Where no message is known, kernels that nothing names are taken for messages if no action by numbers alone asked for
    them: what was asked for between operators of one action is its own.
    """
    fences = _fences(trace)

    def between(cuts: Times) -> host.Ranges:
        return host.from_blocks(autograd.find_blocks(trace, cuts, fences))

    unnamed = shared.take(shared.unnamed).posted
    if len(unnamed) and not len(sent.posted):
        alone = between(sent.posted)
        return between(unnamed[owners(alone.start, alone.end, unnamed) < 0])
    return found_without(lambda some: between(some.posted), sent, work)


def _by_kernels(trace: RankTrace, sent: Talk, shared: Talk, work: tuple[Units, Units]) -> host.Ranges:
    """Actions as kernels and messages alone tell them; `work` is what is not the optimizer's, and what is.

    Where the marked steps are parts of steps, or what they hold is no pipeline, optimizers alone part steps.
    """
    compute, optimizer = work
    parts = updates.parts_of_steps(steps.marked_steps(trace), compute, optimizer.host)
    fences = [
        np.sort(np.concatenate((_fences(trace, pattern), optimizer.host)))
        for pattern in ((_OPTIMIZER_RANGE,) if parts else (_FENCE, _OPTIMIZER_RANGE))
    ]

    def between(some: Talk) -> host.Ranges:
        cuts = some.posted if len(trace.launches) else segments.gaps_at_messages(compute, some, shared.units)
        tries = (kernels.find_blocks(trace, compute, cuts, each, trains=len(optimizer) > 0) for each in fences)
        return host.from_blocks(next(filter(len, tries), autograd.Blocks.empty()))

    return found_without(between, sent, compute)


def _moments(told: tuple[host.Ranges, How], work: Units) -> Times:
    """The host moments at which actions begin, or else work."""
    ranges, how = told
    return work.host if how is None else ranges.start


def _marks(trace: RankTrace, units: Units, told: tuple[host.Ranges, How], work: Units, optimizer: Bools) -> steps.Marks:
    """Where the steps begin and end; `told` are the actions and what told them, `optimizer` says which work is its."""
    (ranges, how), updated, others = told, work.host[optimizer], work.take(~optimizer)
    moments = _moments(told, others)
    again = begun = step_cuts.recurrences(ranges)
    if how is None:
        begun = updates.starts_behind(updated, moments)
    elif not len(again) and not np.any(matching(trace.names, _OPTIMIZER_RANGE)[trace.annotations.name]):
        begun = step_cuts.starts_after(ranges, updated)
    begun = step_cuts.behind(updated, begun, moments)
    if how == "kernels":
        ends = begun if len(begun) else steps.optimizer_ends(trace, ranges.start)
        begun = step_cuts.evaluations_apart(ranges, ends)

    def tear(marks: steps.Marks) -> bool:
        step = steps.rows_at(marks, ranges.start)
        if how in {"kernels", None} and updates.parts_of_steps(marks, others, updated):
            return True
        return step_cuts.torn(ranges, step) or narrow(ranges, step, again, steps.rows_at(marks, updated))

    return steps.find(trace, units, begun, moments, tear)


def _on_steps(
    trace: RankTrace, marks: steps.Marks, told: tuple[host.Ranges, How], work: Units, optimizer: Bools
) -> tuple[Finding, ...]:
    """What is to be said of the steps that were found, beside those that are given more than once."""
    turning = _in_turns(trace, marks, told[1], work, work.host[optimizer])
    return (*_one_step(trace, marks, told[1]), *turning, *said_of(trace, marks, _moments(told, work)))


def _one_step(trace: RankTrace, marks: steps.Marks, how: How) -> tuple[Finding, ...]:
    """A warning where nothing marks steps, no name comes again, and so all is taken as one."""
    marked = np.any(matching(trace.names, _FENCE)[trace.annotations.name])
    if len(marks) != 1 or marked or how in {None, "labels"}:
        return ()
    message = (
        f"nothing tells where steps begin, so the recording is taken as one step; {recorder(trace.source).mark_steps}"
    )
    return (Finding("steps-assumed", "warning", message, trace.source.path),)


def _in_turns(trace: RankTrace, marks: steps.Marks, how: How, work: Units, updated: Times) -> tuple[Finding, ...]:
    """A warning where neither actions nor updates of weights are told, and marks hold different work in turns."""
    turns = updates.turns_of(marks, work) if how is None and not len(updated) else 1
    if turns == 1:
        return ()
    message = (
        f"the marked steps run different kernels, the same again after {turns} of them: they may be parts of steps, or "
        "of several kinds, and neither actions nor an optimizer were told. Call step() of the profiler once a step"
    )
    return (Finding("steps-assumed", "warning", message, trace.source.path),)


def _fences(trace: RankTrace, pattern: str = _FENCE) -> Times:
    """Host moments at which a step or an optimizer begins or ends."""
    rows = trace.annotations.take(matching(trace.names, pattern)[trace.annotations.name])
    return np.concatenate((rows.start, rows.end))


def _optimizer(trace: RankTrace, work: Units) -> Bools:
    """Units of the optimizer: asked for inside its own range, or known by the kernel's name."""
    rows = trace.annotations.take(matching(trace.names, _OPTIMIZER_RANGE)[trace.annotations.name])
    inside = owners(rows.start, rows.end, work.host) >= 0
    named = matching(trace.names, _OPTIMIZER_KERNEL)[work.name] if trace.on_gpu else np.zeros(len(work), bool)
    optimizer: Bools = inside | (named & ((work.host == NO_HOST) | (len(rows) == 0)))
    return optimizer
