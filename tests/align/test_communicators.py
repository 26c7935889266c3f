"""Global ranks from the places that NCCL counts within its communicators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.communicators import ranked, resolved
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs, Membership
from tests.building import timeline


def member(rank, *messages, places=(), group="ab", source="environment", **more):
    """A rank that sends or receives, as in `("send 1", ...)`, with the peer's place in a communicator.

    `places` are (communicator, own place, members), as it told when it made them.
    """
    rows = [(text, 10 * i, 10 * i + 5) for i, text in enumerate(messages)]
    calls = tuple(CommArgs(op=op, group=group, peer=int(peer)) for op, peer in map(str.split, messages))
    built = timeline(rank, actions=[("?F0", 100, 110)], messages=rows, **more)
    return replace(
        built,
        calls=calls,
        messages=built.messages.replace(call=range(len(rows)), peer=[-1] * len(rows)),
        identity=replace(
            built.identity,
            rank=None if rank < 0 else rank,
            rank_source=source if rank >= 0 else None,
            memberships=tuple(Membership(name, place, ranks) for name, place, ranks in places),
        ),
    )


def peers(*timelines):
    """The global peers of the messages of each rank."""
    found = resolved({t.rank: t for t in timelines})
    return {rank: t.messages.peer.tolist() for rank, t in found.items()}


def test_places_that_were_told():
    """The members of a communicator say where they stand in it, in whatever order of their ranks."""
    four = member(4, "send 0", places=[("ab", 1, 2)])
    seven = member(7, "recv 1", places=[("ab", 0, 2)])
    assert peers(four, seven) == {4: [7], 7: [4]}


def test_calls_name_all_members():
    """What is told of a communicator is in its calls as well: ranks by place, and the other side."""
    timelines = [member(4, "send 0", places=[("ab", 1, 2)]), member(7, "recv 1", places=[("ab", 0, 2)])]
    found = resolved({t.rank: t for t in timelines})
    (sent,), (received,) = found[4].calls, found[7].calls
    assert (sent.ranks, sent.group_size, sent.dst, sent.src) == ((7, 4), 2, 7, -1)
    assert (received.ranks, received.dst, received.src) == ((7, 4), -1, 4)


def test_users_are_the_members_in_rising_order():
    """Where nobody told a place, ranks that use one communicator are its members, if their messages fit together."""
    assert peers(member(2, "send 1"), member(6, "recv 0", "send 2"), member(9, "recv 1")) == {2: [6], 6: [2, 9], 9: [6]}


@pytest.mark.parametrize(
    "others",
    [
        [("send 1",), ("recv 2",)],
        [("send 1", "send 1", "send 1"), ()],
        [("send 0",), ("recv 1",)],
        [("send 5",), ("recv 0",)],
    ],
    ids=["nobody is there", "nothing arrives", "one sends to itself", "a place beyond them"],
)
def test_messages_that_do_not_fit(others):
    """Then some members were not recorded, or the order is another: peers stay unknown."""
    found = peers(*(member(rank, *messages) for rank, messages in enumerate(others)))
    assert {peer for mine in found.values() for peer in mine} == {-1}


def test_a_member_that_was_not_recorded_at_an_end():
    """Two told their places among three: the third stands as far behind them as they stand apart."""
    told = [member(rank, talk, places=[("ab", rank // 2, 3)]) for rank, talk in ((0, "send 1"), (2, "send 2"))]
    assert peers(*told) == {0: [2], 2: [4]}


def test_a_member_that_was_not_recorded_in_between():
    """Nobody told a place; messages do, as only one even row makes each of them arrive."""
    first, third, last = member(1, "send 1"), member(7, "recv 1", "send 3"), member(10, "recv 2")
    assert peers(first, third, last) == {1: [4], 7: [4, 10], 10: [7]}


@pytest.mark.parametrize(
    "timelines",
    [
        [member(0, "send 1", "send 2"), member(4, "recv 1")],
        [member(0, "send 1"), member(4, "recv 0"), member(8, "recv 1", "recv 3")],
        [member(0, "send 1", "recv 2"), member(3, "recv 0"), member(6, group="")],
        [member(0, "send 1", places=[("ab", 0, 3)])],
    ],
    ids=["they do not talk", "a message does not arrive", "a rank in the row is no member", "a single member"],
)
def test_members_that_nothing_tells(timelines):
    """Where no even row fits, or several do, peers stay unknown."""
    assert {peer for mine in peers(*timelines).values() for peer in mine} <= {-1}


def test_places_that_contradict_the_number_of_members():
    """One counts eight members and stands at place 5, another counts two."""
    assert peers(member(0, "send 1", places=[("ab", 5, 8)]), member(1, "recv 0", places=[("ab", 0, 2)])) == {
        0: [-1],
        1: [-1],
    }


def test_no_member_beyond_the_last_rank():
    """Of four ranks there is none after the rank 3; the row would need one."""
    told = [member(rank, "send 2", places=[("ab", rank // 2, 3)], world=4) for rank in (1, 3)]
    assert peers(*told) == {1: [-1], 3: [-1]}


def test_places_against_the_rising_order():
    """A single told place that contradicts the order of the ranks leaves it open."""
    assert peers(member(0, "send 0", places=[("ab", 1, 2)]), member(1, "recv 1")) == {0: [-1], 1: [-1]}


def test_peers_that_are_known_stay():
    """What the trace names as a global rank is not touched."""
    one = member(0, "send 1")
    one = replace(one, messages=one.messages.replace(peer=[5]))
    assert peers(one, member(1, "recv 0"))[0] == [5]


def test_without_communicators_nothing_changes():
    """Traces that name no communicator are handed back as they are."""
    timelines = {0: timeline(0, messages=[("send 1", 0, 5)])}
    assert resolved(timelines) is timelines


def test_a_message_of_unknown_direction_fits_nothing():
    """A kernel that may be a send or a receive is no evidence for an order."""
    built = member(0, "send 1")
    built = replace(built, messages=built.messages.replace(direction=[Messages.EITHER]))
    assert peers(built, member(1)) == {0: [-1], 1: []}


def numbers(*timelines):
    """The ranks that communicators give, and where each comes from."""
    return [(t.rank, t.identity.rank_source) for t in ranked(timelines)]


def test_ranks_by_the_largest_communicator():
    """It holds all that were recorded: the world, whatever smaller ones say."""
    places = [[("world", 1, 2), ("pair", 0, 2)], [("world", 0, 2)]]
    assert numbers(*(member(-1, places=mine) for mine in places)) == [(1, "metadata"), (0, "metadata")]


def test_ranks_stay_unknown_without_a_common_communicator():
    """Two pairs of two: nothing tells which pair comes first."""
    assert numbers(member(-1, places=[("a", 0, 2)]), member(-1, places=[("b", 0, 2)])) == [(-1, None), (-1, None)]


def test_what_is_told_better_stays():
    """A rank of the environment is not overruled, and one that disagrees makes the communicator some other group."""
    (told,), unknown = of("a", member(3, places=[("a", 3, 4)])), member(-1, places=[("a", 1, 4)])
    assert numbers(told, unknown) == [(3, "environment"), (1, "metadata")]
    (told,) = of("a", member(2, places=[("a", 3, 4)]))
    assert numbers(told, unknown) == [(2, "environment"), (-1, None)]


def test_nccl_stands_above_the_name_of_a_file():
    """With a warning; but names with ranks that the communicator cannot hold show that it is not the world."""
    by_name = [member(0, places=[("a", 1, 2)], source="filename"), member(1, places=[("a", 0, 2)], source="filename")]
    assert numbers(*by_name) == [(1, "metadata"), (0, "metadata")]
    assert [f.code for t in ranked(by_name) for f in t.findings] == ["metadata-conflict"] * 2
    by_name = [member(0, places=[("a", 0, 2)], source="filename"), member(4, places=[("a", 1, 2)], source="filename")]
    assert numbers(*by_name) == [(0, "filename"), (4, "filename")]


def of(path, *timelines):
    """The same, from that file."""
    return [replace(t, source=replace(t.source, path=path)) for t in timelines]


def test_nccl_stands_above_what_is_counted_within_a_node():
    """The first rank of a node was not recorded, so that those after it were counted on from the wrong one."""
    node = of("a", member(0, places=[("world", 1, 4)]), member(1, places=[("world", 2, 4)]))
    found = ranked([*node, *of("b", member(3, places=[("world", 3, 4)]))])
    assert [(t.rank, t.identity.rank_source) for t in found] == [(1, "metadata"), (2, "metadata"), (3, "environment")]
    assert [f.message for t in found for f in t.findings][:1] == [
        "the environment says rank 0, NCCL says rank 1; NCCL is believed"
    ]


def test_nccl_stands_above_an_environment_that_files_share():
    """It is the launcher's, as that of a node; without a communicator it is left for the engine to refuse."""
    found = ranked([*of("a", member(0, places=[("a", 0, 2)])), *of("b", member(0, places=[("a", 1, 2)]))])
    assert [(t.rank, t.identity.rank_source) for t in found] == [(0, "metadata"), (1, "metadata")]
    assert [t.rank for t in ranked([*of("a", member(0)), *of("b", member(0))])] == [0, 0]


def labelled(rank, *messages):
    """A rank whose labels name these peers, which may be places in a group."""
    built = member(rank, *messages, group="")
    calls = tuple(replace(call, **{"dst" if call.op == "send" else "src": call.peer}) for call in built.calls)
    return replace(built, calls=calls, messages=built.messages.replace(peer=[call.peer for call in calls]))


def silent(rank, *messages):
    """A rank whose labels name places of which none can be its own rank."""
    built = member(rank, *messages, group="")
    return replace(built, calls=tuple(replace(call, peer=-1) for call in built.calls))


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([labelled(0, "send 1"), labelled(1, "recv 0", "send 2"), labelled(2, "recv 1")], {0: [1], 1: [0, 2], 2: [1]}),
        ([labelled(0, "send 1"), silent(1, "send 1"), silent(2, "recv 0"), silent(3, "recv 0")], {0: [-1], 1: [-1]}),
        ([labelled(0, "send 1", "recv 2"), silent(1, "send 1"), silent(2, "recv 0")], {0: [-1, -1]}),
        ([labelled(0, "send 1"), silent(2, "recv 0")], {0: [1]}),
    ],
    ids=["one pipeline", "two pipelines side by side", "a ring", "nobody can answer"],
)
def test_a_label_names_a_rank_if_that_rank_answers(ranks, expected):
    """`nccl:send 0->1` of rank 0 may mean the second rank of its pipeline: rank 1 must name rank 0 as well."""
    found = peers(*ranks)
    assert {rank: found[rank] for rank in expected} == expected


def test_calls_of_labels_that_nobody_answers_name_no_rank():
    """Neither do their calls, by which a layout would be told."""
    found = resolved({0: labelled(0, "send 1"), 1: silent(1, "send 1")})
    assert [(call.dst, call.src) for call in found[0].calls] == [(-1, -1)]
