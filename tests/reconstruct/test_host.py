"""Host ranges that are actions: how far they reach, and which micro-batch each is of."""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.host import drawn_out, number
from bubblescope.reconstruct.ranges import NONE
from tests.reconstruct.building import ranges_of

F, B, I, W = Kind  # noqa: E741 - the letter of the field


def numbered(ranges, steps=None):
    """Micro-batches after counting."""
    return number(ranges, np.zeros(len(ranges), int) if steps is None else np.array(steps)).microbatch.tolist()


def test_known_micro_batches_stay():
    """What a label tells is not counted again."""
    assert numbered(ranges_of((F, 0, 1, 7), (F, 2, 3, 5), (B, 4, 5, 7))) == [7, 5, 7]


def test_unknown_micro_batches_are_counted_by_kind():
    """Without numbers and links each kind is counted by itself, in time order."""
    assert numbered(ranges_of((F, 0, 1), (B, 2, 3), (F, 4, 5), (B, 6, 7), (I, 8, 9), (W, 9, 10))) == [0, 0, 1, 1, 0, 0]


def test_counting_begins_anew_in_each_step():
    """The second step's first forward is micro-batch 0 again."""
    assert numbered(ranges_of((F, 0, 1), (F, 2, 3), (F, 4, 5)), [0, 0, 1]) == [0, 1, 0]


def test_a_backward_takes_the_number_of_its_forward():
    """A link tells which micro-batch a backward is, however late it comes; both halves of a split one too."""
    rows = [(F, 0, 1), (F, 2, 3), (I, 4, 5), (I, 6, 7), (W, 8, 9)]
    links = [0, 1, 1, 0, 1]
    assert numbered(ranges_of(*[(*row, NONE, NONE, link) for row, link in zip(rows, links, strict=True)])) == [
        0, 1, 1, 0, 1,
    ]  # fmt: skip


def test_a_backward_without_its_forward_has_no_number():
    """Where others are linked, a backward whose forward was not recorded is not counted among them."""
    assert numbered(ranges_of((B, 0, 1), (F, 2, 3, NONE, NONE, 0), (B, 4, 5, NONE, NONE, 0))) == [NONE, 0, 0]


def test_drawn_out_over_the_stages_own_collectives():
    """A range lasts until the collective that ends its last layer was asked for, but never over a message."""
    two = ranges_of((F, 0, 10), (B, 30, 40)).replace(open=[1, 1])
    assert drawn_out(two, np.array([12]), np.array([], int)).end.tolist() == [12, 40]
    assert drawn_out(two, np.array([5, 12, 14, 45]), np.array([20])).end.tolist() == [14, 45]
    assert drawn_out(two, np.array([12, 45]), np.array([11, 44])).end.tolist() == [10, 40]
    assert drawn_out(two, np.array([-5]), np.array([], int)).end.tolist() == [10, 40]
    assert drawn_out(two.replace(open=[0, 1]), np.array([12, 45]), np.array([], int)).end.tolist() == [10, 45]
    assert drawn_out(ranges_of(), np.array([5]), np.array([], int)).end.tolist() == []
