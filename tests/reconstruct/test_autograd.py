"""Actions from autograd's sequence numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.autograd import find_blocks
from tests.building import GRADIENT, backward, forward, note, op, trace


def blocks_of(*rows, cuts=(), fences=()):
    """("F", start, end, link) of each block; every block starts before it ends and they are in time order."""
    found = find_blocks(trace(*rows), np.array(sorted(cuts), np.int64), np.array(fences, np.int64))
    assert np.all(found.start < found.end)
    assert np.all(np.diff(found.start) >= 0)
    rows = zip(*(getattr(found, c).tolist() for c in ("kind", "start", "end", "link")), strict=True)
    return [(Kind(k).name, s, e, link) for k, s, e, link in rows]


def test_one_forward_and_its_backward():
    """The operators that a backward links to are its forward."""
    assert blocks_of(forward(0, 1, 2, 3), backward(50, 3, 2, 1)) == [("F", 0, 29, 0), ("B", 50, 79, 0)]


def test_rising_numbers_begin_the_next_backward():
    """Two backwards that follow each other directly are told apart by the rise of their numbers."""
    assert blocks_of(forward(0, 1, 2), forward(30, 3, 4), backward(60, 2, 1), backward(80, 4, 3)) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("B", 60, 79, 0), ("B", 80, 99, 1),
    ]  # fmt: skip


def test_one_forward_one_backward():
    """Forwards between backwards are linked to their own."""
    built = [
        forward(0, 1, 2), backward(20, 2, 1), forward(40, 3, 4), backward(60, 4, 3), forward(80, 5, 6),
        backward(100, 6, 5),
    ]  # fmt: skip
    assert blocks_of(built) == [
        ("F", 0, 19, 0), ("B", 20, 39, 0), ("F", 40, 59, 1), ("B", 60, 79, 1), ("F", 80, 99, 2), ("B", 100, 119, 2),
    ]  # fmt: skip


def test_a_reverse_drain_needs_cuts():
    """Micro-batches backward in reverse order fall like one backward; sends between them tell them apart."""
    built = [forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3), backward(90, 2, 1)]
    assert blocks_of(built, cuts=[25, 55, 85]) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("B", 60, 79, 1), ("B", 90, 109, 0),
    ]  # fmt: skip


def test_decoys_before_the_forward():
    """An operator that creates no node shows the number of the next one: the latest earlier one is meant."""
    decoys = [op("aten::zero_", 0, 9, seq=1), op("aten::randn", 10, 19, seq=1)]
    assert blocks_of(decoys, forward(30, 1, 2), backward(60, 2, 1)) == [("F", 30, 49, 0), ("B", 60, 79, 0)]


def test_decoys_after_the_backward():
    """The optimizer and what a framework does at its end show old numbers; they make no forward."""
    tail = [op("aten::_foreach_add_", 90, 99, seq=2), op("aten::norm", 100, 109, seq=3)]
    built = [forward(0, 1, 2), backward(30, 2, 1), tail]
    assert blocks_of(built) == [("F", 0, 19, 0), ("B", 30, 49, 0)]
    again = [forward(120, 3, 4), backward(150, 4, 3)]
    assert blocks_of(built, again)[2:] == [("F", 120, 139, 1), ("B", 150, 169, 1)]


def test_decoys_between_forward_and_backward_are_the_limit():
    """A decoy after the forward's own node takes the link of that number; the others still make the forward."""
    decoy = op("aten::detach", 40, 45, seq=4)  # what would have been the next number
    assert blocks_of(forward(0, 1, 2, 3), decoy, backward(60, 3, 2, 1))[0] == ("F", 0, 29, 0)


@pytest.mark.parametrize("name", ["c10d::send", "record_param_comms", "_c10d_functional::all_reduce"])
def test_communication_creates_no_node(name):
    """Calls of c10d show numbers too, and are no forward."""
    call = op(name, 20, 29, seq=2)  # the latest of its number, and yet not meant
    assert blocks_of(forward(0, 1, 2), call, backward(60, 2, 1))[0] == ("F", 0, 19, 0)


def test_accumulated_gradients_go_with_their_call():
    """Nodes without a number neither begin a call nor end one."""
    built = [forward(0, 1, 2), forward(30, 3, 4), backward(60, -1, 2, -1, 1, -1), backward(120, 4, -1, 3, -1)]
    assert [b for b in blocks_of(built) if b[0] == "B"] == [("B", 60, 109, 0), ("B", 120, 159, 1)]


def test_backward_operators_without_the_engines_name():
    """Older traces and other devices tell a backward by the thread of its forward alone."""
    built = [
        forward(0, 1, 2),
        [op("MmBackward", 30 + 10 * i, 39 + 10 * i, seq=2 - i, forward_thread=1) for i in (0, 1)],
    ]
    assert blocks_of(built) == [("F", 0, 19, 0), ("B", 30, 49, 0)]


def test_backward_runs_on_another_thread():
    """On a GPU, autograd's own thread runs the backward while the main thread waits in it."""
    built = [
        forward(0, 1, 2),
        backward(30, 2, 1, thread="autograd"),
        forward(60, 3, 4),
        backward(90, 4, 3, thread="autograd"),
    ]
    assert blocks_of(built) == [("F", 0, 19, 0), ("B", 30, 49, 0), ("F", 60, 79, 1), ("B", 90, 109, 1)]


def test_a_backward_on_two_threads_is_one():
    """The nodes of one call may run on two threads: one forward, nothing between, one backward."""
    built = [forward(0, 1, 2, 3), backward(50, 3, 1, thread="cuda 0"), backward(72, 2, thread="cuda 1")]
    assert blocks_of(built) == [("F", 0, 29, 0), ("B", 50, 81, 0)]


def test_recomputation_belongs_to_the_backward():
    """Forward operators inside a backward one, with numbers of their own, make no forward."""
    inner = [op("aten::mm", 52, 54, seq=10), op("aten::relu", 55, 57, seq=11)]
    built = [forward(0, 1, 2), backward(50, 2, 1), inner, forward(80, 10, 11), backward(110, 11, 10)]
    assert blocks_of(built) == [("F", 0, 19, 0), ("B", 50, 69, 0), ("F", 80, 99, 1), ("B", 110, 129, 1)]


def test_operators_of_a_backward_node_are_no_forward():
    """What a node runs bears the node's number; a later call of that number still means the forward."""
    inner = [op("MmBackward0", 31, 38, seq=2), op("MmBackward0", 41, 48, seq=1)]
    built = [forward(0, 1, 2), backward(30, 2, 1), inner, forward(60, 3, 4), backward(90, 2, 1), backward(120, 4, 3)]
    assert blocks_of(built) == [
        ("F", 0, 19, 0), ("I", 30, 49, 0), ("F", 60, 79, 1), ("W", 90, 109, 0), ("B", 120, 139, 1),
    ]  # fmt: skip


def test_numbers_that_rise_within_a_call():
    """Branches of a graph need not run in falling order: between two messages only another forward is another call."""
    built = [forward(0, 1, 2, 3, 4), backward(60, 2, 1, 4, 3)]
    assert blocks_of(built, cuts=[50]) == [("F", 0, 39, 0), ("B", 60, 99, 0)]


def test_backwards_on_two_threads_are_two_calls():
    """What two threads run is not one call, even where the numbers go on falling."""
    built = [
        forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3, thread="cuda 0"), backward(90, 2, 1, thread="cuda 1"),
    ]  # fmt: skip
    assert blocks_of(built) == [("F", 0, 19, 0), ("F", 30, 49, 1), ("B", 60, 79, 1), ("B", 90, 109, 0)]


def test_a_backward_inside_a_backward_is_no_call():
    """Checkpoints that re-enter the engine run a whole backward, with its own higher numbers, inside an operator."""
    outer = op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 50, 90, seq=2, forward_thread=1)
    inner = [op("aten::mm", 52, 60, seq=10), op(GRADIENT, 62, 70, seq=10, forward_thread=1)]
    built = [forward(0, 1, 2, 3), backward(40, 3), outer, inner, backward(92, 1)]
    assert blocks_of(built) == [("F", 0, 29, 0), ("B", 40, 101, 0)]


def test_an_operator_around_the_node_belongs_to_the_forward():
    """A node's operator may lie in a longer one, which computes before and after the node is made."""
    built = [op("aten::linear", 0, 40), op("aten::addmm", 5, 10, seq=1), backward(60, 1)]
    assert blocks_of(built)[0][:3] == ("F", 0, 40)


def test_a_node_shared_by_all_micro_batches():
    """A weight that autocast converted once links every backward to the first forward; cuts tell it apart."""
    built = [forward(0, 1, 2, 3), forward(40, 4, 5), forward(70, 6, 7), backward(100, 3, 2, 1),
             backward(140, 5, 4, 1), backward(180, 7, 6, 1)]  # fmt: skip
    assert blocks_of(built, cuts=[35, 65, 95, 135, 175]) == [
        ("F", 0, 29, 0), ("F", 40, 59, 1), ("F", 70, 89, 2),
        ("B", 100, 129, 0), ("B", 140, 169, 1), ("B", 180, 209, 2),
    ]  # fmt: skip


def test_a_split_backward_is_two_actions():
    """Two calls into one forward with another action between them are input, then weight gradient."""
    cuts = [25, 55, 79, 99]
    built = [forward(0, 1, 2), forward(30, 3, 4), backward(60, 2, 1), backward(80, 4, 3), backward(100, 2, 1),
             backward(120, 4, 3)]  # fmt: skip
    assert blocks_of(built, cuts=cuts) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("I", 60, 79, 0), ("I", 80, 99, 1), ("W", 100, 119, 0), ("W", 120, 139, 1),
    ]  # fmt: skip


def test_a_forward_between_splits_a_backward():
    """A forward between the two calls splits the backward as well as another backward does."""
    built = [forward(0, 1, 2), backward(20, 2, 1), forward(40, 3, 4), backward(60, 2, 1), backward(80, 4, 3)]
    assert [kind for kind, *_ in blocks_of(built)] == ["F", "I", "F", "W", "B"]


@pytest.mark.parametrize("calls", [2, 3, 4])
@pytest.mark.parametrize("cut", [False, True])
def test_a_second_call_into_the_same_nodes_is_the_weights_gradient(calls, cut):
    """A backward comes to a node once: calls that come again, with nothing between, are I and then one W."""
    built = [forward(0, 1, 2), [backward(50 + 20 * i, 2, 1) for i in range(calls)]]
    cuts = [20, *(49 + 20 * i for i in range(1, calls))] if cut else []
    assert blocks_of(built, cuts=cuts) == [("F", 0, 19, 0), ("I", 50, 69, 0), ("W", 70, 49 + 20 * calls, 0)]


@pytest.mark.parametrize("cut", [False, True])
def test_calls_into_other_nodes_of_one_forward_are_one_backward(cut):
    """Calls that follow each other and share no node are one full backward, a message posted between or not."""
    built = [forward(0, 1, 2, 3, 4), backward(50, 4, 2), backward(70, 3, 1)]
    assert blocks_of(built, cuts=[40, 69] if cut else []) == [("F", 0, 39, 0), ("B", 50, 89, 0)]


@pytest.mark.parametrize("cuts", [(), (25, 59)], ids=["no messages", "messages"])
def test_a_weight_gradient_of_several_calls_is_one(cuts):
    """Weight gradients are taken group by group of the parameters, a call each: they are one W, not many."""
    built = [
        forward(0, 1, 2), backward(30, 2, 1), forward(60, 3, 4),
        backward(80, 2, 1), backward(100, 2, 1), backward(120, 2, 1), backward(140, 4, 3),
    ]  # fmt: skip
    assert blocks_of(built, cuts=cuts) == [
        ("F", 0, 19, 0), ("I", 30, 49, 0), ("F", 60, 79, 1), ("W", 80, 139, 0), ("B", 140, 159, 1),
    ]  # fmt: skip


def test_a_backward_whose_forward_was_not_recorded():
    """A file that begins late holds backwards without a forward; they are actions without a link."""
    built = [backward(0, 2, 1), forward(30, 3, 4), backward(60, 4, 3)]
    assert blocks_of(built) == [("B", 0, 19, -1), ("F", 30, 49, 0), ("B", 60, 79, 0)]


def test_a_forward_without_a_backward_is_not_found():
    """Where no backward was recorded nothing links, and nothing is invented."""
    assert blocks_of(forward(0, 1, 2)) == []
    assert blocks_of(backward(0, 2, 1)) == []
    assert blocks_of(backward(0, 2, 1), forward(30, 3, 4)) == []
    assert blocks_of() == []


def test_two_chunks():
    """A rank with two chunks runs two forwards and two backwards a micro-batch, the later chunk's backward first."""
    built = [forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3), backward(90, 2, 1)]
    cuts = [25, 55, 85]  # chunk 0 sends, chunk 1 receives; its backward sends, chunk 0's receives
    assert blocks_of(built, cuts=cuts) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("B", 60, 79, 1), ("B", 90, 109, 0),
    ]  # fmt: skip


def test_work_without_gradient_goes_with_the_forward():
    """What follows a forward's last node before the next message needs no gradient and is still the forward."""
    frozen = op("aten::frozen", 25, 45, seq=9)
    built = [forward(0, 1, 2), frozen, backward(60, 2, 1)]
    assert blocks_of(built, cuts=[50])[0] == ("F", 0, 45, 0)
    assert blocks_of(built)[0] == ("F", 0, 19, 0)  # without messages nothing says where it ends


def test_work_without_gradient_before_a_forward_stays_out():
    """What precedes a forward may be the loading of its data."""
    built = [op("aten::load", 0, 9, seq=0), forward(10, 1, 2), backward(60, 2, 1)]
    assert blocks_of(built, cuts=[50])[0] == ("F", 10, 29, 0)


@pytest.mark.parametrize(("fences", "end"), [([22], 19), ([46], 45)], ids=["before", "after"])
def test_fences_stop_the_forward(fences, end):
    """A step or an optimizer that begins ends what a forward may take in."""
    built = [forward(0, 1, 2), op("aten::norm", 25, 45, seq=9), backward(60, 2, 1)]
    assert blocks_of(built, cuts=[50], fences=fences)[0] == ("F", 0, end, 0)


def test_a_stretch_with_two_forwards_is_left_as_it_is():
    """Where no message lies between two forwards, nothing tells where the first one ends."""
    built = [forward(0, 1, 2), op("aten::frozen", 22, 28, seq=3), forward(30, 3, 4), op("aten::frozen", 52, 58, seq=5),
             backward(80, 2, 1), backward(100, 4, 3)]  # fmt: skip
    found = blocks_of(built, cuts=[70, 99])
    assert [b[:3] for b in found if b[0] == "F"] == [("F", 0, 19), ("F", 30, 49)]


def test_a_node_shared_by_split_backwards():
    """Each input and each weight gradient comes to the shared node, too: it is the others that tell its forward."""
    calls = [(3, 2, 1), (5, 4, 1), (7, 6, 1)] * 2
    built = [forward(0, 1, 2, 3), forward(40, 4, 5), forward(70, 6, 7),
             [backward(100 + 40 * i, *numbers) for i, numbers in enumerate(calls)]]  # fmt: skip
    found = blocks_of(built, cuts=[35, 65, *range(95, 300, 40)])
    assert [b[:3] for b in found[:3]] == [("F", 0, 29), ("F", 40, 59), ("F", 70, 89)]
    assert [(b[0], b[3]) for b in found[3:]] == [("I", 0), ("I", 1), ("I", 2), ("W", 0), ("W", 1), ("W", 2)]


@pytest.mark.parametrize("cuts", [(), (45,)], ids=["no messages", "messages"])
def test_a_weight_gradient_begins_where_the_numbers_rise(cuts):
    """Its first node may be one that the input gradient left out: the rise before the second visit is the border."""
    built = [forward(0, 1, 2, 3, 4), backward(50, 3, 2, 1, 4, 3, 2, 1)]
    assert blocks_of(built, cuts=cuts) == [("F", 0, 39, 0), ("I", 50, 79, 0), ("W", 80, 119, 0)]


def test_an_input_gradient_right_behind_a_weight_gradient():
    """Numbers that go on falling into another forward, to which a later call comes again, are its input gradient."""
    built = [
        forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3), forward(80, 5, 6), backward(100, 4, 3, 2, 1),
        forward(140, 7, 8), backward(160, 2, 1), backward(180, 6, 5), backward(200, 8, 7),
    ]  # fmt: skip
    assert blocks_of(built) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("I", 60, 79, 1), ("F", 80, 99, 2), ("W", 100, 119, 1), ("I", 120, 139, 0),
        ("F", 140, 159, 3), ("W", 160, 179, 0), ("B", 180, 199, 2), ("B", 200, 219, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("cuts", [(), (45, 75)], ids=["no messages", "messages"])
def test_a_node_that_only_weight_gradients_come_to(cuts):
    """The first layer needs no input gradient: what its weight gradient visits once and nobody else does is its own."""
    built = [forward(0, 0, 1, 2), backward(50, 2, 1), backward(80, 2, 1, 0)]
    assert blocks_of(built, cuts=cuts) == [("F", 0, 29, 0), ("I", 50, 69, 0), ("W", 80, 109, 0)]


def test_a_forward_between_parts_backwards_whose_numbers_fall():
    """A thread that ran a forward in between runs another call, even where the numbers go on falling."""
    built = [forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3), forward(80, 5, 6), backward(100, 2, 1),
             backward(120, 6, 5)]  # fmt: skip
    assert blocks_of(built) == [
        ("F", 0, 19, 0), ("F", 30, 49, 1), ("B", 60, 79, 1), ("F", 80, 99, 2), ("B", 100, 119, 0), ("B", 120, 139, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("cuts", [(), (25,)], ids=["no messages", "messages"])
def test_several_operators_of_a_node_are_one_visit(cuts):
    """What a node runs in a row, without an operator around it, does not make the call come to it again."""
    assert blocks_of(forward(0, 1, 2), backward(30, 2, 2, 1, 1), cuts=cuts) == [("F", 0, 19, 0), ("B", 30, 69, 0)]


def test_a_shared_node_is_no_second_visit():
    """A full backward of two calls, each of which comes to the node that all micro-batches share, is still one."""
    built = [forward(0, 1, 2, 3), forward(40, 4, 5, 6, 7), forward(90, 8, 9), backward(120, 3, 2, 1),
             backward(160, 7, 5, 1), backward(200, 6, 4, 1), backward(240, 9, 8, 1)]  # fmt: skip
    assert blocks_of(built, cuts=[35, 85, 115, 155, 195, 235])[3:] == [
        ("B", 120, 149, 0), ("B", 160, 229, 1), ("B", 240, 269, 2),
    ]  # fmt: skip


ALONE = [forward(0, 1, 2), forward(30, 3, 4), backward(60, 4, 3), backward(90, 2, 1)]
"""Two forwards with a message between them, and their backwards."""


def turned(*rows, cuts):
    """Kind, start and end of what follows `ALONE`."""
    return [block[:3] for block in blocks_of(ALONE, *rows, cuts=[25, 55, 85, 115, *cuts])[4:]]


def test_forwards_without_a_message_between_are_parted_where_a_pipeline_turns():
    """Two forwards stand alone elsewhere, and some backward goes through one of them: all such stretches are cut."""
    apart = [forward(120, 5, 6, 7, 8), backward(170, 8, 7), forward(200, 9, 10), backward(230, 6, 5),
             backward(260, 10, 9)]  # fmt: skip
    assert turned(apart, cuts=[165, 195, 225, 255]) == [
        ("F", 120, 139), ("F", 140, 159), ("B", 170, 189), ("F", 200, 219), ("B", 230, 249), ("B", 260, 279),
    ]  # fmt: skip
    at_once = [forward(290, 11, 12, 13, 14), backward(340, 14, 13, 12, 11)]
    assert turned(apart, at_once, cuts=[165, 195, 225, 255, 285, 335])[6:] == [
        ("F", 290, 309), ("F", 310, 329), ("B", 340, 359), ("B", 360, 379),
    ]  # fmt: skip


def test_a_stage_of_twice_the_layers_does_not_turn():
    """No backward goes through half of it; that weight gradients are taken half by half says nothing."""
    deep = forward(120, 5, 6, 7, 8)
    assert turned(deep, backward(170, 8, 7, 6, 5), cuts=[165]) == [("F", 120, 159), ("B", 170, 209)]
    split = [deep, backward(170, 8, 7, 6, 5), backward(220, 8, 7), backward(250, 6, 5)]
    assert turned(split, cuts=[165, 215, 245]) == [("F", 120, 159), ("I", 170, 209), ("W", 220, 269)]


def test_annotations_are_no_operators():
    """Only operators make blocks."""
    assert blocks_of(note(GRADIENT, 0, 10), forward(20, 1)) == []
