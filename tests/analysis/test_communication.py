"""How much is communicated, how much of it nothing hides, and how much is waiting."""

from __future__ import annotations

import dataclasses

import pytest

from tests.analysis.jobs import call, job, rank, report, steps


def rows(*timelines, pipelines=([[0]],)):
    """Communication by (group, operation)."""
    found = report(job(*timelines, pipelines=pipelines)).communication
    return {(row.group, row.op): row for row in found}


def alone(number, *calls, **others):
    """A rank in no pipeline that ran one kernel from 0 to 2 and some collectives."""
    return rank(number, stray=[(0, 2)], calls=calls, **others)


def none(*timelines):
    """Communication of ranks that form no pipeline."""
    of = job(*timelines)
    return report(dataclasses.replace(of, plan=dataclasses.replace(of.plan, pp=1, pipelines=()))).communication


def test_members_that_start_apart_wait_for_the_last():
    """Starts 10 and 16, both end at 20: transfer 4 each, and the first waited 6; means are 7, 3 and 4."""
    (row,) = none(alone(0, call("tp", 10, 20, ranks=(0, 1))), alone(1, call("tp", 16, 20, ranks=(0, 1))))
    assert (row.group, row.op, row.calls) == ("tp", "all_reduce", 1)
    assert (row.total_ns, row.wait_ns, row.transfer_ns) == (7, 3, 4)


def test_calls_are_matched_by_their_place_in_the_order():
    """The second call of one rank belongs to the second of the other."""
    pair = (0, 1)
    a = alone(0, call("dp", 10, 20, ranks=pair), call("dp", 30, 40, ranks=pair))
    b = alone(1, call("dp", 14, 20, ranks=pair), call("dp", 32, 40, ranks=pair))
    (row,) = none(a, b)
    assert (row.calls, row.transfer_ns, row.wait_ns) == (2, 6 + 8, (4 + 2) // 2)


def test_operations_of_a_group_are_matched_apart():
    """An all-gather between does not shift the all-reduces."""
    pair = (0, 1)
    a = alone(0, call("dp", 10, 20, ranks=pair), call("dp", 30, 40, ranks=pair, op="all_gather"))
    b = alone(1, call("dp", 31, 40, ranks=pair, op="all_gather"), call("dp", 12, 20, ranks=pair))
    gather, reduce = none(a, b)
    assert (gather.op, gather.transfer_ns, reduce.op, reduce.transfer_ns) == ("all_gather", 9, "all_reduce", 8)


@pytest.mark.parametrize(
    "second",
    [
        (),
        (call("tp", 16, 20, ranks=(1, 2)),),
        (call("tp", 16, 20, ranks=(0, 1), op="broadcast"),),
        (call("tp", 26, 30, ranks=(0, 1)),),
    ],
    ids=["no call", "another group", "another operation", "not at one time"],
)
def test_calls_that_cannot_be_matched_are_not_split(second):
    """Wait and transfer are null; the total stands."""
    found = none(alone(0, call("tp", 10, 20, ranks=(0, 1))), alone(1, *second))
    assert all((row.wait_ns, row.transfer_ns) == (None, None) for row in found)
    assert sum(row.total_ns for row in found) >= 5


def test_counts_that_differ_leave_the_operation_unsplit():
    """Rank 1 lost a call: what matches no longer tells the whole."""
    pair = (0, 1)
    a = alone(0, call("tp", 10, 20, ranks=pair), call("tp", 30, 40, ranks=pair))
    (row,) = none(a, alone(1, call("tp", 16, 20, ranks=pair)))
    assert (row.total_ns, row.wait_ns, row.transfer_ns) == (12, None, None)


def test_a_missing_member_leaves_the_operation_unsplit():
    """Rank 2 of the group was not recorded: it may have been the last."""
    trio = (0, 1, 2)
    (row,) = none(alone(0, call("tp", 10, 20, ranks=trio)), alone(1, call("tp", 16, 20, ranks=trio)))
    assert (row.wait_ns, row.transfer_ns) == (None, None)


def test_groups_without_ranks_match_by_name_over_all_ranks():
    """Where the trace names a group and not its members, all ranks must be in it."""
    a, b = (alone(r, call("dp", 10 + 4 * r, 20, group="7")) for r in range(2))
    assert none(a, b)[0].transfer_ns == 6
    assert none(a, b, alone(2))[0].transfer_ns is None


def test_calls_of_different_steps_do_not_match():
    """Rank 1 has its call one step later."""
    pair = (0, 1)
    a = alone(0, call("tp", 10, 20, ranks=pair, step=0), steps=steps(2))
    b = alone(1, call("tp", 16, 20, ranks=pair, step=1), steps=steps(2))
    assert none(a, b)[0].transfer_ns is None


def test_exposed_is_what_no_computation_hides():
    """Two calls cover 10 to 30 together; work hides 14 to 18 and the optimizer 24 to 27."""
    one = rank(
        0, stray=[(0, 2), (14, 18)], optimizer=[(24, 27)], calls=[call("dp", 10, 25), call("dp", 20, 30)]
    )  # fmt: skip
    (row,) = none(one)
    assert (row.calls, row.total_ns, row.exposed_ns) == (2, 25, 20 - 4 - 3)


def test_bytes_are_a_mean_and_null_where_one_is_unknown():
    """100 and 300 of two calls on one of two ranks are 200 a rank."""
    known = call("dp", 10, 20, size=100), call("dp", 30, 40, size=300)
    assert none(alone(0, *known), alone(1))[0].bytes == 200
    assert none(alone(0, *known, call("dp", 50, 60)), alone(1))[0].bytes is None


def test_means_are_taken_a_rank_and_used_step():
    """Of three steps the first is not used: 4 calls of 10 in 2 steps of 2 ranks."""
    made = [call("dp", 10 + 100 * k, 20 + 100 * k, step=k, ranks=(0, 1)) for k in range(3)]
    (row,) = none(*(alone(r, *made, steps=steps(3)) for r in range(2)))
    assert (row.calls, row.total_ns, row.transfer_ns) == (1, 10, 10)


def test_a_call_outside_all_steps_is_left_out():
    """Its step is -1."""
    assert none(alone(0, call("dp", 10, 20, step=-1))) == ()


def test_a_group_without_a_known_purpose_is_other():
    """Its description says nothing."""
    assert [(r.group, r.op) for r in none(alone(0, call("default_pg", 10, 20, op="barrier")))] == [("other", "barrier")]


def test_rows_come_costliest_first():
    """By the total, then by name."""
    made = call("dp", 10, 20), call("tp", 30, 50), call("cp", 60, 70)
    assert [row.group for row in none(alone(0, *made))] == ["tp", "cp", "dp"]


def test_sends_and_receives_are_split_by_their_other_half():
    """Posted at 4 and 0, over at 10: 6 move twice, the receiver waited 4, and 12 and 2 a pair are 6 and 2 a rank."""
    send = rank(0, [("0F0", 0, 4), ("0B0", 30, 40)], messages=[("send 1 0F0", 4, 10)])
    receive = rank(1, [("1F0", 10, 20), ("1B0", 20, 30)], messages=[("recv 0 1F0", 0, 10)])
    row = rows(send, receive, pipelines=[[[0], [1]]])["pp", "send_recv"]
    assert (row.calls, row.total_ns, row.transfer_ns, row.wait_ns) == (1, 8, 6, 2)
    assert row.exposed_ns == (6 + 10) // 2
    assert row.bytes is None


F_ACTIONS = ([("0F0", 0, 4), ("0F1", 4, 8)], [("1F0", 20, 30), ("1F1", 30, 40)])


def fused(number, messages, sizes, kernels):
    """A rank with two forwards whose messages have sizes and share kernels."""
    built = rank(number, F_ACTIONS[number], messages=messages)
    return dataclasses.replace(built, messages=built.messages.replace(bytes=sizes, kernel=kernels))


def test_a_kernel_that_holds_several_halves_is_one_call():
    """It counts once, moves once the last of the other halves is there, and carries the bytes of all."""
    send = fused(0, [("send 1 0F0", 4, 20), ("send 1 0F1", 4, 20)], [100, 50], [0, 0])
    receive = fused(1, [("recv 0 1F0", 2, 12), ("recv 0 1F1", 12, 18)], [100, 50], [0, 1])
    row = rows(send, receive, pipelines=[[[0], [1]]])["pp", "send_recv"]
    assert row.calls == (1 + 2) / 2
    assert row.total_ns == (16 + 10 + 6) // 2
    # The sender's kernel lasts from 4 to 20: the second receive comes at 12, and the later one is over at 18.
    assert row.transfer_ns == (6 + 8 + 6) // 2
    assert row.bytes == 150


@pytest.mark.parametrize("lost", [0, 1])
def test_a_kernel_of_which_one_half_is_unknown_is_unsplit(lost):
    """A half without a partner, or of unknown size, leaves the whole kernel without one."""
    send = fused(0, [("send 1 0F0", 4, 20), ("send 1 0F1", 4, 20)], [-1 if k == lost else 50 for k in range(2)], [0, 0])
    both = [("recv 0 1F0", 2, 12), ("recv 0 1F1", 12, 18)]
    receive = fused(1, both, [50, 50], [0, 1])
    row = rows(send, receive, pipelines=[[[0], [1]]])["pp", "send_recv"]
    assert (row.bytes, row.transfer_ns) == (None, (6 + 8 + 6) // 2)
    receive = fused(1, both[1 - lost : 2 - lost], [50], [0])
    assert rows(send, receive, pipelines=[[[0], [1]]])["pp", "send_recv"].transfer_ns is None


def test_a_message_whose_other_half_is_missing_leaves_them_unsplit():
    """Rank 0 was not recorded."""
    one = rank(1, [("1F0", 10, 20), ("1B0", 20, 30)], messages=[("recv 0 1F0", 0, 10)])
    row = rows(one, pipelines=[[[0], [1]]])["pp", "send_recv"]
    assert (row.total_ns, row.transfer_ns, row.wait_ns) == (10, None, None)


def test_nothing_communicated_is_no_row():
    """A rank that only computes."""
    assert none(alone(0)) == ()
