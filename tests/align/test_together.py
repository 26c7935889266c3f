"""Collectives of several ranks that are one."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.align.together import exchanges, unnamed_calls, whole_collectives
from bubblescope.model.job import CallKind
from tests.analysis.jobs import call, rank, steps


def whole(*ranks, parties=None):
    """The members of every whole collective; each rank is a list of its calls."""
    built = {r: rank(r, calls=calls, steps=steps(3)) for r, calls in enumerate(ranks)}
    return list(whole_collectives(built, parties or {}))


def made(*groups, op="all_reduce", step=0):
    """A call for each group: a tuple of its ranks, or its name where these are unknown."""
    said = [{"group": g} if isinstance(g, str) else {"ranks": g} for g in groups]
    return [call("", 10 * i, 10 * i + 5, op=op, step=step, **each) for i, each in enumerate(said)]


PAIR = (0, 1)


def test_the_same_place_in_the_order_is_the_same_call():
    """The k-th call of a group on one rank belongs to the k-th on the other, whatever stands between."""
    assert whole(made(PAIR, (0, 2), PAIR), made(PAIR, PAIR)) == [[(0, 0), (1, 0)], [(0, 2), (1, 1)]]


@pytest.mark.parametrize(
    "other",
    [made((0, 2)), made(PAIR, op="all_gather"), made(PAIR, step=1), made("tp"), []],
    ids=["group", "operation", "step", "no ranks", "nothing"],
)
def test_what_differs_is_another_call(other):
    """Group, operation and step must be the same."""
    assert whole(made(PAIR), other) == []


def test_a_group_is_known_by_its_ranks():
    """Where all its ranks are told, what each of them calls it is not asked."""
    named = [[call("", 0, 5, ranks=PAIR, group=name)] for name in ("7", "8")]
    assert whole(*named) == [[(0, 0), (1, 0)]]


def test_a_member_that_was_not_recorded_leaves_none():
    """Whether it was the last to join nobody knows."""
    assert whole(made((0, 1, 2)), made((0, 1, 2))) == []


def test_where_one_member_lacks_a_call_nothing_is_told():
    """Rank 1 shows one call fewer, and which of them it lacks nobody knows; other groups are not concerned."""
    assert whole(made(PAIR, PAIR), made(PAIR)) == []
    assert whole(made(PAIR, PAIR, (1, 0)), made(PAIR, (1, 0))) == [[(0, 2), (1, 1)]]


def test_unknown_members_are_who_is_told():
    """A group that has a name only joins nobody by itself; those that are told are together if each made the call."""
    made_ = made("a", "b"), made("b", "a"), made("b")
    all_, some = ({CallKind(name, "all_reduce"): groups} for name, groups in (("b", ((0, 1, 2),)), ("a", ((0, 1),))))
    assert whole(*made_) == []
    assert whole(*made_, parties=all_) == [[(0, 1), (1, 0), (2, 0)]]
    assert whole(*made_, parties=some) == [[(0, 0), (1, 1)]]
    assert whole(*made_, parties={CallKind("a", "all_reduce"): ((0, 1, 2),)}) == []


def test_calls_that_name_nobody_are_told_apart():
    """By group, operation, bytes, and whether an action asked; those of stages or replicas are left aside."""
    calls = [
        call("", 0, 5, size=8),
        call("", 10, 15, size=8, asked="0F0"),
        call("", 20, 25, size=8, op="all_to_all"),
        call("", 30, 35, group="a"),
        call("dp", 40, 45),
        call("", 50, 55, ranks=(0, 1)),
        call("", 60, 65, op="send"),
    ]
    one = rank(0, [("0F0", 0, 20)], calls=calls, steps=[(3, 0, 100)])
    assert list(unnamed_calls(one)) == [
        (0, CallKind("", "all_reduce", 8), 3),
        (1, CallKind("", "all_reduce", 8, asked=True), 3),
        (2, CallKind("", "all_to_all"), 3),
        (3, CallKind("a", "all_reduce"), 3),
    ]


def test_alone_nobody_is_together():
    """A group of one rank, or a job of which one was recorded, bounds no clock."""
    assert whole(made((0,)), made((1,))) == []
    assert whole(made("a"), parties={CallKind("a", "all_reduce"): ((0,),)}) == []


def test_steps_go_by_their_number():
    """Recordings may begin at different steps."""
    first = rank(0, calls=made(PAIR, step=1), steps=steps(3))
    second = rank(1, calls=made(PAIR, step=0), steps=steps(3)[1:])
    outside = [rank(r, calls=made(PAIR, step=-1), steps=steps(1)) for r in PAIR]
    assert list(whole_collectives({0: first, 1: second}, {})) == [[(0, 0), (1, 0)]]
    assert list(whole_collectives(dict(enumerate(outside)), {})) == [[(0, 0), (1, 0)]]
    assert list(whole_collectives({0: outside[0], 1: rank(1, calls=made(PAIR), steps=steps(1))}, {})) == []


@given(st.lists(st.lists(st.sampled_from([(0, 1), (1, 2), (0, 1, 2)]), max_size=6), min_size=3, max_size=3))
def test_members_are_those_of_the_group(groups):
    """Every member is named once, each of the group's ranks is there, and no call is of two collectives."""
    ranks = [[g for g in mine if r in g] for r, mine in enumerate(groups)]
    found = whole(*(made(*mine) for mine in ranks))
    assert all(tuple(sorted(r for r, _ in members)) == ranks[members[0][0]][members[0][1]] for members in found)
    used = [member for members in found for member in members]
    assert len(set(used)) == len(used)
    counts = {g: {ranks[r].count(g) for r in g} for mine in ranks for g in mine}
    assert len(found) == sum(min(count) for count in counts.values() if len(count) == 1)


def test_sends_and_receives_are_no_collectives():
    """Round a ring nobody waits for all; two that share a kernel are together."""
    for op in ("send", "recv"):
        assert whole(*[made(PAIR, op=op)] * 2) == []
    assert whole(*[made((0, 1, 2), op="send_recv")] * 3) == []
    assert whole(*[made("ring", op="send_recv")] * 2, parties={CallKind("ring", "send_recv"): (PAIR,)}) == []
    assert whole(*[made(PAIR, op="send_recv")] * 2) == [[(0, 0), (1, 0)]]


def sending(*ends, group=""):
    """A send for each (source, target), and the receives of the same, by rank."""
    by_rank = {rank: [] for pair in ends for rank in pair}
    for source, target in ends:
        for op, me, other in (("send", source, {"dst": target}), ("recv", target, {"src": source})):
            made_ = call("cp", 0, 5, op=op, group=group)
            by_rank[me].append(made_._replace(args=dataclasses.replace(made_.args, **other)))
    return {r: rank(r, calls=calls, steps=steps(1)) for r, calls in sorted(by_rank.items())}


def test_the_kth_send_meets_the_kth_receive():
    """Of the same two ranks, in the same direction."""
    built = sending((0, 1), (1, 0), (0, 1))
    assert sorted(map(sorted, exchanges(built))) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]


def test_a_send_without_its_receive_meets_none():
    """Nobody recorded rank 1, or it lacks one of two receives."""
    built = sending((0, 1), (0, 1))
    assert list(exchanges({0: built[0]})) == []
    assert list(exchanges({0: built[0], 1: sending((0, 1))[1]})) == []


def test_peers_that_nobody_names_meet_none():
    """Both ranks send and receive, but to whom is not said."""
    calls = [call("cp", 0, 5, op=op, ranks=PAIR) for op in ("send", "recv")]
    assert list(exchanges({r: rank(r, calls=calls, steps=steps(1)) for r in PAIR})) == []
