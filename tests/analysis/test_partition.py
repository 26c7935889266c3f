"""Every instant of a rank's window gets one name, and the names add up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.align.pairs import UNKNOWN, Pairing
from bubblescope.analysis.gaps import find_gaps
from bubblescope.analysis.lanes import lanes_of
from bubblescope.analysis.partition import Outside, Window, outside, partition
from bubblescope.analysis.ranks import views
from bubblescope.analysis.steps import rank_steps
from tests.analysis.jobs import call, job, one_f_one_b, rank, report, shifted

PARTS = ("compute", "in_stage_comm", "dp", "pp_transfer", "pp_wait", "host", "other")


def parts(timeline, start, end, *others):
    """The parts of [start, end) that are not 0, of the first rank among `timeline` and `others`."""
    view = views(job(timeline, *others, pipelines=[[[0], [1]]]))[timeline.rank]
    found = partition(view.lanes, view.steps[0], Window(start, end), view.gaps[0])
    assert found.window == end - start
    return {name: getattr(found, name) for name in PARTS if getattr(found, name)}


def test_a_kernel_of_an_action_is_compute():
    """A window full of work is all compute."""
    assert parts(rank(0, [("0F0", 0, 10), ("0F1", 10, 25)]), 0, 25) == {"compute": 25}


def test_overlapping_kernels_count_once():
    """Two kernels at one time are one instant of compute."""
    assert parts(rank(0, [("0F0", 0, 10)], work=[("0F0", 0, 8), ("0F0", 3, 10)]), 0, 10) == {"compute": 10}


@pytest.mark.parametrize("description", ["tp", "cp", "ep"])
def test_an_exposed_collective_of_the_stage_is_in_stage_comm(description):
    """Of a collective that runs from 6 to 14, computation hides all but 8 to 12."""
    one = rank(
        0, [("0F0", 0, 20)], work=[("0F0", 0, 8), ("0F0", 12, 20)], calls=[call(description, 6, 14, "0F0")]
    )  # fmt: skip
    assert parts(one, 0, 20) == {"compute": 16, "in_stage_comm": 4}


def test_exposed_data_parallel_communication_in_the_window_is_dp():
    """Only what no computation hides, and before it is called waiting."""
    one = rank(0, [("0F0", 0, 10)], calls=[call("dp", 8, 16)], steps=[(0, 0, 20)])
    assert parts(one, 0, 20) == {"compute": 10, "dp": 6, "pp_wait": 4}


def test_a_gap_is_split_at_the_peers_post_and_at_the_arrival():
    """The peer posts at 15, the bytes are there at 22, the action starts at 30."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 10, 22)])
    peer = rank(0, [("0F1", 0, 15)], messages=[("send 1 0F1", 15, 22)])
    assert parts(one, 0, 40, peer) == {"compute": 20, "pp_wait": 5, "pp_transfer": 7, "host": 8}


def test_a_gap_without_a_message_is_the_hosts():
    """Nothing was awaited, so the launch was late."""
    assert parts(rank(0, [("0F0", 0, 10), ("0F1", 14, 20)]), 0, 20) == {"compute": 16, "host": 4}


def test_a_gap_inside_an_action_is_the_hosts():
    """The stream ran dry between two kernels."""
    assert parts(rank(0, [("0F0", 0, 10)], work=[("0F0", 0, 4), ("0F0", 7, 10)]), 0, 10) == {"compute": 7, "host": 3}


def test_before_the_first_and_after_the_last_action_the_rank_waits():
    """Filling and draining, whatever messages say."""
    one = rank(1, [("1F0", 10, 20)], messages=[("recv 0 1F0", 2, 9)], steps=[(0, 0, 40)])
    assert parts(one, 0, 40) == {"compute": 10, "pp_wait": 30}


@pytest.mark.parametrize(
    "made",
    [
        {"stray": [(4, 5)]},
        {"optimizer": [(4, 5)]},
        {"calls": [call("", 4, 5)]},
        {"calls": [call("tp", 4, 5)]},
        {"copies": [(3, 5)]},
    ],
    ids=["stray", "optimizer", "unknown group", "collective of no action", "copy"],
)
def test_what_no_action_asked_for_is_other_inside_an_action(made):
    """Of a hole of 2 in an action, 1 holds something that does not belong to it."""
    one = rank(0, [("0F0", 0, 10)], work=[("0F0", 0, 4), ("0F0", 6, 10)], **made)
    assert parts(one, 0, 10) == {"compute": 8, "host": 1, "other": 1}


def test_a_stray_kernel_does_not_change_why_a_rank_stood_still():
    """Before an action the awaited input explains the gap, whatever else ran in it."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 20, 30)], messages=[("recv 0 1F1", 10, 20)], stray=[(12, 14)])
    peer = rank(0, [("0F1", 0, 20)], messages=[("send 1 0F1", 20, 20)])
    assert parts(one, 0, 30, peer) == {"compute": 20, "pp_wait": 10}


def test_a_message_beside_computation_costs_nothing():
    """A send that runs while the next action works is no part of the window."""
    one = rank(0, [("0F0", 0, 10), ("0F1", 10, 20)], messages=[("send 1 0F0", 10, 20)])
    assert parts(one, 0, 20) == {"compute": 20}


@pytest.mark.parametrize(
    ("span", "moved"), [((3, 12), (2, 12)), ((-2, 5), (-2, 8)), ((1, 9), (0, 10)), ((-1, 14), (-1, 9))]
)
def test_clocks_that_disagree_move_the_window(span, moved):
    """The window holds the rank's own actions, and is as long as before."""
    assert Window(0, 10).around(*span) == Window(*moved)


@given(st.integers(-50, 50), st.integers(0, 50), st.integers(-50, 50), st.integers(0, 50))
@settings(deadline=None)
def test_moving_a_window_never_stretches_it(start, length, first, span):
    """A span that fits is inside afterwards; the length stays."""
    moved = Window(start, start + length).around(first, first + span)
    assert moved.length == length
    assert span > length or (moved.start <= first and first + span <= moved.end)


def test_a_skewed_rank_keeps_its_useful_time():
    """With its clock 25 ahead, rank 1 reports what it reports on the right clock."""
    straight, skewed = (report(one_f_one_b(skew=skew)).ranks[1] for skew in (0, 25))
    assert (skewed.window_ns, skewed.compute_ns, skewed.bubble) == (90, 60, straight.bubble)
    assert straight.compute_ns == 60


def test_outside_the_window_each_instant_has_one_name():
    """Optimizer over compute over gradients over the stage's collectives, and the host has the rest."""
    one = rank(
        0,
        [("0F0", 0, 10)],
        calls=[call("dp", 12, 20), call("tp", 19, 22), call("", 21, 23)],
        optimizer=[(16, 18)],
        stray=[(17, 19)],
        copies=[(22, 24)],
        steps=[(0, 0, 30)],
    )
    # 10-12 host, 12-16 dp, 16-18 optimizer, 18-19 stray, 19-20 dp, 20-23 collectives, 23-24 a copy, 24-30 host
    assert outside(lanes_of(one), [Window(10, 30)]) == Outside(dp=5, optimizer=2, host=8, other=5)


def test_outside_takes_both_sides_and_nothing_backwards():
    """A window that sticks out of its step leaves nothing on that side."""
    lanes = lanes_of(rank(0, [("0F0", 0, 10)], optimizer=[(0, 3), (12, 13)]))
    assert outside(lanes, [Window(0, 2), Window(12, 20)]) == Outside(dp=0, optimizer=3, host=7, other=0)
    assert outside(lanes, [Window(5, 2)]) == Outside(dp=0, optimizer=0, host=0, other=0)


spans = st.tuples(st.integers(0, 60), st.integers(0, 25)).map(lambda s: (s[0], s[0] + s[1]))


@st.composite
def wild(draw):
    """A rank that did anything at any time, and a pairing of its messages that need not make sense."""
    lengths = sorted(draw(st.lists(spans, max_size=5)))
    actions = [(f"0{draw(st.sampled_from('FBIW'))}{i}", *span) for i, span in enumerate(lengths)]
    work = [
        (name, lo + min(a, hi - lo), lo + min(b, hi - lo))
        for name, lo, hi in actions
        for a, b in draw(st.lists(spans, max_size=3))
    ]
    words = draw(st.lists(st.tuples(st.sampled_from(["send", "recv", "either"]), spans), max_size=5))
    asked = st.sampled_from(["", *(name for name, *_ in actions)])
    called = st.tuples(st.sampled_from(["tp", "dp", "pp", ""]), spans, asked)
    one = rank(
        0,
        actions,
        work=work,
        messages=[(f"{word} 1", *span) for word, span in words],
        calls=[call(text, *span, name) for text, span, name in draw(st.lists(called, max_size=4))],
        optimizer=draw(st.lists(spans, max_size=2)),
        stray=draw(st.lists(spans, max_size=2)),
        steps=[(0, 0, 100)],
    )
    end = st.integers(-1, len(actions) - 1)
    moment = st.one_of(st.just(UNKNOWN), st.integers(0, 90))
    ends = draw(st.lists(st.tuples(end, moment), min_size=len(words), max_size=len(words)))
    return one, Pairing([a for a, _ in ends], [t for _, t in ends], [t for _, t in ends])


@given(wild(), st.integers(-10, 90), st.integers(1, 90), st.booleans(), st.one_of(st.just(UNKNOWN), st.integers(0, 90)))
@settings(max_examples=200, deadline=None)
def test_the_parts_add_up_to_the_window(made, start, length, blocking, made_at):
    """Whatever a rank did, to the nanosecond, and useful time is never counted as idle."""
    one, pairing = made
    steps, window = rank_steps(one), Window(start, start + length)
    gaps = find_gaps(one, steps, pairing, np.full(len(one.actions), made_at), blocking=blocking)
    found = partition(lanes_of(one), steps[0], window, gaps[0])
    assert found.window == length
    assert min(getattr(found, name) for name in PARTS) >= 0
    assert found.compute + found.in_stage_comm == steps[0].useful.clip(start, start + length).total
    assert np.all(gaps[0].start <= gaps[0].ready)
    assert np.all(gaps[0].ready <= gaps[0].arrived)
    assert np.all(gaps[0].arrived <= gaps[0].end)


@given(wild(), st.integers(0, 50), st.integers(0, 50))
@settings(deadline=None)
def test_what_is_outside_adds_up_to_the_rest_of_the_step(made, before, after):
    """Both sides of the window, to the nanosecond."""
    found = outside(lanes_of(made[0]), [Window(0, before), Window(100 - after, 100)])
    assert sum(dataclasses.astuple(found)) == before + after


def test_a_window_of_a_skewed_rank_is_its_own():
    """Shifted rows have the same parts in a shifted window."""
    rows = [("0F0", 0, 10), ("0F1", 14, 20)]
    assert parts(rank(0, shifted(rows, 7)), 7, 29) == parts(rank(0, rows), 0, 22)
