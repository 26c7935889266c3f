"""Chunks told by the orders of the recorded positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bubblescope.align.guess import FEW, guess
from bubblescope.model.actions import Action, Kind
from bubblescope.model.timeline import Messages
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import FAMILIES, find
from tests.align.nameless import ran
from tests.building import timeline


def named(found):
    """The orders that a guess tells, by position."""
    return {
        at: tuple(map(Action, told.stage.tolist(), told.kind.tolist(), told.microbatch.tolist()))
        for at, told in found.told.items()
    }


def some(orders, positions):
    """What is asked of some positions."""
    return {at: orders[at] for at in positions}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("interleaved-1f1b", Shape(4, 8, 2)),
        ("interleaved-1f1b", Shape(4, 8, 4)),
        ("looped-bfs", Shape(4, 8, 2)),
        ("interleaved-zb", Shape(4, 8, 2)),
        ("zb-v", Shape(4, 8, 2)),
        ("v-half", Shape(4, 8, 2)),
        ("hanayo", Shape(4, 8, 2)),
        ("dualpipe", Shape(4, 16)),
        ("chimera", Shape(4, 8)),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", range(4))
def test_one_position_may_be_enough(name, shape, at):
    """Where several chunks show in the order of one rank alone its actions are told, each stage and micro-batch."""
    line, orders = ran(find(name), shape)
    found = guess(some(line, [at]), 4)
    assert found is not None
    assert named(found) in ({}, some(orders, [at]))
    whole = guess(line, 4)
    assert whole is not None
    assert named(whole) == orders


@pytest.mark.parametrize("p", [2, 4])
def test_where_stages_run_both_ways_the_middle_sends_too(p):
    """The middle ranks hold two stages that follow each other, of different micro-batches: each sends its own."""
    line, orders = ran(find("chimera"), Shape(p, 2 * p))
    middle = [p // 2 - 1, p // 2]
    assert named(guess(some(line, middle), p)) == some(orders, middle)


def test_forwards_alone_do_not_tell_which_is_whose():
    """An evaluation shows how many chunks there are, as its ends send so many, and not in which turn they run."""
    line, _ = ran(find("forward-only"), Shape(3, 6, 2))
    found = guess(some(line, [0, 2]), 3)
    assert (found.chunks, found.told) == (2, {})


def test_pipelines_of_one_chunk_are_none():
    """Where a rank holds one stage there is nothing to tell."""
    line, _ = ran(find("1f1b"), Shape(4, 8))
    assert guess(line, 4) is None
    assert guess(some(line, [1]), 4) is None or not guess(some(line, [1]), 4).told


def test_nothing_is_told_of_no_actions():
    """Ranks of which no forward is known, or of which each ran another number of them, show no order."""
    line, _ = ran(find("zb-v"), Shape(2, 4, 2))
    shorter, _ = ran(find("zb-v"), Shape(2, 6, 2))
    assert guess({}, 2) is None
    assert guess({0: timeline(0)}, 2) is None
    assert guess({0: line[0], 1: shorter[1]}, 2) is None


def test_an_order_with_one_action_out_of_place_fits_nothing():
    """Only what fits exactly is taken."""
    line, _ = ran(find("interleaved-1f1b"), Shape(2, 4, 2))
    kind = line[0].actions.kind.copy()
    turn = np.flatnonzero(np.diff(kind))[-1]
    kind[[turn, turn + 1]] = kind[[turn + 1, turn]]
    assert guess({0: replace(line[0], actions=line[0].actions.replace(kind=kind))}, 2) is None


def test_a_lost_message_fits_nothing():
    """As many messages must have been sent and received as the order says."""
    line, _ = ran(find("interleaved-1f1b"), Shape(2, 4, 2))
    for lost in (0, 1, -1):
        keep = np.arange(len(line[0].messages)) != lost % len(line[0].messages)
        assert guess({0: replace(line[0], messages=line[0].messages.take(keep))}, 2) is None


def test_messages_of_unknown_direction_are_not_counted():
    """Then the order alone decides."""
    line, orders = ran(find("zb-v"), Shape(2, 6, 2))
    blind = {
        at: replace(t, messages=t.messages.replace(direction=np.full(len(t.messages), Messages.EITHER)))
        for at, t in line.items()
    }
    assert named(guess(blind, 2)) == orders


def test_the_usual_step_counts():
    """A last step that was cut short does not keep the others from being told."""
    line, orders = ran(find("zb-v"), Shape(2, 6, 2), steps=3)
    cut = {
        at: replace(
            t, actions=t.actions.take(np.arange(len(t.actions)) < len(t.actions) - 5),
            messages=t.messages.take(np.arange(len(t.messages)) < len(t.messages) - 4),
        )
        for at, t in line.items()
    }  # fmt: skip
    assert named(guess(cut, 2)) == orders


def test_sends_before_the_first_backward_count():
    """How far a rank runs ahead tells orders apart in which the same kinds follow each other."""
    line, orders = ran(find("hanayo"), Shape(3, 4, 2))
    assert named(guess({0: replace(line[0], reconstruction="kernels")}, 3)) == {0: orders[0]}
    line, _ = ran(find("pipedream"), Shape(3, 4))
    assert guess({0: replace(line[0], reconstruction="kernels")}, 3) is None


@pytest.mark.parametrize(("late", "told"), [(1, True), (2, False)])
def test_the_last_output_may_go_with_its_gradient(late, told):
    """Where stages go round, that of the last forward before the first backward is often sent behind that."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2))
    m = line[1].messages
    backward = int(np.flatnonzero(line[1].actions.kind != Kind.F)[0])
    early = np.flatnonzero((m.direction == Messages.SEND) & (m.after < backward))
    after = m.after.copy()
    after[early[-late:]] = backward
    found = guess({1: replace(line[1], messages=m.replace(after=after))}, 3)
    assert (found is not None and named(found) == {1: orders[1]}) == told


def test_kernels_tell_no_links():
    """Where kernels told the actions a backward has the number of no forward: kinds and messages must do."""
    line, orders = ran(find("zb-v"), Shape(3, 6, 2))
    by_kernels = {at: replace(t, reconstruction="kernels") for at, t in line.items()}
    assert named(guess(by_kernels, 3)) == orders
    wrong = {at: t.actions.replace(microbatch=t.actions.microbatch[::-1].copy()) for at, t in line.items()}
    assert named(guess({at: replace(by_kernels[at], actions=a) for at, a in wrong.items()}, 3)) == orders
    assert guess({at: replace(line[at], actions=a) for at, a in wrong.items()}, 3) is None


@st.composite
def runs(draw):
    """A schedule and a size that it can have, one of its variants, the positions recorded, and whether links are known.

    Without links only the variants count that are tried.
    """
    family, linked = draw(st.sampled_from(FAMILIES)), draw(st.booleans())
    p, m, v = draw(st.integers(2, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    shape = Shape(p, m, family.chunks if draw(st.booleans()) else v)
    assume(family.problem(shape) is None)
    variant = draw(st.integers(0, 20 if linked else FEW - 1))
    return family, shape, variant, draw(st.sets(st.integers(0, p - 1), min_size=1)), linked


@settings(max_examples=150)
@given(runs())
def test_never_a_wrong_answer(run):
    """Of any schedule and whatever part of its ranks: the truth, or that there are several chunks, or nothing.

    Without links it may be another order of the same schedule.
    """
    family, shape, variant, positions, linked = run
    line, orders = ran(family, shape, variant=variant)
    recorded = {at: line[at] if linked else replace(line[at], reconstruction="kernels") for at in positions}
    found = guess(recorded, shape.p)
    variants = [variant] if linked else range(FEW)
    true = [some(ran(family, shape, variant=k)[1], positions) for k in variants]
    assert some(orders, positions) in true
    assert found is None or named(found) in ({}, *true)


def silent(line):
    """The ranks without their messages, told by a table that numbers nothing."""
    return {at: replace(t, messages=Messages.empty(), reconstruction="table") for at, t in line.items()}


def test_without_messages_one_stage_a_rank_is_the_plain_reading():
    """Forwards first, then backwards: that is two chunks of looped-bfs, or gpipe."""
    line, _ = ran(find("looped-bfs"), Shape(3, 4, 2))
    assert guess(silent(line), 3) is None


def test_without_messages_orders_that_only_chunks_show_tell_them():
    """No schedule with one stage a rank runs so many forwards ahead."""
    line, orders = ran(find("interleaved-1f1b"), Shape(4, 8, 2))
    assert named(guess(silent(line), 4)) == orders
