"""The truth of a job against closed forms, and against itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from bubblescope.emit import Job, StageWork, truth
from bubblescope.errors import UsageError
from bubblescope.model.actions import Action, Kind
from tests.emit.jobs import JOBS

CLOSED_FORMS = [
    ("gpipe", 4, 8, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 8, 3, 1),
    ("eager-1f1b", 4, 12, 1),
    ("interleaved-1f1b", 4, 8, 2),
    ("interleaved-1f1b", 2, 6, 4),
    ("looped-bfs", 4, 8, 2),
    ("looped-bfs", 3, 6, 2),
]
ALL = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())


@pytest.mark.parametrize(("schedule", "p", "m", "v"), CLOSED_FORMS)
def test_bubble_is_the_closed_form(schedule, p, m, v):
    """Balanced stages and free messages leave what the papers say."""
    job = Job(schedule=schedule, p=p, m=m, v=v, forward_ns=12_000_000, backward_ns=24_000_000)
    assert truth(job).bubble == pytest.approx((p - 1) / (v * m + p - 1), abs=1e-9)


@pytest.mark.parametrize("m", [1, 3])
def test_naive_leaves_all_ranks_but_one_idle(m):
    """One rank works at a time."""
    assert truth(Job(schedule="naive", p=4, m=m)).bubble == pytest.approx(3 / 4, abs=1e-9)


@pytest.mark.parametrize(("schedule", "v", "m"), [("zb-h1", 1, 8), ("interleaved-zb", 2, 8)])
def test_zero_bubble_idles_for_forward_and_input_gradient_less_weight_gradient(schedule, v, m):
    """(p - 1)(F + I - W) / v, in the window."""
    job = Job(schedule=schedule, v=v, m=m, weight_fraction=0.4)
    idle = 3 * (10_000_000 + 12_000_000 - 8_000_000) / v
    assert truth(job).bubble == pytest.approx(idle / (m * 30_000_000 + idle), abs=1e-9)


def test_zb_v_idles_for_half_an_input_gradient_a_rank():
    """(p - 1) I / 2 in the window, for I >= F >= W."""
    idle = 3 * 10_000_000 / 2
    assert truth(Job(schedule="zb-v", v=2)).bubble == pytest.approx(idle / (240_000_000 + idle), abs=1e-9)


def test_latency_of_gpipe_is_paid_on_the_way_in_and_out():
    """2(p - 1) transfers where receives are posted early enough, whatever m is."""
    job = Job(schedule="gpipe", recv_ahead=1, p2p_ns=100_000)
    assert truth(job).steps[0].pipelines[0].window == 11 * 30_000_000 + 6 * 100_000


def test_host_gaps_are_host():
    """A rank that never waits for an input loses exactly its gaps."""
    rank = truth(Job(p=1, host_gap_ns=50_000)).steps[0].pipelines[0].ranks[0]
    assert (rank.host, rank.wait, rank.transfer) == (15 * 50_000, 0, 0)


def test_hosts_of_a_rank_are_late_by_themselves():
    """Each of the eight actions of rank 1 begins late, and none of rank 0's."""
    first, second = truth(Job(p=2, m=4, host_gaps_ns=(0, 50_000))).steps[0].pipelines[0].ranks
    assert (first.host, second.host) == (0, 8 * 50_000)


def test_a_pause_costs_what_it_lasts_and_no_work():
    """Of every forward, before or inside: one rank loses all pauses but one that comes before its first action."""
    rank = truth(Job(p=1, pause_ns=3_000_000, pause_chance=1.0)).steps[0].pipelines[0].ranks[0]
    inside = [a.name for a in rank.actions if a.end - a.start > a.useful]
    assert {name[1] for name in inside} == {"F"}
    assert 0 < len(inside) < 8
    assert rank.host == 3_000_000 * (8 if rank.actions[0].name in inside else 7)
    assert rank.useful == 240_000_000


def test_pauses_fall_anywhere_as_often_as_asked():
    """A tenth of the forwards of many steps, not the same ones of each rank or step; what takes how long stays."""
    job = Job(steps=40, jitter=0.1, pause_ns=1_000_000, pause_chance=0.1, kernels=2)
    calm, paused = truth(replace(job, pause_chance=0.0)), truth(job)
    ranks = [rank for step in paused.steps for rank in step.pipelines[0].ranks]
    assert [r.useful for r in ranks] == [r.useful for s in calm.steps for r in s.pipelines[0].ranks]
    host = [rank.host // 1_000_000 for rank in ranks]
    assert sum(host) == pytest.approx(0.1 * 40 * 4 * 8, rel=0.25)
    assert len(set(host)) > 2


HAND_MADE = Job(p=2, m=1, steps=1, p2p_ns=1_000_000, host_gap_ns=500_000)


def test_idle_time_is_split_where_the_input_arrives():
    """Two ranks and one micro-batch, worked out by hand."""
    pipeline = truth(HAND_MADE).steps[0].pipelines[0]
    assert pipeline.window == 63_500_000
    first, last = pipeline.ranks
    assert (first.wait, first.transfer, first.host) == (32_000_000, 1_000_000, 500_000)
    assert (last.wait, last.transfer, last.host) == (10_000_000 + 21_500_000, 1_000_000, 1_000_000)
    assert (last.actions[0].wait, last.actions[0].transfer, last.tail) == (10_000_000, 1_000_000, 21_500_000)


def test_a_message_that_moves_during_work_costs_only_its_rest():
    """Receives posted ahead: the second transfer begins while the first micro-batch is worked on."""
    job = Job(schedule="gpipe", p=2, m=2, recv_ahead=1, p2p_ns=15_000_000)
    second = truth(job).steps[0].pipelines[0].ranks[1].actions[1]
    assert (second.name, second.wait, second.transfer) == ("1F1", 0, 5_000_000)


@ALL
def test_parts_add_up_to_the_window(job):
    """To the nanosecond, for every rank."""
    for step in truth(job).steps:
        for pipeline in step.pipelines:
            for rank in pipeline.ranks:
                parts = rank.useful + rank.wait + rank.transfer + rank.host + rank.dp
                assert parts == pipeline.window
                assert min(rank.wait, rank.transfer, rank.host, rank.dp) >= 0
                assert all(a.end <= b.start for a, b in pairwise(rank.actions))


@ALL
def test_an_action_waits_for_its_input(job):
    """No forward before the stage below, no backward before the stage above."""
    for pipeline in (p for step in truth(job).steps for p in step.pipelines):
        spans = {a.action: a for rank in pipeline.ranks for a in rank.actions}
        for action, span in spans.items():
            stage, kind, *which = action
            before, kinds = (stage - 1, "F") if kind == Kind.F else (stage + 1, "BI" if kind != Kind.W else "")
            inputs = [spans.get(Action(before, Kind[k], *which)) for k in kinds]
            inputs += [spans.get(action._replace(kind=Kind.I))] if kind == Kind.W else []
            assert all(other is None or other.end <= span.start for other in inputs), action


def test_gpipe_may_drain_in_reverse():
    """A textbook variant has the bubble of the usual order."""
    reverse = truth(Job(schedule="gpipe", variant=1, p=3, m=5))
    assert reverse.orders[0][5:] == ("0B4", "0B3", "0B2", "0B1", "0B0")
    assert reverse.bubble == pytest.approx(2 / 7, abs=1e-9)


def test_a_block_runs_as_one():
    """It waits for both inputs, runs the forward and then the backward, and hands on both outputs at its end."""
    orders = [[Action.parse(text) for text in lane.split()] for lane in ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")]
    job = Job(orders=orders, together=[Action.parse("0F1")], forward_ns=10_000_000, backward_ns=20_000_000)
    spans = {a.name: (a.start - 5_250_000, a.end - 5_250_000) for a in lane_actions(job)}
    ms = {name: (start / 1e6, end / 1e6) for name, (start, end) in spans.items()}
    assert (ms["1B0"], ms["0F1"], ms["0B0"], ms["1F1"]) == ((20, 40), (40, 50), (50, 70), (70, 80))


def lane_actions(job):
    """All actions of a job's first step."""
    return [action for rank in truth(job).steps[0].pipelines[0].ranks for action in rank.actions]


def test_sizes_follow_from_explicit_orders():
    """Ranks, micro-batches, chunks and slices are counted."""
    lanes = ("0F0.0 0F0.1 3F0.0 3F0.1", "1F0.0 1F0.1 2F0.0 2F0.1")
    job = Job(schedule="mine", orders=[[Action.parse(text) for text in lane.split()] for lane in lanes])
    assert (job.schedule, job.p, job.m, job.v, job.slices, job.stages, job.trains) == ("mine", 2, 1, 2, 2, 4, False)
    assert {a.useful for a in lane_actions(job)} == {10_000_000 // 4}


def test_a_stage_may_lie_on_two_ranks():
    """With two copies of the model each micro-batch runs on the rank of its direction."""
    lanes = truth(Job(schedule="chimera", p=4, m=4)).orders
    where = {name: rank for rank, lane in enumerate(lanes) for name in lane}
    assert [where[name] for name in ("0F0", "3F0", "0F2", "3F2")] == [0, 3, 3, 0]


def test_forwards_alone_have_no_optimizer():
    """Neither gradients nor an optimizer stand behind them."""
    step = truth(Job(schedule="forward-only", d=2)).steps[0]
    assert step.end == step.pipelines[0].end + 100_000


def test_a_straggler_slows_one_replica():
    """All that the rank does takes longer, and what the others do does not."""
    slow = truth(Job(p=2, d=2, t=2, straggler=[(5, 2.0)]))
    useful = [rank.useful for pipeline in slow.steps[0].pipelines for rank in pipeline.ranks]
    assert useful == [240_000_000] * 2 + [480_000_000] * 2 + [240_000_000] * 4


def test_stages_have_their_own_times():
    """Explicit times take the place of the even ones, and factors apply to them too."""
    times = [(1_000_000, 2_000_000, 500_000), (3_000_000, 7_000_000, 2_000_000)]
    job = Job(schedule="zb-h1", p=2, m=2, stage_times=times, scale=(1.0, 2.0))
    assert job.stage_times == tuple(StageWork(*each) for each in times)
    useful = {a.name: a.useful for a in lane_actions(job)}
    assert [useful[name] for name in ("0F0", "0I0", "0W0")] == [1_000_000, 1_500_000, 500_000]
    assert [useful[name] for name in ("1F0", "1I0", "1W0")] == [6_000_000, 10_000_000, 4_000_000]


def test_neighbours_have_their_own_transfers():
    """Between ranks that are no neighbours the longest counts."""
    job = Job(schedule="interleaved-1f1b", p=3, m=3, v=2, edges_ns=(100_000, 300_000))
    transfers = {a.name: a.transfer for a in lane_actions(job)}
    assert (transfers["1F0"], transfers["2F0"], transfers["3F0"]) == (100_000, 300_000, 300_000)


def test_an_order_that_cannot_run_is_refused():
    """The message tells where each rank stands."""
    lanes = ("0F0 0B0", "1F1 1F0 1B0 1B1")
    orders = [[Action.parse(text) for text in lane.split()] for lane in (lanes[0] + " 0F1 0B1", lanes[1])]
    with pytest.raises(UsageError, match="deadlocks: rank 0 stands before 0B0, rank 1 stands before 1F1"):
        truth(Job(orders=orders))
