"""Why a rank stood still before each action."""

from __future__ import annotations

from itertools import accumulate

import pytest

from bubblescope.analysis.ranks import views
from tests.analysis.jobs import again, job, rank, report, steps


def gaps(timeline, *others, step=0):
    """(start, ready, arrived, end, split) before each action of `timeline`."""
    ranks = sorted({timeline.rank, *(t.rank for t in others), 0, 1})
    found = views(job(timeline, *others, pipelines=[[[r] for r in ranks]]))[timeline.rank].gaps[step]
    columns = (found.start, found.ready, found.arrived, found.end, found.split)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def awaited(posted, over, sent):
    """The gap of rank 1 from 10 to 30, with a receive of 1F1 from `posted` to `over`, sent at `sent`."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", posted, over)])
    return gaps(one, rank(0, [("0F1", 0, sent)], messages=[("send 1 0F1", sent, over)]))[1]


def test_the_first_action_of_a_step_has_an_empty_gap():
    """What precedes it is the filling of the pipeline."""
    assert gaps(rank(0, [("0F0", 5, 10)]))[0] == (5, 5, 5, 5, True)


def test_a_late_peer_is_waiting():
    """Wait until the send is posted, then transfer until the message is over, then the host."""
    assert awaited(posted=10, over=25, sent=18) == (10, 18, 25, 30, True)


def test_a_late_receive_is_waiting_too():
    """The bytes move when both sides are there, whichever came last."""
    assert awaited(posted=16, over=25, sent=3) == (10, 16, 25, 30, True)


def test_a_message_over_before_the_gap_leaves_all_to_the_host():
    """It arrived while the rank still worked."""
    assert awaited(posted=0, over=8, sent=2) == (10, 10, 10, 30, True)


def test_a_message_that_ends_inside_the_action_fills_the_gap():
    """Times are cut to the gap: a profiler may end a receive a little late."""
    assert awaited(posted=10, over=33, sent=20) == (10, 20, 30, 30, True)


def test_a_peer_nobody_recorded_leaves_the_gap_unsplit():
    """Until the message is over it is waiting or transfer; nothing tells which."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 10, 25)])
    assert gaps(one)[1] == (10, 25, 25, 30, False)


def test_a_peer_nobody_recorded_does_not_matter_where_nobody_waited():
    """A receive that is over before the gap needs no split."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 0, 10)])
    assert gaps(one)[1] == (10, 10, 10, 30, True)


def test_the_report_of_an_unknown_peer_holds_only_the_sum():
    """`pp_transfer_ns` and `pp_wait_ns` are null, `pp_ns` is both together, and the parts still add up."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 10, 25)])
    row = report(job(one)).ranks[0]
    assert (row.pp_ns, row.pp_transfer_ns, row.pp_wait_ns) == (15, None, None)
    assert (row.window_ns, row.compute_ns, row.host_ns) == (40, 20, 5)


def test_the_report_of_a_known_peer_splits_the_sum():
    """The same gap with the sender's trace: it posts at 18, and 8 of 15 are waiting."""
    one = rank(1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 10, 25)])
    peer = rank(0, [("0F0", 0, 2), ("0F1", 2, 18)], messages=[("send 1 0F1", 18, 25)])
    row = report(job(peer, one)).ranks[1]
    assert (row.pp_ns, row.pp_transfer_ns, row.pp_wait_ns) == (15, 7, 8)


def test_only_the_first_part_of_a_split_backward_awaits_the_gradient():
    """I waits for the message; W comes after it and has only the host to blame."""
    one = rank(
        0, [("0F0", 0, 10), ("0I0", 30, 40), ("0W0", 45, 55)], messages=[("recv 1 0B0", 10, 26)]
    )  # fmt: skip
    peer = rank(1, [("1F0", 10, 12), ("1I0", 12, 20), ("1W0", 20, 30)], messages=[("send 0 1B0", 20, 26)])
    assert gaps(one, peer)[1:] == [(10, 20, 26, 30, True), (40, 40, 40, 45, True)]


def test_overlapping_actions_leave_no_gap():
    """A gap begins where all that came before is over, and is never negative."""
    assert gaps(rank(0, [("0F0", 0, 20), ("0F1", 5, 10), ("0F2", 12, 30), ("0F3", 33, 40)]))[1:] == [
        (20, 20, 20, 20, True),
        (20, 20, 20, 20, True),
        (30, 30, 30, 33, True),
    ]


def test_the_latest_of_several_messages_counts():
    """Two receives for one action: ready and arrived are those of the later one."""
    one = rank(
        1, [("1F0", 0, 10), ("1F1", 30, 40)], messages=[("recv 0 1F1", 10, 14), ("recv 0 1F1", 10, 26)]
    )  # fmt: skip
    peer = rank(0, [("0F1", 0, 12)], messages=[("send 1 0F1", 12, 26)])
    assert gaps(one, peer)[1] == (10, 12, 26, 30, True)


def holder(number, lengths, hold):
    """A rank of forwards of 10, each with a send right after it and the next forward `hold` later."""
    starts = [0, *accumulate(10 + h for h in hold)]
    actions = [(f"{number}F{i}", s, s + 10) for i, s in enumerate(starts)]
    sends = [
        (f"send {number + 1} {number}F{i}", s + 10, s + 10 + n)
        for i, (s, n) in enumerate(zip(starts, lengths, strict=False))
    ]
    return rank(number, actions, messages=sends)


def sender(lengths, *, blocks):
    """The gaps of a rank that sees sends of the given lengths through before it goes on, or goes on 3 later."""
    one = holder(0, lengths, lengths if blocks else [3] * len(lengths))
    ends = one.messages.end.tolist()
    receives = [(f"recv 0 1F{i}", 0, end) for i, end in enumerate(ends)]
    received = sorted([(f"1F{i}", end, end + 2) for i, end in enumerate(ends)], key=lambda row: row[1])
    return gaps(one, rank(1, received, messages=receives))[1:]


@pytest.mark.parametrize("lengths", [(4, 9, 6, 12, 5), (40, 3, 3, 3)])
def test_a_send_that_the_rank_sees_through_is_transfer(lengths):
    """Each action begins where a send of varying length ends, so the sends hold the rank."""
    found = sender(lengths, blocks=True)
    assert [arrived - ready for _, ready, arrived, _, _ in found] == list(lengths)
    assert all(end == arrived for _, _, arrived, end, _ in found)


@pytest.mark.parametrize("lengths", [(4, 9, 6, 12, 5), (2, 2, 1, 2), (11, 12, 11, 12)])
def test_a_send_on_a_side_stream_blocks_nobody(lengths):
    """Actions begin 3 after each other whatever the sends do: the gaps are the host's."""
    assert [end - arrived for _, _, arrived, end, _ in sender(lengths, blocks=False)] == [3] * len(lengths)


def test_sends_of_one_length_prove_nothing():
    """Where all gaps are alike, nothing tells a blocking send from a late host."""
    assert all(ready == arrived for _, ready, arrived, _, _ in sender((5, 5, 5, 5), blocks=True))


def test_one_rank_tells_for_all_whether_sends_block():
    """All ranks run one program: what varying sends prove on one rank holds where they are all alike."""
    alike, varying = holder(0, (5, 5, 5), (5, 5, 5)), holder(1, (4, 9, 16, 12), (4, 9, 16, 12))
    assert [(arrived - start, split) for start, _, arrived, _, split in gaps(alike, varying)[1:]] == [(5, False)] * 3
    assert [(arrived - start, split) for start, _, arrived, _, split in gaps(alike)[1:]] == [(0, True)] * 3


def test_each_step_has_its_own_gaps():
    """A message of the second step explains no gap of the first, where only the making of the input is known."""
    rows = again([("1F0", 0, 10), ("1F1", 30, 40)], 2)
    one = rank(1, rows, messages=[("recv 0 1F1", 110, 124, 1)], steps=steps(2))
    peer = rank(0, again([("0F1", 0, 12)], 2), messages=[("send 1 0F1", 112, 124, 1)], steps=steps(2))
    assert gaps(one, peer, step=0)[1] == (10, 12, 12, 30, False)
    assert gaps(one, peer, step=1)[1] == (110, 112, 124, 130, True)
