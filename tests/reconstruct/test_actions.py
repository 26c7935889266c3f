"""From host ranges to actions."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.actions import (
    Ranges,
    behind,
    build,
    drawn_out,
    evaluations_apart,
    finished,
    number,
    recurrences,
    torn,
    unshared,
)
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST, Units

F, B, I, W = Kind  # noqa: E741 - the letter of the field


def ranges_of(*rows):
    """Ranges from (kind, start, end[, microbatch[, stage[, link]]])."""
    full = [(*row, *(NONE, NONE, NONE)[len(row) - 3 :]) for row in rows]
    kind, start, end, microbatch, stage, link = zip(*full, strict=True) if rows else ((),) * 6
    alone = [NONE] * len(rows)
    return Ranges(start, end, kind, stage, microbatch, alone, alone, link)


def units_of(*rows):
    """Units from (host, start, end), in host order."""
    host, start, end = zip(*rows, strict=True) if rows else ((),) * 3
    nothing = np.zeros(len(rows))
    return Units(start, end, host, nothing, nothing, nothing - 1).in_host_order()


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


def test_recurrences():
    """The second time that a name comes begins a step; all names are new after it."""
    once = [(F, 0, 1, 0), (F, 2, 3, 1), (B, 4, 5, 0), (B, 6, 7, 1)]
    again = [(k, s + 10, e + 10, i) for k, s, e, i in once]
    third = [(k, s + 20, e + 20, i) for k, s, e, i in once]
    assert recurrences(ranges_of(*once, *again, *third)).tolist() == [10, 20]
    assert recurrences(ranges_of(*once)).tolist() == []
    assert recurrences(ranges_of()).tolist() == []


def test_names_of_different_stages_do_not_recur():
    """Stage, kind and micro-batch make the name."""
    assert recurrences(ranges_of((F, 0, 1, 0, 0), (F, 2, 3, 0, 2), (B, 4, 5, 0, 0), (W, 6, 7, 0, 0))).tolist() == []


def test_names_without_a_micro_batch_do_not_recur():
    """A name that every micro-batch bears says nothing of steps."""
    assert recurrences(ranges_of((F, 0, 1), (F, 2, 3), (B, 4, 5, 0), (B, 6, 7, 0))).tolist() == [6]


def test_drawn_out_over_the_stages_own_collectives():
    """A range lasts until the collective that ends its last layer was asked for, but never over a message."""
    two = ranges_of((F, 0, 10), (B, 30, 40)).replace(open=[1, 1])
    assert drawn_out(two, np.array([12]), np.array([], int)).end.tolist() == [12, 40]
    assert drawn_out(two, np.array([5, 12, 14, 45]), np.array([20])).end.tolist() == [14, 45]
    assert drawn_out(two, np.array([12, 45]), np.array([11, 44])).end.tolist() == [10, 40]
    assert drawn_out(two, np.array([-5]), np.array([], int)).end.tolist() == [10, 40]
    assert drawn_out(two.replace(open=[0, 1]), np.array([12, 45]), np.array([], int)).end.tolist() == [10, 45]
    assert drawn_out(ranges_of(), np.array([5]), np.array([], int)).end.tolist() == []


def build_of(ranges, work, shared=(), steps=None):
    """(actions, work, owners of collectives) as `build` tells them, in plain rows."""
    step = np.zeros(len(ranges), int) if steps is None else np.array(steps)
    actions, done, asked, _ = build(ranges, step, units_of(*work), units_of(*shared))
    kinds = [Kind(k).name for k in actions.kind]
    return (
        list(zip(kinds, actions.start.tolist(), actions.end.tolist(), strict=True)),
        list(zip(done.action.tolist(), done.start.tolist(), done.end.tolist(), strict=True)),
        asked.tolist(),
    )


def test_an_action_lasts_from_its_first_work_to_its_last():
    """Work is joined where it overlaps or touches, and idle time between stays a gap."""
    work = [(1, 100, 110), (2, 105, 120), (3, 120, 125), (4, 140, 150)]
    assert build_of(ranges_of((F, 0, 10)), work)[:2] == ([("F", 100, 150)], [(0, 100, 125), (0, 140, 150)])


def test_work_of_two_actions_may_overlap():
    """Each action keeps its own work, also where two streams run both at once."""
    found = build_of(ranges_of((F, 0, 10), (B, 10, 20)), [(1, 100, 120), (11, 110, 130)])
    assert found[:2] == ([("F", 100, 120), ("B", 110, 130)], [(0, 100, 120), (1, 110, 130)])


def test_work_of_nobody_is_kept():
    """Work outside all ranges, without a host time, or of an action outside all steps is of no action."""
    ranges = ranges_of((F, 0, 10), (B, 20, 30))
    found = build_of(ranges, [(NO_HOST, 50, 60), (5, 100, 110), (15, 110, 120), (25, 130, 140)], steps=[0, NONE])
    assert found[:2] == ([("F", 100, 110)], [(NONE, 50, 60), (NONE, 110, 120), (NONE, 130, 140), (0, 100, 110)])


def test_empty_work_makes_no_action():
    """Work of no length leaves an action that never ran."""
    assert build_of(ranges_of((F, 0, 10)), [(1, 100, 100)])[:2] == ([], [])


def test_collectives_of_an_action_without_work():
    """A collective that was asked for by a range without work is nobody's."""
    found = build_of(ranges_of((F, 0, 10), (B, 10, 20)), [(15, 100, 110)], shared=[(5, 90, 95), (16, 110, 115)])
    assert found[2] == [NONE, 0]


def test_no_ranges():
    """Without ranges there is work, and no action."""
    assert build_of(ranges_of(), [(1, 5, 6)], [(2, 6, 7)]) == ([], [(NONE, 5, 6)], [NONE])


def test_a_piece_of_an_earlier_step_is_cut_off():
    """The first forward of micro-batch 0 begins a step, if backwards of the step before precede it."""
    piece, whole = [(B, 0, 1, 0, 1)], [(F, 2, 3, 0, 0), (F, 4, 5, 0, 1), (B, 6, 7, 0, 0), (B, 8, 9, 0, 1)]
    assert recurrences(ranges_of(*piece, *whole)).tolist() == [2]


def test_a_recording_that_begins_between_the_chunks():
    """On a rank of two stages the forward of micro-batch 0 on the second begins no step, wherever it stands."""
    piece = [(F, 0, 1, 1, 0), (F, 2, 3, 0, 2), (F, 4, 5, 1, 2), (B, 6, 7, 0, 2), (B, 8, 9, 1, 2), (B, 10, 11, 0, 0)]
    whole = [(F, 20, 21, 0, 0), *((kind, start + 22, end + 22, *key) for kind, start, end, *key in piece)]
    assert recurrences(ranges_of(*piece, *whole)).tolist() == [20]


@pytest.mark.parametrize(
    ("step", "expected"),
    [([0, 0, 0, 0], False), ([0, 0, 1, 1], True), ([1, 0, 0, 1], True), ([0, 0, 0, -1], False)],
)
def test_steps_that_cut_through_the_pipeline(step, expected):
    """A backward in another step than its forward, or before it in its own: the marks stand in the wrong place."""
    linked = [(F, 0, 1, 0, 0), (F, 2, 3, 0, 1), (B, 4, 5, 0, 0), (B, 6, 7, 0, 1)]
    ranges = ranges_of(*linked)
    ranges = ranges.replace(link=[0, 1, 0, 1])
    assert torn(ranges, np.array(step)) is expected


def test_a_step_that_holds_an_action_twice_is_torn():
    """Two optimizer steps under one mark."""
    once = [(F, 0, 1, 0, 0), (B, 2, 3, 0, 0)]
    again = [(F, 4, 5, 0, 0), (B, 6, 7, 0, 0)]
    assert torn(ranges_of(*once, *again), np.array([0, 0, 0, 0]))
    assert not torn(ranges_of(*once, *again), np.array([0, 0, 1, 1]))


def test_steps_begin_behind_the_optimizer():
    """At the first action, or before it if the optimizer ran since the action before; a receive may lie between."""
    optimizer, begun = np.array([30, 35]), np.array([0, 10, 50, 60, 100])
    assert behind(optimizer, np.array([50, 100]), begun).tolist() == [36, 100]
    assert behind(optimizer[:0], np.array([50]), begun).tolist() == [50]
    assert behind(optimizer, np.array([0]), begun).tolist() == [0]


def test_a_step_begins_behind_the_evaluation_before_it():
    """Where forwards that no backward comes for leave a step as large as another; else nothing is cut."""
    plain, more = "FBFB", "FFFBFB"
    assert evaluations_apart(of_kinds(plain + more), np.array([0, 40])).tolist() == [0, 40, 60]
    assert evaluations_apart(of_kinds(more + more), np.array([0, 60])).tolist() == [0, 60]
    assert evaluations_apart(of_kinds(plain + "FBFFFB"), np.array([0, 40])).tolist() == [0, 40]
    assert evaluations_apart(of_kinds(plain + "FF"), np.array([0, 40])).tolist() == [0, 40]


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        ("F0 F1 F0 F1 F2 B0 F3 B1 F2 B0 F3 B1 B2 B3 B2 B3", True),  # interleaved, of two chunks
        ("F0 F1 F0 F1 B0 B1 B0 B1", True),
        ("F0 F0 F0 B0 B0 B0", True),
        ("F0 F0 I0 W0 I0 W0", True),
        ("F0 F0 F1 F1 B0 B0 B1", True),  # the last event was lost
        ("F0 F1 F0 F1 B0 B1 F0 F1 B0 B1", False),  # an evaluation of as many
        ("F0 F0 F0 F0 B0 B0", True),  # behind an evaluation
        ("F0 B0 F1 B1 F0 B0 F1 B1", False),
        ("F0 F1 B0 F0 F1 B0 B1 F0 F1 B1 B0 B1", False),  # a backward of the first step was lost
        ("F0 F1 F2 F3", False),
        ("F0 I0 W0 W0", False),
        ("F0 B0 B0", False),  # a forward was lost
    ],
)
def test_names_that_chunks_share_are_no_names(names, shared):
    """Forwards of one name that all wait for a backward each are of several chunks; then no name is believed."""
    rows = [(Kind[name[0]], 10 * k, 10 * k + 5, int(name[1:])) for k, name in enumerate(names.split())]
    found = unshared(ranges_of(*rows)).microbatch
    assert found.tolist() == ([NONE] * len(rows) if shared else [row[3] for row in rows])
    if shared:
        assert not len(recurrences(unshared(ranges_of(*rows))))


def of_kinds(text):
    """Ranges of such kinds, ten apart."""
    return ranges_of(*((Kind[kind], 10 * k, 10 * k + 5) for k, kind in enumerate(text)))


def test_actions_whose_work_was_cut_off_are_in_no_step():
    """One with a moment of its own in which something was asked for that never ran, and with it the action's pieces."""
    three = ranges_of((F, 0, 10), (B, 20, 30), (B, 40, 50))
    assert finished(three, np.array([0, 0, 1]), np.array([35, 50])).tolist() == [0, 0, NONE]
    assert finished(three, np.array([0, 0, 1]), np.array([], int)).tolist() == [0, 0, 1]
    pieces = three.replace(block=np.array([NONE, 7, 7]))
    assert finished(pieces, np.array([0, 0, 0]), np.array([45])).tolist() == [0, NONE, NONE]
