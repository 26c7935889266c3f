"""From the slices of an instrumented file to the timeline of its rank: steps, counted micro-batches, messages."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints, Times, distinct
from bubblescope.model.recorders import recorder
from bubblescope.model.slices import ActionSlices, MessageSlices, RankSlices
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Actions, Collectives, Messages, RankTimeline, Steps, Work
from bubblescope.model.trace import CommArgs, Finding
from bubblescope.reconstruct.host import Ranges, number
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.step_cuts import behind, recurrences, starts_after

__all__ = ["reconstruct_slices"]

_HALVES = (CommArgs(op="send", description="pp"), CommArgs(op="recv", description="pp"))
"""Calls of messages, by their direction."""
_BLOCKS = ("actions", "messages", "collectives", "optimizer", "extents")


def reconstruct_slices(slices: RankSlices, rank: int) -> RankTimeline:
    """The timeline of a rank whose file names its actions; the work of an action is the action itself.

    Where the steps of the file restart their clocks, they are laid one after the other.
    """
    slices, unmarked = _with_steps(_in_order(slices))
    steps, shift = _steps(slices)
    slices = _shifted(slices, steps, shift)
    actions, counted = _actions(slices, steps)
    c = slices.collectives
    return RankTimeline(
        rank=rank,
        source=slices.source,
        identity=slices.identity,
        absolute=slices.absolute,
        on_gpu=False,
        steps=steps,
        actions=actions,
        work=Work(actions.start, actions.end, np.arange(len(actions))),
        messages=_messages(slices.messages, steps, actions, first_call=len(slices.calls)),
        collectives=Collectives(
            start=c.start,
            end=c.end,
            action=np.full(len(c), NONE),
            step=_rows(steps, c.step),
            call=c.call,
            bytes=np.full(len(c), NONE),
        ),
        calls=(*slices.calls, *_HALVES),
        optimizer=Spans.of(slices.optimizer.start, slices.optimizer.end),
        reconstruction="table" if len(actions) else None,
        restarts=slices.restarts,
        pipelined=(NONE,) if slices.pipelined else (),
        findings=(*slices.findings, *unmarked, *counted),
    )


def _in_order(slices: RankSlices) -> RankSlices:
    """The same rows in time order."""
    ordered = {
        name: block.take(np.lexsort((block.end, block.start)))
        for name, block in zip(_BLOCKS, slices.blocks, strict=True)
    }
    return dataclasses.replace(slices, **ordered)  # type: ignore[arg-type]


def _with_steps(slices: RankSlices) -> tuple[RankSlices, tuple[Finding, ...]]:
    """The slices with a step on every row: as told, else cut where an action comes again or an optimizer ran.

    What tells no step among others that do goes with the actions beside it.
    """
    actions, findings = slices.actions, tuple[Finding, ...]()
    if not np.any(actions.step >= 0):
        cuts = _cuts(slices)
        actions = actions.replace(step=np.searchsorted(cuts, actions.start, "right"))
        findings = () if len(cuts) or np.any(actions.microbatch >= 0) else _assumed(slices)
    told = actions.take(actions.step >= 0)
    if len(told) < len(actions):
        findings = (_guessed(len(actions) - len(told), slices),)
    actions = actions.replace(step=np.where(actions.step >= 0, actions.step, _beside(told, actions.start)))
    m = slices.messages
    awaiting = np.searchsorted(actions.start, m.end, "left").clip(0, max(len(actions) - 1, 0))
    near = np.where(
        m.direction == Messages.RECV, actions.step[awaiting] if len(actions) else NONE, _beside(actions, m.start)
    )
    filled: dict[str, Any] = {"actions": actions, "messages": m.replace(step=np.where(m.step >= 0, m.step, near))}
    for name in ("collectives", "optimizer", "extents"):
        block = getattr(slices, name)
        filled[name] = block.replace(step=np.where(block.step >= 0, block.step, _beside(actions, block.start)))
    return dataclasses.replace(slices, **filled), findings


def _guessed(count: int, slices: RankSlices) -> Finding:
    message = f"{count} of {len(slices.actions)} actions tell no step; each goes with the one before it"
    return Finding("steps-assumed", "warning", message, slices.source.path)


def _beside(actions: ActionSlices, moment: Times) -> Times:
    """The step of the last action that began before each moment, else of the first one."""
    if not len(actions):
        return np.full(len(moment), NONE)
    near: Times = actions.step[(np.searchsorted(actions.start, moment, "right") - 1).clip(0)]
    return near


def _cuts(slices: RankSlices) -> Times:
    """Moments at which steps begin, where no step is numbered."""
    ranges, optimizer = _ranges(slices.actions), slices.optimizer.start
    again = recurrences(ranges)
    cuts = behind(optimizer, again, ranges.start) if len(again) else starts_after(ranges, optimizer)
    return cuts[cuts > ranges.start[:1]] if len(ranges) else cuts


def _assumed(slices: RankSlices) -> tuple[Finding, ...]:
    message = (
        f"nothing tells where steps begin, so the recording is taken as one step; {recorder(slices.source).mark_steps}"
    )
    return (Finding("steps-assumed", "warning", message, slices.source.path),)


def _ranges(actions: ActionSlices) -> Ranges:
    unknown = np.full(len(actions), NONE)
    a = actions
    return Ranges(a.start, a.end, a.kind, a.stage, a.microbatch, a.slice, unknown, unknown, a.chunk)


def _steps(slices: RankSlices) -> tuple[Steps, Times]:
    """The steps that have actions, and what to add to the times of each."""
    numbers = distinct(slices.actions.step)
    first, last = np.full(len(numbers), np.iinfo(np.int64).max), np.full(len(numbers), np.iinfo(np.int64).min)
    for block in slices.blocks:
        row = np.searchsorted(numbers, block.step).clip(0, max(len(numbers) - 1, 0))
        mine = numbers[row] == block.step if len(numbers) else np.zeros(len(block), bool)
        np.minimum.at(first, row[mine], block.start[mine])
        np.maximum.at(last, row[mine], block.end[mine])
    if not slices.restarts:
        order = np.argsort(first, kind="stable")
        return Steps(first[order], last[order], numbers[order]), np.zeros(len(numbers), np.int64)
    early = np.minimum(first, 0)
    ended = np.cumsum(np.maximum(last, 0) - early + 1)  # a nanosecond apart, so that no instant is of two steps
    shift = np.append(0, ended[:-1])[: len(numbers)] - early
    return Steps(shift, shift + np.maximum(last, 0), numbers), shift


def _rows(steps: Steps, step: Times) -> Ints:
    """The row of `Steps` of each number, NONE of those that have no actions."""
    order = np.argsort(steps.number)
    place = np.searchsorted(steps.number[order], step)
    row = np.append(order, NONE)[place]
    return np.where(np.append(steps.number, NONE)[row] == step, row, NONE)


def _shifted(slices: RankSlices, steps: Steps, shift: Times) -> RankSlices:
    """The slices with the shift of its step added to every time; those of steps without actions stay."""
    if not np.any(shift):
        return slices
    moved = {}
    for name, block in zip(_BLOCKS, slices.blocks, strict=True):
        add = np.append(shift, 0)[_rows(steps, block.step)]
        moved[name] = block.replace(start=block.start + add, end=block.end + add)
    return _in_order(dataclasses.replace(slices, **moved))  # type: ignore[arg-type]


def _actions(slices: RankSlices, steps: Steps) -> tuple[Actions, tuple[Finding, ...]]:
    """The actions, with micro-batches counted where none are told, and a word on that."""
    ranges = _ranges(slices.actions)
    row = _rows(steps, slices.actions.step)
    r = number(ranges, row)
    found = Actions(r.start, r.end, row, r.kind, r.stage, r.microbatch, r.slice, r.block, r.chunk)
    repeated = _repeated(found, steps, slices.source.path)
    count = int(np.count_nonzero(ranges.microbatch == NONE))
    if not count:
        return found, repeated
    message = (
        f"{count} of {len(ranges)} actions name no micro-batch: forwards and backwards of a stage are taken to run "
        "in the order of their micro-batches"
    )
    return found, (Finding("counted-microbatches", "info", message, slices.source.path), *repeated)


def _repeated(actions: Actions, steps: Steps, path: str) -> tuple[Finding, ...]:
    """A word on actions that come more than once in their step, of those whose stage or chunk is told."""
    a = actions.take((actions.stage >= 0) | (actions.chunk >= 0))
    keys = np.stack((a.step, a.stage, a.chunk, a.microbatch, a.slice, a.kind))
    order = np.lexsort(keys)  # stable: of equal ones the earliest stays first
    again = order[1:][np.all(keys[:, order[1:]] == keys[:, order[:-1]], axis=0)]
    if not len(again):
        return ()
    step = steps.number[a.step[again]].min()
    message = (  # the same for all ranks that it is true of, so that it is said once
        f"actions come more than once in step {step}, or from there on: rows are written twice, or numbers of steps or "
        "micro-batches begin anew, or several ranks are taken as one"
    )
    return (Finding("repeated-actions", "warning", message, path),)


def _messages(slices: MessageSlices, steps: Steps, actions: Actions, *, first_call: int) -> Messages:
    """The messages in the order of their start, with the ids of the actions that make or await them."""
    m = slices
    row = _rows(steps, m.step)
    after = np.searchsorted(actions.start, m.start, "right") - 1
    inside = (after >= 0) & (np.append(actions.step, NONE)[after] == row)
    return _in_turn(
        Messages(
            start=m.start,
            end=m.end,
            step=row,
            direction=m.direction,
            peer=m.peer,
            bytes=np.full(len(m), NONE),
            call=first_call + m.direction,
            kind=m.kind,
            stage=m.stage,
            microbatch=np.where(m.kind >= 0, m.microbatch, NONE),  # of which of its actions is not told
            slice=m.slice,
            kernel=np.arange(len(m)),
            after=np.where(inside, after, NONE),
            chunk=m.chunk,
        ),
        actions,
    )


def _in_turn(messages: Messages, actions: Actions) -> Messages:
    """Messages that name a kind and no micro-batch, named by the actions of that kind, the k-th by the k-th.

    Only where there is one for each such action of the step: at an end of the pipeline not all have one.
    """
    ids = {name: getattr(messages, name).copy() for name in ("stage", "microbatch", "slice", "chunk")}
    wanting = (messages.microbatch < 0) & (messages.kind >= 0) & (messages.step >= 0)
    forward = actions.kind == Kind.F
    talking = {Kind.F: forward, Kind.B: ~forward & (actions.kind != Kind.W)}
    for kind, acting in talking.items():
        for direction in (Messages.SEND, Messages.RECV):
            mine = np.flatnonzero(wanting & (messages.kind == kind) & (messages.direction == direction))
            for of_step, acted in _by_step(mine, messages.step, np.flatnonzero(acting), actions.step):
                for name, column in ids.items():
                    column[of_step] = getattr(actions, name)[acted]
    return messages.replace(**ids)


def _by_step(mine: Ints, step: Ints, acting: Ints, acted_in: Ints) -> list[tuple[Ints, Ints]]:
    """Rows of messages and of actions of one step, where there are as many; both are in time order."""
    steps = np.arange(int(max(step[mine].max(initial=-1), acted_in[acting].max(initial=-1))) + 2)
    mine, acting = mine[np.argsort(step[mine], kind="stable")], acting[np.argsort(acted_in[acting], kind="stable")]
    parts = (
        np.split(mine, np.searchsorted(step[mine], steps)),
        np.split(acting, np.searchsorted(acted_in[acting], steps)),
    )
    return [(a, b) for a, b in zip(*parts, strict=True) if len(a) == len(b) > 0]
