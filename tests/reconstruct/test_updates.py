"""Updates of weights tell marks of steps from marks of their parts, and where steps begin, if nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.reconstruct.steps import Marks
from bubblescope.reconstruct.units import Units
from bubblescope.reconstruct.updates import parts_of_steps, starts_behind, turns_of


def recorded(marks):
    """Marks that hold kernels, one after the other, written `FFB! | F`; of `!`, an update, only the moment is kept."""
    rows = [
        (10 * k + place, name) for k, mark in enumerate(marks.split("|")) for place, name in enumerate(mark.strip())
    ]
    work = [(moment, ord(name)) for moment, name in rows if name != "!"]
    moments, names = (np.array(column, np.int64) for column in zip(*work, strict=True))
    nothing = np.zeros(len(work))
    edges = np.arange(len(marks.split("|"))) * 10
    units = Units(moments, moments + 1, moments, nothing, names, nothing - 1)
    return Marks(edges, edges, edges + 9), units, np.array([m for m, name in rows if name == "!"], np.int64)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("FFBB! | FFBB! | FFBB! | FFBB!", False),
        ("FB | FB! | FB | FB!", True),
        ("FF | BB! | FF | BB!", True),
        ("FF | FB | FB | BB! | FF | FB | FB | BB!", True),
        ("FFBB! | FFF | FFBB! | FFF | FFF | FFF", False),  # evaluations
        ("FFBB! | FFFA | FFBB! | FFFA | FFFAA | FFA", False),  # with a kernel of their own
        ("FFBB | FFBB! | FFBB! | FFBB!", False),  # an update was skipped
        ("FFBB! | FFBB! | FFBB", False),  # the last was cut off
        ("FB | FB | FB | FB", False),  # nothing tells
    ],
)
def test_marks_that_train_and_mostly_update_nothing_are_of_parts_of_steps(marks, expected):
    """Evaluations run a part of what trainings run, and are none."""
    assert parts_of_steps(*recorded(marks)) is expected


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("FFBB! FFBB! FFBB!", [6, 12]),
        ("!!FFFFBBBB!C! FFFFBBBB!", [2, 14]),  # what is copied amid an update begins no step
        ("FB!FFFFBBBB!FFFFBBBB!", [3, 12]),  # steps of other sizes
        ("FFBB", []),
    ],
)
def test_a_step_begins_with_the_first_work_behind_an_update(stream, expected):
    """However many units the update has."""
    moments = {
        name: np.array([k for k, of in enumerate(stream) if (of == "!") == name and of != " "]) for name in (0, 1)
    }
    assert starts_behind(moments[1], moments[0]).tolist() == expected


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("FB | FB | FB | FB | FB | FB", 1),
        ("F | FF | FB | BB | FF | FB | BB | FF", 3),
        ("F | FF | FB | BB | F | B | FF | FFF", 1),
    ],
)
def test_parts_of_steps_come_in_turns(marks, expected):
    """Whole steps are alike, or differ without any order; the ends of a recording say nothing."""
    assert turns_of(*recorded(marks)[:2]) == expected
