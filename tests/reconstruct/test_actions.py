"""From host ranges to actions."""

from __future__ import annotations

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.reconstruct.actions import build, finished
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST, Units
from tests.reconstruct.building import ranges_of

F, B, I, W = Kind  # noqa: E741 - the letter of the field


def units_of(*rows):
    """Units from (host, start, end), in host order."""
    host, start, end = zip(*rows, strict=True) if rows else ((),) * 3
    nothing = np.zeros(len(rows))
    return Units(start, end, host, nothing, nothing, nothing - 1).in_host_order()


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


def test_actions_whose_work_was_cut_off_are_in_no_step():
    """One with a moment of its own in which something was asked for that never ran, and with it the action's pieces."""
    three = ranges_of((F, 0, 10), (B, 20, 30), (B, 40, 50))
    assert finished(three, np.array([0, 0, 1]), np.array([35, 50])).tolist() == [0, 0, NONE]
    assert finished(three, np.array([0, 0, 1]), np.array([], int)).tolist() == [0, 0, 1]
    pieces = three.replace(block=np.array([NONE, 7, 7]))
    assert finished(pieces, np.array([0, 0, 0]), np.array([45])).tolist() == [0, NONE, NONE]
