"""Which links are slow: surely, by more than links differ, and at a price."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope import emit
from bubblescope.analysis.edges import Edges, edges
from bubblescope.analysis.ranks import views
from bubblescope.analysis.slow_links import MOST, links
from bubblescope.engine import analyze
from tests.analysis.simulated import simulated

WINDOW = 400_000_000
FORWARD, BACKWARD = 0, 1


def line(source, target, transfers, *, direction=FORWARD, size=-1, doubt=0, step=None):
    """Messages of one line with these transfers, -1 where untold; one in each of four steps by default."""
    count = len(transfers)
    return Edges(
        source=np.full(count, source),
        target=np.full(count, target),
        direction=np.full(count, direction),
        step=np.arange(count) % 4 if step is None else step,
        bytes=np.broadcast_to(size, count),
        transfer=transfers,
        wait=np.where(np.array(transfers) < 0, -1, 7),
        doubt=np.full(count, doubt),
    )


def like(times, count=20):
    """Transfers that scatter by a tenth about so many microseconds."""
    return [round(1000 * times * (1 + (k % 5 - 2) / 20)) for k in range(count)]


def found(*lines, hosts=(), window=None):
    """Links by source and target."""
    named = dict(enumerate(hosts))
    return {(x.source, x.target): x for x in links(Edges.concat(lines), named, 4, window)}


def slow(*lines, **others):
    """Sources and targets of those that are slow."""
    return {ends for ends, x in found(*lines, **others).items() if x.slow}


PEERS = line(0, 1, like(100)), line(1, 2, like(101)), line(2, 3, like(99))


def test_a_link_that_takes_twice_as_long_is_slow():
    """The others are not, and what is told of it are medians."""
    rows = found(*PEERS, line(3, 4, like(200)))
    assert {ends for ends, x in rows.items() if x.slow} == {(3, 4)}
    link = rows[3, 4]
    assert (link.messages, link.untold, link.transfer_ns, link.wait_ns) == (20, 0, 200_000, 7)
    assert (link.ratio, link.direction, link.bytes, link.bandwidth) == (2.0, "forward", None, None)
    assert link.evidence == "median surely over 0.18 ms, of its peers under 0.11 ms; slower in 4 of 4 steps"


def test_one_slow_link_does_not_hide_another():
    """Of its peers half are as slow: the lower median counts."""
    assert slow(line(0, 1, like(100)), line(1, 2, like(200)), line(2, 3, like(300))) == {(1, 2), (2, 3)}
    assert found(line(0, 1, like(100)), line(1, 2, like(300)), line(2, 3, like(300)))[0, 1].ratio == pytest.approx(
        1 / 3
    )


def test_a_difference_within_the_margin_is_none():
    """Up to 20 % over its peers, however surely."""
    exact = [[1000] * 50, [1200] * 50, [1201] * 50]
    assert slow(*(line(i, i + 1, times) for i, times in enumerate(exact[:2]))) == set()
    assert slow(*(line(i, i + 1, times) for i, times in enumerate(exact[::2]))) == {(1, 2)}


def test_few_messages_tell_nothing():
    """Of two lines 9 messages are needed: 2^-9 is under 0.01 / 4."""
    few = found(line(0, 1, like(100)), line(1, 2, like(300, 8)))[1, 2]
    assert (few.slow, few.ratio) == (False, pytest.approx(3, abs=0.1))
    assert few.evidence == "too few: 8 of 8 messages tell how long they moved, 9 are needed"
    assert slow(line(0, 1, like(100)), line(1, 2, like(300, 9))) == {(1, 2)}


def test_messages_whose_time_is_untold_are_counted():
    """They are no part of any median."""
    link = found(*PEERS, line(3, 4, [-1] * 5 + like(200)))[3, 4]
    assert (link.messages, link.untold, link.transfer_ns, link.slow) == (25, 5, 200_000, True)
    link = found(*PEERS, line(3, 4, [-1] * 5))[3, 4]
    assert (link.untold, link.transfer_ns, link.ratio, link.slow) == (5, None, None, False)
    assert link.evidence == "nothing tells when its bytes moved"


def test_a_link_without_peers_is_not_judged():
    """A backward has no forward for a peer, and a peer of few messages is none."""
    rows = found(line(0, 1, like(100)), line(1, 0, like(900), direction=BACKWARD), line(1, 2, like(100, 4)))
    assert [(x.ratio, x.slow) for x in (rows[0, 1], rows[1, 0])] == [(None, False)] * 2
    assert rows[1, 0].evidence == "no other link that carries the same has messages enough to compare with"


def test_sizes_are_divided_out():
    """Twice the bytes may take twice as long; the bandwidth is that of the median message."""
    rows = found(line(0, 1, like(100), size=1000), line(1, 2, like(200), size=2000), line(2, 3, like(300), size=1000))
    assert {ends for ends, x in rows.items() if x.slow} == {(2, 3)}
    assert [rows[ends].ratio for ends in ((1, 2), (2, 3))] == [1.0, 3.0]
    assert (rows[1, 2].bytes, rows[1, 2].bandwidth) == (2000, 2000 / 200e-6)


def test_unknown_sizes_are_compared_among_themselves():
    """One message without a size leaves the line without."""
    sizes = np.array([-1] + [1000] * 19)
    rows = found(line(0, 1, like(100), size=1000), line(1, 2, like(300), size=sizes), line(2, 3, like(100)))
    assert (rows[1, 2].ratio, rows[1, 2].bytes, rows[1, 2].bandwidth, rows[1, 2].slow) == (3.0, None, None, True)
    assert rows[0, 1].ratio is None


def test_what_takes_little_is_not_worth_a_word():
    """100 us more for each of 5 messages a step are 0.5 ms: 1 % of 50 ms and less of more."""
    lines = *PEERS, line(3, 4, like(200))
    assert slow(*lines, window=49_000_000) == {(3, 4)}
    link = found(*lines, window=51_000_000)[3, 4]
    assert not link.slow
    assert link.evidence.startswith("slower, but that takes under 1% of the window: ")


def test_what_scatters_is_not_sure():
    """Half of the messages take ten times as long, as those of its peers do, and one more of its own."""
    wild = [1000, 10_000] * 20
    link = found(line(0, 1, wild[1:]), line(1, 2, wild[:-1]))[0, 1]
    assert not link.slow
    assert link.ratio == 10
    assert link.evidence.startswith("slower, but not surely: ")


@pytest.mark.parametrize(("doubt", "is_slow"), [(0, True), (47_000, True), (48_000, False), (-1, False)])
def test_clocks_that_may_be_off_by_as_much_leave_it_open(doubt, is_slow):
    """From 0.18 ms down to 1.2 times 0.11 ms are 48 us."""
    link = found(*PEERS, line(3, 4, like(200), doubt=doubt))[3, 4]
    assert link.slow == is_slow
    assert is_slow or link.evidence.startswith("slower, but the clocks may be off by as much: ")


def test_links_between_hosts_are_compared_with_each_other():
    """Within hosts 10 us are usual, between them 100 us; one takes 300 us."""
    hosts = ("a", "a", "b", "b", "c", "c", "d", "d")
    times = (10, 100, 10, 100, 10, 300, 10)
    rows = found(*(line(i, i + 1, like(t)) for i, t in enumerate(times)), hosts=hosts)
    assert {ends for ends, x in rows.items() if x.slow} == {(5, 6)}
    assert (rows[5, 6].ratio, rows[1, 2].ratio) == (3.0, 1.0)


def test_the_only_link_between_hosts_is_compared_with_all():
    """And it is said what it is."""
    rows = found(line(0, 1, like(10)), line(1, 2, like(100)), line(2, 3, like(10)), hosts="aabb")
    assert rows[1, 2].slow
    assert rows[1, 2].evidence.endswith("; it runs between hosts, its peers within one")


def test_evidence_counts_the_steps():
    """Three of four steps are slow."""
    step = np.repeat([3, 5, 6, 9], 10)
    times = np.where(step == 6, 100_000, 300_000)
    assert found(*PEERS, line(3, 4, times, step=step))[3, 4].evidence.endswith("slower in 3 of 4 steps")


def test_the_worst_come_first_and_slow_ones_are_never_left_out():
    """Of a hundred links 32 are listed, and all of forty that are slow."""
    usual = [line(i, i + 1, like(100 + i / 10)) for i in range(100)]
    rows = links(Edges.concat(usual), {}, 4, None)
    assert [x.source for x in rows] == list(range(99, 99 - MOST, -1))
    bad = [line(i, i + 1, like(300 + i)) for i in range(200, 240)]
    rows = links(Edges.concat([*usual, *bad]), {}, 4, None)
    assert [x.source for x in rows] == list(range(239, 199, -1))


def test_nothing_sent_is_no_link():
    """A job of one rank."""
    assert links(Edges.empty(), {}, 4, None) == ()


LINES = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 400), st.sampled_from((-1, 10))), max_size=60)


@given(LINES, st.randoms())
def test_the_order_of_messages_is_nothing(drawn, dice):
    """The links are the same."""
    rows = [line(s, s + 1, [t], size=size) for s, t, size in drawn]
    mixed = rows[:]
    dice.shuffle(mixed)
    assert links(Edges.concat(rows), {}, 1, None) == links(Edges.concat(mixed), {}, 1, None)


@given(LINES)
def test_every_message_is_counted_once(drawn):
    """And those that are untold are those without a time."""
    rows = links(Edges.concat([line(s, s + 1, [t], size=size) for s, t, size in drawn]), {}, 1, None)
    assert sum(x.messages for x in rows) == len(drawn)
    assert sum(x.untold for x in rows) == sum(t < 0 for _, t, _ in drawn)
    assert all((x.transfer_ns is None) == (x.messages == x.untold) for x in rows)


def of_job(job, **others):
    """Links of a simulated job."""
    whole = simulated(job, **others)
    seen = views(whole)
    hosts = {rank: view.timeline.identity.host for rank, view in seen.items()}
    return links(edges(seen, whole.clock, range(job.steps)), hosts, job.steps, WINDOW)


def a_job(seed, **others):
    """A job with three milliseconds of transfers, on one host or several."""
    choices = {"d": 1 + seed % 2, "ranks_a_host": (8, 2, 1)[seed % 3], "schedule": ("1f1b", "gpipe")[seed % 2]}
    return emit.Job(**{"p": 4, "m": 8, "steps": 3, "jitter": 0.03, "seed": seed, **choices, **others})


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.1, 0.3, 1.0])
def test_no_false_alarm(noise):
    """Transfers that scatter alike, in 100 jobs with 12 or 6 lines each, sizes known or not, on GPU and CPU."""
    for seed in range(100):
        job = a_job(seed, p2p_ns=3_000_000)
        found = of_job(job, noise=noise, on_gpu=seed % 2 > 0, size=(-1, 8_000_000)[seed // 2 % 2])
        assert [x for x in found if x.slow] == [], seed


@pytest.mark.parametrize(("noise", "factor"), [(0.0, 1.5), (0.1, 2), (0.3, 3)])
def test_a_slow_edge_is_found(noise, factor):
    """Both directions of it, in every one of 20 jobs, and nothing else."""
    for seed in range(20):
        slow_edge = seed % 3
        times = [round(1_500_000 * (factor if edge == slow_edge else 1)) for edge in range(3)]
        job = a_job(seed, edges_ns=times, d=1, ranks_a_host=8)
        found = of_job(job, noise=noise, on_gpu=seed % 2 > 0, size=(-1, 8_000_000)[seed // 2 % 2])
        ends = (slow_edge, slow_edge + 1)
        assert {(x.source, x.target) for x in found if x.slow} == {ends, ends[::-1]}, seed


WAYS = {
    "gpu": {},
    "one kernel for both": {"fused": True, "labels": "none", "p2p_args": "op"},
    "four clocks": {"ranks_a_host": 1, "skew_ns": (0, 3_000_000, -1_000_000, 700_000)},
    "posted ahead": {"recv_ahead": 1},
    "cpu": {"backend": "cpu"},
    "nsys": {"recorder": "nsys", "payloads": "json"},
    "chunks": {"schedule": "interleaved-1f1b", "v": 2},
    "replicas": {"d": 2},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_slow_edge_of_written_traces_is_found(way, tmp_path: Path):
    """Its ratio is 4, and no other link is named."""
    job = emit.Job(p=4, m=8, steps=3, edges_ns=(400_000, 1_600_000, 400_000), jitter=0.05, seed=3, **way)
    emit.write(job, tmp_path)
    round_the_ring = {(3, 0), (0, 3)} if job.v > 1 else set()  # emitted with the longest time of all
    slow = [x for x in analyze([tmp_path]).report.links if x.slow and (x.source, x.target) not in round_the_ring]
    replicas = [(job.rank(1, k, 0), job.rank(2, k, 0)) for k in range(job.d)]
    forward, backward = (
        {(*ends[::way], name) for ends in replicas} for way, name in ((1, "forward"), (-1, "backward"))
    )
    assert {(x.source, x.target, x.direction) for x in slow} == forward | backward
    assert all(x.ratio == pytest.approx(4, rel=0.02) for x in slow)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from(("cuda", "cpu")), st.sampled_from(("1f1b", "gpipe", "zb-h1")))
def test_alike_edges_of_written_traces_are_not_named(tmp_path_factory, seed, backend, schedule):
    """With jitter and gaps of the host, and messages that queue."""
    folder = tmp_path_factory.mktemp("job")
    choices = {"p2p_ns": 2_000_000, "host_gap_ns": 200_000, "jitter": 0.1, "recv_ahead": seed % 2}
    emit.write(emit.Job(schedule=schedule, p=4, m=6, steps=3, backend=backend, seed=seed, **choices), folder)
    assert [x for x in analyze([folder]).report.links if x.slow] == []
