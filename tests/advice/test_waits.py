"""Proposals about transfers, hosts, collectives and recomputation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.advice.waits import exposed_dp, exposed_tp, host_bound, p2p, recompute, slow_link
from bubblescope.model.report import Outside
from tests.advice.runs import (
    MS,
    PAUSES,
    SLOW_LINK,
    Fake,
    a_rank,
    a_run,
    a_stage,
    causes,
    quiet,
    said,
    with_bubble,
    with_imbalance,
)

DEAR = {"structural": 0.25, "p2p": 0.04}
EARLY = "schedule=eager-1f1b"
LATE = {"structural": 0.25, "host": 0.04}


def test_transfers_that_can_be_posted_ahead():
    """The gain is that of what can be done, where it brings half of what free transfers would."""
    told = said(p2p, with_bubble(quiet(), causes=causes(**DEAR)), Fake({"without=p2p": 0.04, "overlap": 0.03}))
    assert (told.code, told.gain, told.change) == ("p2p", 0.03, "overlap")
    assert "4.0 of the bubble's 30.0 points" in told.detail
    assert told.title.startswith("Post the transfers between stages ahead")
    assert "; free transfers would save 4.0% of a step." in told.detail


@pytest.mark.parametrize("answers", [{"without=p2p": 0.04}, {"without=p2p": 0.04, "overlap": 0.01}])
def test_transfers_that_only_faster_links_make_shorter(answers):
    """The gain is that of free transfers, and the title says so."""
    told = said(p2p, with_bubble(quiet(), causes=causes(**DEAR)), Fake(answers))
    assert told.change == "without=p2p"
    assert told.title.endswith("the gain is that of free ones")


def test_what_can_be_done_about_transfers_is_told():
    """Where it does not bring half of what free ones would; a schedule that saves nothing is not."""
    dear = with_bubble(quiet(), causes=causes(**DEAR))
    answers = {"without=p2p": 0.04, "overlap": 0.003}
    text = "transfers that are posted ahead would save 0.3% of a step"
    assert f"{text}, more forwards ahead (eager-1f1b) 1.2%." in said(p2p, dear, Fake(answers | {EARLY: 0.012})).detail
    assert f"{text}." in said(p2p, dear, Fake(answers | {EARLY: 0.0004})).detail


@pytest.mark.parametrize(
    ("run", "early", "megatron"),
    [
        (a_run(), True, False),
        (a_run(schedule="interleaved-1f1b", virtual=2), False, True),
        (a_run(schedule="gpipe"), False, False),
    ],
)
def test_advice_on_transfers_suits_the_schedule(run, early, megatron):
    """Forwards run further ahead of 1f1b only; Megatron's option is for interleaved stages."""
    fake = Fake({"without=p2p": 0.04, "overlap": 0.03}, measured=run)
    told = said(p2p, with_bubble(quiet(), causes=causes(**DEAR)), fake)
    assert (EARLY in fake.asked) == early
    assert ("overlap_p2p_comm" in told.detail) == megatron


def test_cheap_transfers():
    """Where they cost nothing, nothing is replayed."""
    fake = Fake({"without=p2p": 0.04})
    assert said(p2p, quiet(), fake) is None
    assert fake.asked == []


def test_a_slow_link_is_named():
    """With how much slower it is."""
    told = said(slow_link, replace(quiet(), links=(SLOW_LINK,)), Fake({"without=p2p": 0.04}))
    assert (told.code, told.gain) == ("slow-link", 0.04)
    assert "rank 0 to rank 1" in told.title
    assert "from rank 0 to 1 (2.31 times)" in told.detail


def test_links_that_are_alike():
    """A link that is not surely slow is not named."""
    alike = replace(quiet(), links=(replace(SLOW_LINK, slow=False),))
    assert said(slow_link, alike, Fake({"without=p2p": 0.04})) is None


def test_late_hosts():
    """The rank that waits most is named."""
    ranks = (a_rank(0), replace(a_rank(1), host_ns=38 * MS, pp_ns=76 * MS, pp_wait_ns=76 * MS))
    told = said(host_bound, with_bubble(quiet(ranks=ranks), causes=causes(**LATE)), Fake({"without=host": 0.03}))
    assert (told.code, told.gain, told.change) == ("host-bound", 0.03, "without=host")
    assert "4.0 of the bubble's 30.0 points, and most on rank 1, 10.0% of its window." in told.detail
    assert "transfers are in it too" not in told.detail


def test_late_hosts_beside_pauses():
    """Only what pauses leave."""
    report = with_imbalance(with_bubble(quiet(), causes=causes(**LATE)), pauses=PAUSES)
    told = said(host_bound, report, Fake({"without=host+pauses": 0.05, "without=pauses": 0.04}))
    assert told.gain == pytest.approx(0.01)


def test_late_hosts_where_no_message_was_seen():
    """Gaps may then be transfers, and that is said."""
    report = with_bubble(quiet(communication=()), causes=causes(**LATE))
    assert "transfers are in it too" in said(host_bound, report, Fake({"without=host": 0.03})).detail


def test_hosts_in_time():
    """Where they cost nothing, nothing is replayed."""
    fake = Fake({"without=host": 0.03})
    assert said(host_bound, quiet(), fake) is None
    assert fake.asked == []


@pytest.mark.parametrize(("backward", "is_said"), [(20, False), (27, False), (28, True), (36, True), (39, False)])
def test_recomputation_shows_in_the_length_of_backwards(backward, is_said):
    """Between 2.8 and 3.6 times the forward, in the median stage: what is longer has another reason."""
    stages = (*(a_stage(stage, backward=backward) for stage in range(3)), a_stage(3, backward=10))
    told = said(recompute, quiet(stages=stages), Fake({"recompute=off": 0.2}))
    assert (told is not None) == is_said
    assert told is None or (told.code, told.change) == ("recompute", "recompute=off")


def outside(dp):
    """A rank's time beside its window, so many milliseconds of it gradients."""
    return Outside(dp_ns=dp * MS, optimizer_ns=8 * MS, host_ns=4 * MS, other_ns=0)


@pytest.mark.parametrize(("dp", "is_said"), [(8, False), (40, True)])
def test_exposed_gradients(dp, is_said):
    """From 5 % of a step on, with the gain of the replay."""
    ranks = tuple(a_rank(rank, outside=outside(dp)) for rank in range(4))
    told = said(exposed_dp, quiet(ranks=ranks), Fake({"without=dp": 0.09}))
    assert (told is not None) == is_said
    assert told is None or (told.code, told.gain, told.change) == ("exposed-dp", 0.09, "without=dp")


def test_gradients_that_only_fast_replicas_wait_for_are_not_exposed():
    """What the ranks of the slowest pipeline spend counts: the others wait for them."""
    slow = tuple(a_rank(rank, outside=outside(8)) for rank in range(2))
    fast = tuple(a_rank(rank, window=300, compute=200, outside=outside(88)) for rank in (2, 3))
    pipelines = tuple(
        replace(quiet().pipelines[0], pipeline=k, ranks=ranks, window_ns=window * MS)
        for k, (ranks, window) in enumerate([((0, 1), 380), ((2, 3), 300)])
    )
    assert said(exposed_dp, quiet(ranks=slow + fast, pipelines=pipelines), Fake({"without=dp": 0.09})) is None


@pytest.mark.parametrize(("comm", "is_said"), [(10, False), (66, True)])
def test_exposed_collectives_of_stages(comm, is_said):
    """From 5 % of a step on; no replay prices them, so no gain is claimed."""
    ranks = tuple(a_rank(rank, compute=266 - comm, comm=comm) for rank in range(4))
    told = said(exposed_tp, quiet(ranks=ranks), Fake())
    assert (told is not None) == is_said
    if told is not None:
        assert (told.code, told.gain, told.change) == ("exposed-tp", None, None)
        assert "66.00 ms of a step" in told.detail
        assert "24.8% of what counts as useful" in told.detail
        assert told.title.endswith("they take 16.5% of a step")
