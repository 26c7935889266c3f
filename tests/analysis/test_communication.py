"""How much is communicated, how much of it nothing hides, and how much is waiting."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope import emit
from bubblescope.emit.simulate import simulate
from bubblescope.engine import analyze
from bubblescope.model.job import CallKind
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


def test_groups_without_ranks_match_by_who_is_told():
    """Where the trace names a group and not its members, those that the clocks tell are in it."""
    of = job(*(alone(r, call("dp", 10 + 4 * r, 20, group="7")) for r in range(2)), pipelines=[])
    assert report(of).communication[0].transfer_ns is None
    of = dataclasses.replace(of, parties={CallKind("7", "all_reduce"): ((0, 1),)})
    assert report(of).communication[0].transfer_ns == 6


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


def on_cpu(*timelines):
    """The same ranks, of which operators and not kernels tell."""
    return [dataclasses.replace(t, on_gpu=False) for t in timelines]


def test_without_kernels_a_receive_posted_by_a_busy_rank_is_unsplit():
    """Sent at 4, asked for at 20 when the rank was free again: when it arrived nobody tells."""
    send = rank(0, [("0F0", 0, 4), ("0F1", 4, 6)], messages=[("send 1 0F0", 4, 30), ("send 1 0F1", 6, 30)])
    receive = rank(1, [("1F0", 10, 20), ("1F1", 22, 30)], messages=[("recv 0 1F0", 0, 9), ("recv 0 1F1", 0, 21)])
    chain = [[[0], [1]]]
    told = rows(send, receive, pipelines=chain)["pp", "send_recv"]
    assert (told.wait_ns, told.transfer_ns) == ((26 + 24 + 9 + 21 - 40) // 2, 2 * (5 + 15) // 2)
    row = rows(*on_cpu(send, receive), pipelines=chain)["pp", "send_recv"]
    assert (row.total_ns, row.wait_ns, row.transfer_ns) == (told.total_ns, None, None)
    assert row.exposed_ns == told.exposed_ns


def ring(number, *calls):
    """A call of a context-parallel ring of three for each (operation, start, end) with its neighbours."""
    ends = {"send": {"dst": (number + 1) % 3}, "recv": {"src": (number - 1) % 3}, "send_recv": {}}
    made = [call("cp", start, end, ranks=(0, 1, 2), op=op, size=100) for op, start, end in calls]
    return [c._replace(args=dataclasses.replace(c.args, **ends[c.args.op])) for c in made]


def by_op(found):
    """Rows by their operation."""
    return {row.op: row for row in found}


def test_sends_beside_the_pipeline_wait_for_their_own_receive():
    """Each rank posts both at 10, 14 and 16 and they end at 20, 18 and 20: nobody waits for the third."""
    starts, ends = (10, 14, 16), (20, 18, 20)
    found = by_op(
        none(*(alone(r, *ring(r, ("send", starts[r], ends[r]), ("recv", starts[r], ends[r]))) for r in range(3)))
    )
    # Sends 0>1, 1>2, 2>0 begin to move at 14, 16 and 16, and end with the half that is asked.
    assert found["send"].transfer_ns == (20 - 14 + 18 - 16 + 20 - 16) // 3
    assert found["recv"].transfer_ns == (20 - 16 + 18 - 14 + 20 - 16) // 3
    assert (found["send"].group_size, found["send"].bytes) == (2, 100)
    assert found["send"].bus_bandwidth == pytest.approx(300 / 12e-9)


def test_sends_beside_the_pipeline_are_unsplit_without_kernels_or_peer():
    """On a CPU they end when somebody asks; a fused kernel of a ring says nothing of its neighbours."""
    both = [("send", 10, 20), ("recv", 10, 20)]
    assert all(row.transfer_ns is None for row in none(*on_cpu(*(alone(r, *ring(r, *both)) for r in range(3)))))
    (row,) = none(*(alone(r, *ring(r, ("send_recv", 10, 20))) for r in range(3)))
    assert (row.transfer_ns, row.group_size) == (None, 3)


@pytest.mark.parametrize(
    ("op", "factor"), [("all_reduce", 1.5), ("all_gather", 0.75), ("broadcast", 1), ("all_to_all", 0.75)]
)
@pytest.mark.parametrize("group", ["tp", "dp", "cp", "ep"])
def test_collectives_have_a_bandwidth_over_their_transfer(group, op, factor):
    """Four ranks come at 10 to 13 and leave at 20: 100 bytes in 7 ns."""
    four = (0, 1, 2, 3)
    (row,) = none(*(alone(r, call(group, 10 + r, 20, ranks=four, op=op, size=100)) for r in four))
    assert (row.group, row.group_size, row.transfer_ns) == (group, 4, 7)
    assert row.algorithm_bandwidth == pytest.approx(100 / 7e-9)
    assert row.bus_bandwidth == pytest.approx(factor * 100 / 7e-9)


def test_bandwidth_takes_only_calls_that_tell_both():
    """Bytes of one call are unknown, the members of another are missing."""
    pair = (0, 1)
    calls = [call("dp", 10, 20, ranks=pair, size=50), call("dp", 30, 90, ranks=pair), call("tp", 91, 95, ranks=(0, 7))]
    dp, tp = none(alone(0, *calls), alone(1, *calls[:2]))
    assert (dp.bytes, dp.transfer_ns, dp.bus_bandwidth) == (None, 70, pytest.approx(50 / 10e-9))
    assert (tp.bytes, tp.transfer_ns, tp.algorithm_bandwidth, tp.bus_bandwidth) == (None, None, None, None)


def test_groups_of_different_sizes_share_a_row():
    """Two ranks and four: the size is none, and each call counts with its own factor."""
    two, four = call("dp", 10, 20, ranks=(0, 1), size=100), call("dp", 30, 40, ranks=(0, 1, 2, 3), size=100)
    (row,) = none(*(alone(r, two, four) if r < 2 else alone(r, four) for r in range(4)))
    assert (row.group_size, row.calls) == (None, 6 / 4)
    assert row.bus_bandwidth == pytest.approx((2 * 100 * 1 + 4 * 100 * 1.5) / 60e-9)


def test_a_kernel_that_sends_and_receives_counts_the_larger_way():
    """100 bytes go one way and 60 the other, in 8 ns: 160 bytes, but 100 in that time."""
    send = rank(0, [("0F0", 0, 4), ("0B0", 12, 14)], messages=[("send 1 0F0", 4, 12), ("recv 1 0B0", 4, 12)])
    receive = rank(1, [("1B0", 0, 2), ("1F0", 20, 30)], messages=[("recv 0 1F0", 4, 12), ("send 0 1B0", 4, 12)])
    built = [
        dataclasses.replace(t, messages=t.messages.replace(bytes=sizes, kernel=[0, 0]))
        for t, sizes in ((send, [100, 60]), (receive, [100, 60]))
    ]
    row = rows(*built, pipelines=[[[0], [1]]])["pp", "send_recv"]
    assert (row.calls, row.bytes, row.transfer_ns) == (1, 160, 8)
    assert row.bus_bandwidth == row.algorithm_bandwidth == pytest.approx(100 / 8e-9)


CALLS = st.lists(
    st.tuples(
        st.sampled_from(("tp", "dp", "other")), st.sampled_from(("all_reduce", "all_gather")), st.integers(0, 60),
        st.integers(0, 30), st.sampled_from((-1, 40)),
    ),
    max_size=8,
)  # fmt: skip


@given(st.lists(CALLS, min_size=1, max_size=3), st.lists(st.tuples(st.integers(0, 90), st.integers(1, 9)), max_size=5))
def test_parts_add_up_whatever_overlaps(made, worked):
    """Wait and transfer are the total, exposed is no more than it, and the order of the ranks is nothing."""
    stray = [(start, start + length) for start, length in worked]
    pair = tuple(range(len(made)))
    ranks = [
        rank(
            r,
            stray=[(0, 2), *stray],
            calls=[call(g, s, s + length, op=op, size=n, ranks=pair) for g, op, s, length, n in sorted(mine)],
        )
        for r, mine in enumerate(made)
    ]
    found = none(*ranks)
    assert found == none(*reversed(ranks))
    for row in found:
        assert 0 <= row.exposed_ns <= row.total_ns
        assert row.transfer_ns is None or (row.wait_ns >= 0 and row.wait_ns + row.transfer_ns == row.total_ns)


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_the_truth_of_a_run_comes_back(tmp_path, backend):
    """Calls, total and transfer of messages and of the gradients' all-reduces, means a rank and used step."""
    made = emit.Job(p=3, m=4, d=2, steps=3, edges_ns=(200_000, 700_000), jitter=0.05, seed=1, backend=backend)
    emit.write(made, tmp_path)
    found = {(row.group, row.op): row for row in analyze([tmp_path]).report.communication}
    used = [step.training for step in simulate(made)[1:]]
    messages = [t for step in used for run in step.runs for t in run.transfers.values()]
    count = made.world * len(used)
    row = found["pp", "send_recv"]
    assert row.calls == 2 * len(messages) / count
    assert row.total_ns == sum(2 * t.end - t.sent - t.received for t in messages) // count
    assert row.transfer_ns == sum(2 * (t.end - t.begin) for t in messages) // count
    if backend == "cuda":
        reduced = found["dp", "all_reduce"]
        assert (
            reduced.total_ns
            == sum(r.end - r.begin for step in used for lane in step.dp.values() for r in lane) // count
        )
        assert reduced.transfer_ns == made.dp_ns
        assert (reduced.bytes, reduced.bus_bandwidth) == (8_388_608, pytest.approx(8_388_608e9 / made.dp_ns))
