"""What undescribed groups are for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.model.actions import Kind
from bubblescope.model.groups import serves
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.purposes import with_purposes
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.units import NO_HOST, Units

RANKS = (0, 1)


def acts(text="FBFBFBFBFB"):
    """Actions of these kinds, 100 apart and 50 long: the k-th is at 100 k."""
    start, unknown = 100 * np.arange(len(text)), [NONE] * len(text)
    return Ranges(start, start + 50, [Kind[kind] for kind in text], *[unknown] * 5)


def purposes(*rows, actions=None, borders=()):
    """What each collective is for: rows are (operation, host moment[, what else the call says])."""
    calls = [CommArgs(op=op, **{"ranks": RANKS, **(said[0] if said else {})}) for op, _, *said in rows]
    table = list(dict.fromkeys(calls))
    host = np.array([at for _, at, *_ in rows], np.int64)
    units = Units(host, host, host, *[np.zeros(len(rows))] * 3)
    shared = Talk(units, tuple(table), np.array([table.index(c) for c in calls], np.int64), np.arange(len(rows)))
    found = with_purposes(shared, acts() if actions is None else actions, np.array(sorted(borders), np.int64))
    assert [found.calls[r].op for r in found.row] == [op for op, *_ in rows]
    return [serves(found.calls[r]) for r in found.row]


def inside(op, numbers, **said):
    """A collective in each of these actions."""
    return [(op, 100 * k + 20, said) for k in numbers]


FORWARDS, BACKWARDS, ALL = range(0, 10, 2), range(1, 10, 2), range(10)


@pytest.mark.parametrize(
    ("forwards", "backwards", "purpose"),
    [
        (["all_reduce"], ["all_reduce"], "tp"),
        (["all_reduce"], [], None),
        (["reduce_scatter", "all_gather"], ["reduce_scatter", "all_gather"], "tp"),
        (["all_to_all"], ["all_to_all"], "ep"),
        (["all_to_all", "all_reduce"], ["all_to_all", "all_reduce"], "tp"),
        (["all_gather", "all_reduce"], ["all_gather", "reduce_scatter"], "dp"),
        (["all_gather"], ["reduce_scatter"], "dp"),
        (["all_gather"], ["all_gather", "reduce_scatter"], "dp"),
        (["all_gather"], ["all_gather"], None),
        (["all_gather"], [], None),
        (["broadcast"], [], None),
        (["broadcast"], ["reduce_scatter"], None),
        ([], ["all_reduce"], "dp"),
        ([], ["reduce_scatter"], "dp"),
        ([], ["all_gather"], None),
        ([], ["all_reduce", "broadcast"], None),
    ],
)
def test_what_a_group_does_tells_what_it_is_for(forwards, backwards, purpose):
    """Tensor, expert and data parallelism are told by what all forwards and all backwards ask for."""
    rows = [row for op in forwards for row in inside(op, FORWARDS)]
    rows += [row for op in backwards for row in inside(op, BACKWARDS)]
    rows.sort(key=lambda row: row[1])
    assert purposes(*rows) == [purpose] * len(rows)


@pytest.mark.parametrize(("held", "purpose"), [(20, "tp"), (18, "tp"), (17, None), (1, None)])
def test_nearly_all_forwards_must_ask(held, purpose):
    """The stage's own computation is in nine of ten forwards at least: a recording may have lost a few."""
    rows = inside("all_reduce", range(held))
    assert purposes(*rows, actions=acts("F" * 20)) == [purpose] * held


def test_groups_are_told_apart_by_their_ranks():
    """All-reduces of one group in every action and of another in the last backward are tensor and data parallel."""
    rows = [*inside("all_reduce", ALL), *inside("all_reduce", [9], ranks=(0, 2))]
    assert purposes(*rows) == ["tp"] * 10 + ["dp"]


def test_groups_are_told_apart_by_their_name():
    """Where a call names its group and not its ranks the name counts."""
    rows = [*inside("all_reduce", ALL, ranks=(), group="3"), *inside("all_reduce", [9], ranks=(), group="4")]
    assert purposes(*rows) == ["tp"] * 10 + ["dp"]


def test_calls_that_name_no_group_are_told_apart_by_their_operation():
    """All-to-alls of nobody knows whom in every action are told, and all-reduces of the backwards may be anything."""
    rows = [*inside("all_to_all", ALL, ranks=()), *inside("all_reduce", BACKWARDS, ranks=())]
    assert purposes(*sorted(rows, key=lambda row: row[1])) == ["ep", "ep", None] * 5


def test_a_description_stays():
    """What a framework says of a group counts, whatever the group does."""
    rows = inside("all_reduce", FORWARDS, description="dp")
    assert purposes(*rows) == ["dp"] * 5
    mixed = [*rows, *inside("all_reduce", BACKWARDS)]
    assert purposes(*sorted(mixed, key=lambda row: row[1])) == ["dp"] * 10  # the others only reduce gradients


def test_what_follows_an_action_is_its_own():
    """A tensor-parallel layer ends with a collective behind the last operator of its forward."""
    rows = [("all_reduce", 100 * k + 70) for k in ALL]
    assert purposes(*rows) == ["tp"] * 10


def test_no_action_reaches_over_a_border():
    """What is asked for after a message or at the end of a step belongs to no action: nothing tells what it is for."""
    rows = [("all_reduce", 100 * k + 70) for k in FORWARDS]
    assert purposes(*rows, borders=[100 * k + 60 for k in FORWARDS]) == [None] * 5


def test_a_message_posted_inside_an_action_ends_nothing():
    """Up to its own end an action asks for its collectives, whatever is posted in between."""
    rows = inside("all_reduce", ALL)
    assert purposes(*rows, borders=[100 * k + 30 for k in ALL]) == ["tp"] * 10


def test_what_no_action_asked_for_tells_nothing():
    """Collectives before the first action and kernels without a launch neither tell a purpose nor get one."""
    rows = [("all_reduce", NO_HOST), ("all_reduce", -5), *inside("all_reduce", ALL)]
    assert purposes(*rows) == [None, None, *["tp"] * 10]


def test_without_actions_nothing_is_told():
    """Where nobody knows what a rank did there is no purpose."""
    assert purposes(*inside("all_reduce", FORWARDS), actions=acts("")) == [None] * 5
    assert purposes() == []


def test_an_evaluation_has_stages_too():
    """Without any backward the all-reduces of every forward are the stage's own."""
    assert purposes(*inside("all_reduce", range(4)), actions=acts("FFFF")) == ["tp"] * 4


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]),
            st.integers(-50, 1100), st.sampled_from([(), (0, 1), (0, 2)]), st.sampled_from(["", "pp", "dp"]),
        ),
        max_size=20,
    ),
    st.text("FBIW", max_size=10), st.lists(st.integers(0, 1000), max_size=5),
)  # fmt: skip
def test_only_a_purpose_is_ever_added(rows, kinds, borders):
    """Of whatever calls: operations, their order and descriptions stay, and only what was open is told."""
    rows = [(op, at, {"ranks": ranks, "description": d}) for op, at, ranks, d in sorted(rows, key=lambda r: r[1])]
    found = purposes(*rows, actions=acts(kinds), borders=borders)
    assert all(was == now for (_, _, said), now in zip(rows, found, strict=True) if (was := said["description"]))
