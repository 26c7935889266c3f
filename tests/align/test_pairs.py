"""Messages and the actions at their ends."""

from __future__ import annotations

import pytest

from bubblescope.align.pairs import UNKNOWN, makers, pair, produced
from tests.building import actions_of, job, messages_of, timeline

NOBODY = "-"


def ends_of(built):
    """For each rank (message, action at this end, when the other half was posted; "?" where unknown)."""
    found = pair(built)
    assert set(found) == set(built.timelines)
    said = {}
    for rank, t in built.timelines.items():
        names = [name for name, *_ in actions_of(t)] + [NOBODY]
        pairing = found[rank]
        others = ["?" if o == UNKNOWN else o for o in pairing.other.tolist()]
        texts = [text for text, *_ in messages_of(t)]
        said[rank] = list(zip(texts, [names[a] for a in pairing.action], others, strict=True))
    return said


def test_two_stages_by_order():
    """The k-th send follows the k-th forward, the k-th receive feeds the k-th backward; halves find each other."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90)],
        messages=[("send 1", 10, 12), ("send 1", 20, 22), ("recv 1", 21, 40), ("recv 1", 60, 70)],
    )
    last = timeline(
        1,
        actions=[("1F0", 12, 22), ("1B0", 22, 38), ("1F1", 40, 50), ("1B1", 50, 66)],
        messages=[("recv 0", 1, 12), ("send 0", 38, 40), ("recv 0", 39, 40), ("send 0", 66, 70)],
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1", "0F0", 1), ("send 1", "0F1", 39), ("recv 1", "0B0", 38), ("recv 1", "0B1", 66)],
        1: [("recv 0", "1F0", 10), ("send 0", "1B0", 21), ("recv 0", "1F1", 20), ("send 0", "1B1", 60)],
    }


def test_messages_arrive_in_the_order_in_which_they_were_sent():
    """A rank that uses its inputs in another order than they were sent still receives the first one first."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0F1", 10, 20)],
        messages=[("send 1", 10, 12), ("send 1", 20, 22)],
    )
    last = timeline(
        1,
        actions=[("1F1", 22, 32), ("1F0", 32, 42)],
        messages=[("recv 0", 1, 12), ("recv 0", 2, 22)],
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1", "0F0", 1), ("send 1", "0F1", 2)],
        1: [("recv 0", "1F0", 10), ("recv 0", "1F1", 20)],
    }


@pytest.mark.parametrize("late", [0, 1])
def test_receives_that_would_come_too_late_are_in_the_order_of_use(late):
    """Where 1F1 began before the message of 0F0 was there, its own receive, though sent last, came first.

    An action that seems to begin a moment before its receive has ended changes nothing of that.
    """
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0F1", 10, 20)],
        messages=[("send 1", 10, 42), ("send 1", 20, 22)],
    )
    last = timeline(
        1,
        actions=[("1F1", 22, 32), ("1F0", 42, 52)],
        messages=[("recv 0", 1, 22 + late), ("recv 0", 32, 42 + late)],
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1", "0F0", 32), ("send 1", "0F1", 1)],
        1: [("recv 0", "1F1", 20), ("recv 0", "1F0", 10)],
    }


def test_labelled_ends():
    """Labels name the action at each end, against the order in which the halves were posted."""
    first = timeline(
        0, actions=[("0F0", 0, 10), ("0F1", 10, 20)], messages=[("send 1 0F1", 20, 21), ("send 1 0F0", 22, 23)]
    )
    last = timeline(
        1, actions=[("1F1", 25, 30), ("1F0", 30, 40)], messages=[("recv 0 1F0", 1, 23), ("recv 0 1F1", 2, 21)]
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1 0F1", "0F1", 2), ("send 1 0F0", "0F0", 1)],
        1: [("recv 0 1F0", "1F0", 22), ("recv 0 1F1", "1F1", 20)],
    }


def test_labels_that_name_no_action():
    """A label whose action never ran is nobody's; where some labels hold, the rest is not guessed."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0F1", 10, 20)],
        messages=[("send 1 0F0", 10, 11), ("send 1 0F7", 11, 12), ("send 1", 20, 21)],
    )
    assert ends_of(job(first, timeline(1))) == {
        0: [("send 1 0F0", "0F0", "?"), ("send 1 0F7", NOBODY, "?"), ("send 1", NOBODY, "?")],
        1: [],
    }


def evaluated_inside(say):
    """Two ranks whose step holds a forward of the same name behind its backward; `say` writes a message's label."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0B0", 40, 60), ("0F0", 70, 80)],
        messages=[(f"send 1{say('0F0')}", 10, 12), (f"recv 1{say('0B0')}", 11, 40), (f"send 1{say('0F0')}", 80, 82)],
    )
    last = timeline(
        1,
        actions=[("1F0", 12, 22), ("1B0", 22, 38), ("1F0", 82, 92)],
        messages=[(f"recv 0{say('1F0')}", 1, 12), (f"send 0{say('1B0')}", 38, 40), (f"recv 0{say('1F0')}", 39, 82)],
    )
    return job(first, last)


@pytest.mark.parametrize("say", [lambda _: "", lambda name: f" {name}"], ids=["by order", "by label"])
def test_an_action_that_comes_twice_in_its_step(say):
    """In an evaluation inside a step names come again: the halves of each time are one message."""
    built = evaluated_inside(say)
    found = pair(built)
    assert found[0].action.tolist() == [0, 1, 2]
    assert found[1].action.tolist() == [0, 1, 2]
    assert found[0].other.tolist() == [1, 38, 39]
    assert found[1].other.tolist() == [10, 11, 80]


def test_makers_of_an_action_that_comes_twice():
    """The input of each time was made by the forward of that time."""
    built = evaluated_inside(lambda _: "")
    assert makers(built)[1][1].tolist() == [0, -1, 2]
    assert produced(built)[1].tolist() == [10, UNKNOWN, 80]


def test_several_messages_of_one_action():
    """An output of two tensors is two messages of one name: the k-th sent is the k-th received."""
    first = timeline(0, actions=[("0F0", 0, 10)], messages=[("send 1 0F0", 10, 12), ("send 1 0F0", 11, 14)])
    last = timeline(1, actions=[("1F0", 20, 22)], messages=[("recv 0 1F0", 2, 12), ("recv 0 1F0", 3, 14)])
    assert ends_of(job(first, last)) == {
        0: [("send 1 0F0", "0F0", 2), ("send 1 0F0", "0F0", 3)],
        1: [("recv 0 1F0", "1F0", 10), ("recv 0 1F0", "1F0", 11)],
    }


def test_labelled_steps():
    """The same name in two steps is two actions, and the halves of one step are paired."""
    steps = [(4, 0, 50), (5, 50, 99)]
    first = timeline(
        0, steps=steps, actions=[("0F0", 0, 10), ("0F0", 50, 60, 1)],
        messages=[("send 1 0F0", 10, 12), ("send 1 0F0", 60, 62, 1)],
    )  # fmt: skip
    last = timeline(
        1, steps=steps, actions=[("1F0", 12, 20), ("1F0", 62, 70, 1)],
        messages=[("recv 0 1F0", 1, 12), ("recv 0 1F0", 51, 62, 1)],
    )  # fmt: skip
    found = pair(job(first, last))
    assert found[0].action.tolist() == [0, 1]
    assert (found[0].other.tolist(), found[1].other.tolist()) == ([1, 51], [10, 60])


def test_steps_are_matched_by_number():
    """A rank whose file begins a step later still pairs the steps of one number."""
    first = timeline(
        0, steps=[(4, 0, 50), (5, 50, 99)], actions=[("0F0", 0, 10), ("0F0", 50, 60, 1)],
        messages=[("send 1", 10, 12), ("send 1", 60, 62, 1)],
    )  # fmt: skip
    last = timeline(1, steps=[(5, 50, 99)], actions=[("1F0", 62, 70)], messages=[("recv 0", 51, 62)])
    assert ends_of(job(first, last)) == {
        0: [("send 1", "0F0", "?"), ("send 1", "0F0", 51)],
        1: [("recv 0", "1F0", 60)],
    }


def test_an_inner_stage_by_peer():
    """An inner rank tells its four kinds of messages apart by direction and peer alone."""
    inner = timeline(
        1,
        actions=[("1F0", 12, 22), ("1F1", 22, 32), ("1B0", 40, 60), ("1B1", 60, 80)],
        messages=[
            ("recv 0", 1, 12), ("recv 2", 2, 40), ("recv 0", 12, 22), ("send 2", 22, 23), ("send 2", 32, 33),
            ("recv 2", 40, 60), ("send 0", 60, 61), ("send 0", 80, 81),
        ],
    )  # fmt: skip
    built = job(timeline(0), inner, timeline(2))
    assert [(text, action) for text, action, _ in ends_of(built)[1]] == [
        ("recv 0", "1F0"), ("recv 2", "1B0"), ("recv 0", "1F1"), ("send 2", "1F0"), ("send 2", "1F1"),
        ("recv 2", "1B1"), ("send 0", "1B0"), ("send 0", "1B1"),
    ]  # fmt: skip


def test_without_peers_by_order():
    """Where nobody names a peer, receives follow the actions that need input, in the order in which they ran."""
    inner = timeline(
        1,
        actions=[("1F0", 12, 22), ("1B0", 40, 60), ("1F1", 62, 70), ("1B1", 75, 90)],
        messages=[
            ("recv ?", 1, 12), ("send ?", 22, 23), ("recv ?", 23, 40), ("send ?", 60, 61),
            ("recv ?", 61, 62), ("send ?", 70, 71), ("recv ?", 71, 75), ("send ?", 90, 91),
        ],
    )  # fmt: skip
    built = job(timeline(0), inner, timeline(2))
    assert [(text, action) for text, action, _ in ends_of(built)[1]] == [
        ("recv ?", "1F0"), ("send ?", "1F0"), ("recv ?", "1B0"), ("send ?", "1B0"),
        ("recv ?", "1F1"), ("send ?", "1F1"), ("recv ?", "1B1"), ("send ?", "1B1"),
    ]  # fmt: skip


@pytest.mark.parametrize("peer", ["0", "?"])
def test_unequal_counts_match_nothing(peer):
    """A receive more or less than actions leaves that direction open, and the other one alone."""
    last = timeline(
        1,
        actions=[("1F0", 12, 22), ("1B0", 22, 40)],
        messages=[(f"recv {peer}", 1, 12), (f"recv {peer}", 2, 13), (f"send {peer}", 40, 41)],
    )
    assert [action for _, action, _ in ends_of(job(timeline(0), last))[1]] == [NOBODY, NOBODY, "1B0"]


def test_a_peer_outside_the_pipeline_matches_nothing():
    """Messages with a rank that is no neighbour are left open."""
    last = timeline(1, actions=[("1F0", 12, 22)], messages=[("recv 7", 1, 12)])
    assert ends_of(job(timeline(0), last))[1] == [("recv 7", NOBODY, "?")]


def test_implausible_ends_are_given_up():
    """Receives that end after the actions that they fed show that the guess is wrong; the rank's sends go with it."""
    last = timeline(
        1,
        actions=[("1F0", 12, 22), ("1B0", 22, 40)],
        messages=[("recv 0", 1, 30), ("send 0", 40, 41)],
    )
    assert ends_of(job(timeline(0), last))[1] == [("recv 0", NOBODY, "?"), ("send 0", NOBODY, "?")]


@pytest.mark.parametrize(("torn", "left"), [((), "012"), ((2,), "01"), ((0,), "12"), ((0, 1), ""), ((0, 1, 2), "")])
def test_a_torn_step_leaves_the_others_alone(torn, left):
    """Where a cut took an action more than messages the guess is wrong in that step; where it is in most, in all."""
    steps = [(number, 100 * number, 100 * number + 100) for number in range(3)]
    actions = [("1F0", 100 * n + 20, 100 * n + 30, n) for n in range(3)]
    receives = [("recv 0", 100 * n, 100 * n + (40 if n in torn else 10), n) for n in range(3)]
    built = job(timeline(0), timeline(1, steps=steps, actions=actions, messages=receives))
    found = [action for _, action, _ in ends_of(built)[1]]
    assert found == ["1F0" if str(n) in left else NOBODY for n in range(3)]


def test_a_rare_late_receive_is_borne():
    """One in twenty may be late, as clocks and kernels are not perfect."""
    actions = [(f"1F{i}", 100 * i + 50, 100 * i + 90) for i in range(20)]
    receives = [("recv 0", 100 * i, 100 * i + (95 if i == 7 else 45)) for i in range(20)]
    built = job(timeline(0), timeline(1, actions=actions, messages=receives))
    assert [action for _, action, _ in ends_of(built)[1]] == [f"1F{i}" for i in range(20)]


def test_late_sends():
    """DeepSpeed receives a gradient before it sends the activation of the forward in between."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("0F1", 12, 20), ("0B0", 50, 70), ("0F2", 72, 80), ("0B1", 90, 99)],
        messages=[
            ("send 1", 10, 11), ("recv 1", 21, 50), ("send 1", 50, 51), ("recv 1", 81, 90), ("send 1", 90, 91),
        ],
    )  # fmt: skip
    built = job(first, timeline(1))
    assert [(text, action) for text, action, _ in ends_of(built)[0]] == [
        ("send 1", "0F0"), ("recv 1", "0B0"), ("send 1", "0F1"), ("recv 1", "0B1"), ("send 1", "0F2"),
    ]  # fmt: skip


def test_a_split_backward():
    """The input gradient awaits and makes the messages; the weight gradient has none."""
    first = timeline(0, actions=[("0F0", 0, 10), ("0B0", 60, 80)], messages=[("send 1", 10, 12), ("recv 1", 11, 60)])
    last = timeline(
        1, actions=[("1F0", 12, 20), ("1I0", 20, 40), ("1W0", 40, 70)], messages=[("recv 0", 1, 12), ("send 0", 40, 60)]
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1", "0F0", 1), ("recv 1", "0B0", 40)],
        1: [("recv 0", "1F0", 10), ("send 0", "1I0", 11)],
    }


def test_a_split_backward_by_label():
    """Labels of messages say B; the first part of the backward that ran is meant, W where I was empty."""
    first = timeline(
        0, actions=[("0F0", 0, 10), ("0W0", 60, 80)], messages=[("send 1 0F0", 10, 12), ("recv 1 0B0", 11, 60)]
    )
    last = timeline(
        1,
        actions=[("1F0", 12, 20), ("1I0", 20, 40), ("1W0", 40, 70)],
        messages=[("recv 0 1F0", 1, 12), ("send 0 1B0", 40, 60)],
    )
    assert ends_of(job(first, last)) == {
        0: [("send 1 0F0", "0F0", 1), ("recv 1 0B0", "0W0", 40)],
        1: [("recv 0 1F0", "1F0", 10), ("send 0 1B0", "1I0", 11)],
    }


def test_a_missing_peer_is_unknown():
    """Without the peer's trace the action is still told, and when its half was posted is not."""
    last = timeline(1, actions=[("1F0", 12, 22), ("1B0", 22, 40)], messages=[("recv 0", 1, 12), ("send 0", 40, 41)])
    assert ends_of(job(last, pipelines=[[[0], [1]]])) == {1: [("recv 0", "1F0", "?"), ("send 0", "1B0", "?")]}


def test_two_pipelines_do_not_mix():
    """Replicas carry the same names, and each pairs with its own."""
    ranks = [
        timeline(0, actions=[("0F0", 0, 10)], messages=[("send 2", 10, 12)]),
        timeline(1, actions=[("0F0", 5, 15)], messages=[("send 3", 15, 17)]),
        timeline(2, actions=[("1F0", 12, 20)], messages=[("recv 0", 1, 12)]),
        timeline(3, actions=[("1F0", 17, 25)], messages=[("recv 1", 2, 17)]),
    ]
    found = ends_of(job(*ranks, pipelines=[[[0], [2]], [[1], [3]]]))
    assert [found[rank][0][2] for rank in range(4)] == [1, 2, 10, 15]


def test_tensor_parallel_ranks_talk_lane_by_lane():
    """Rank t of a stage sends to rank t of the next."""
    ranks = [
        timeline(0, actions=[("0F0", 0, 10)], messages=[("send 2", 10, 12)]),
        timeline(1, actions=[("0F0", 0, 11)], messages=[("send 3", 11, 13)]),
        timeline(2, actions=[("1F0", 12, 20)], messages=[("recv 0", 1, 12)]),
        timeline(3, actions=[("1F0", 13, 21)], messages=[("recv 1", 2, 13)]),
    ]
    found = ends_of(job(*ranks, pipelines=[[[0, 1], [2, 3]]]))
    assert [found[rank][0][1:] for rank in range(4)] == [("0F0", 1), ("0F0", 2), ("1F0", 10), ("1F0", 11)]


def test_chunks_on_a_ring():
    """With two chunks a rank the last rank sends to the first; each edge is matched by itself."""
    first = timeline(
        0,
        actions=[("0F0", 0, 10), ("2F0", 30, 40), ("2B0", 60, 80), ("0B0", 100, 120)],
        messages=[("send 1", 10, 12), ("recv 1", 11, 30), ("send 1", 40, 42), ("recv 1", 41, 60), ("send 1", 80, 82),
                  ("recv 1", 81, 100)],
    )  # fmt: skip
    last = timeline(
        1,
        actions=[("1F0", 12, 22), ("3F0", 42, 50), ("3B0", 50, 58), ("1B0", 82, 98)],
        messages=[("recv 0", 1, 12), ("send 0", 22, 30), ("recv 0", 23, 42), ("send 0", 58, 60), ("recv 0", 59, 82),
                  ("send 0", 98, 100)],
    )  # fmt: skip
    assert ends_of(job(first, last, placement={0: (0, 2), 1: (1, 3)})) == {
        0: [("send 1", "0F0", 1), ("recv 1", "2F0", 22), ("send 1", "2F0", 23), ("recv 1", "2B0", 58),
            ("send 1", "2B0", 59), ("recv 1", "0B0", 98)],
        1: [("recv 0", "1F0", 10), ("send 0", "1F0", 11), ("recv 0", "3F0", 40), ("send 0", "3B0", 41),
            ("recv 0", "1B0", 80), ("send 0", "1B0", 81)],
    }  # fmt: skip


@pytest.mark.parametrize("peers", ["10", "??"], ids=["peers", "no peers"])
def test_the_turn_of_a_v_needs_no_message(peers):
    """Where the next stage is on the same rank nothing is sent, and counts still fit."""
    to, back = peers
    first = timeline(
        0, actions=[("0F0", 0, 10), ("3F0", 40, 50)], messages=[(f"send {to}", 10, 12), (f"recv {to}", 11, 40)]
    )
    last = timeline(
        1, actions=[("1F0", 12, 22), ("2F0", 22, 38)], messages=[(f"recv {back}", 1, 12), (f"send {back}", 38, 40)]
    )
    assert ends_of(job(first, last, placement={0: (0, 3), 1: (1, 2)})) == {
        0: [(f"send {to}", "0F0", 1), (f"recv {to}", "3F0", 38)],
        1: [(f"recv {back}", "1F0", 10), (f"send {back}", "2F0", 11)],
    }


def test_a_rank_outside_every_pipeline():
    """A rank that has no place keeps its labelled ends, and has no other halves."""
    alone = timeline(5, actions=[("0F0", 0, 10)], messages=[("send 1 0F0", 10, 12), ("recv 1", 11, 12)])
    assert ends_of(job(alone, pipelines=[[[0], [1]]])) == {5: [("send 1 0F0", "0F0", "?"), ("recv 1", NOBODY, "?")]}


def test_fused_messages_are_left_open():
    """A kernel that is send or receive matches no end by order."""
    first = timeline(0, actions=[("0F0", 0, 10)], messages=[("either ?", 10, 12)])
    assert ends_of(job(first, timeline(1)))[0] == [("either ?", NOBODY, "?")]


def test_messages_of_no_step():
    """A message outside all steps belongs to no action."""
    first = timeline(0, actions=[("0F0", 0, 10)], messages=[("send 1", 10, 12), ("send 1", 90, 91, -1)])
    assert [action for _, action, _ in ends_of(job(first, timeline(1)))[0]] == ["0F0", NOBODY]


def test_makers_of_inputs():
    """A forward's is on the stage before it, a backward's on the one behind: there the half that came first."""
    first = timeline(0, actions=[("0F0", 0, 10), ("0B0", 60, 80)])
    second = timeline(1, actions=[("1F0", 12, 22), ("1I0", 22, 30), ("1W0", 30, 40)])
    found = makers(job(first, second))
    assert [column.tolist() for column in found[0]] == [[-1, 1], [-1, 1]]
    assert [column.tolist() for column in found[1]] == [[0, -1, -1], [0, -1, -1]]


def test_makers_that_nobody_recorded():
    """A stage whose neighbour is missing has none."""
    assert makers(job(timeline(1, actions=[("1F0", 12, 22)])))[1][0].tolist() == [-1]
