"""Gradients that are reduced in buckets, and what tells whose they are."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.emit.cuda_comms import DP_STREAM
from bubblescope.emit.simulate import simulate
from tests.emit.exports import exports
from tests.emit.jobs import read, rows

MS = 1_000_000
SMALL = Job(p=2, m=2, d=2, steps=1, dp_buckets=4, dp_ns=8 * MS, run_ahead_ns=0, compress=False)
CHUNKS = Job(schedule="interleaved-1f1b", p=2, m=2, v=2, d=2, steps=1, dp_buckets=2, dp_ns=8 * MS, straggler=[(0, 1.1)])


def reductions(content):
    """The kernels that reduce gradients, in order."""
    return sorted((row for row in rows(content, "kernel") if row["tid"] == DP_STREAM), key=lambda row: row["start"])


def test_buckets_follow_each_other_under_the_last_backward():
    """At one, three, five and seven eighths of it, for 2 ms each, and thus the last one beyond it."""
    run = simulate(SMALL)[0].training
    last = run.runs[0].lanes[0][-1]
    assert [(r.begin - last.start, r.end - last.start) for r in run.dp[0, 0]] == [
        (2_500_000, 4_500_000),
        (7_500_000, 9_500_000),
        (12_500_000, 14_500_000),
        (17_500_000, 19_500_000),
    ]
    assert {str(r.under) for r in run.dp[0, 0]} == {"0B1"}


def test_each_stage_reduces_under_its_own_last_backward():
    """The later chunk's gradients first; a replica that is behind holds up the other, and all end together."""
    step = simulate(CHUNKS)[0].training
    for pp in range(2):
        slow, fast = (step.dp[pp, replica] for replica in range(2))
        assert [str(r.under) for r in slow] == [f"{pp + 2}B1"] * 2 + [f"{pp}B1"] * 2
        assert [r.end for r in slow] == [r.end for r in fast]
        assert all(one.end <= other.begin for one, other in pairwise(fast))
        assert {r.end - max(r.begin, s.begin) for r, s in zip(slow, fast, strict=True)} == {2 * MS}


@pytest.mark.parametrize("job", [SMALL, CHUNKS], ids=["1f1b", "chunks"])
def test_files_hold_the_buckets(job, tmp_path):
    """Launched by the thread of the backward, at the moments of the simulation."""
    step = simulate(job)[0].training
    for rank, path in enumerate(write(job, tmp_path)):
        content, place = read(path), job.place(rank)
        found = reductions(content)
        first = min(row["start"] for row in rows(content, "kernel") if "SendRecv" not in row["name"])
        begin = step.runs[place.dp].lanes[place.pp][0].start
        made = step.dp[place.pp, place.dp]
        assert [row["start"] - first for row in found] == [r.begin - begin for r in made]
        assert [row["end"] - first for row in found] == [r.end - begin for r in made]
        launches = {row["args"]["correlation"]: row for row in rows(content, "cuda_runtime")}
        assert {launches[r["args"]["correlation"]]["tid"] - r["args"]["device"] * 13 for r in found} == {7005}


def test_buckets_take_no_time_of_the_pipeline():
    """The bubble is that of a job without them; only what is exposed counts as theirs."""
    plain = truth(Job(p=2, m=4, d=2))
    hidden = truth(Job(p=2, m=4, d=2, dp_buckets=4))
    assert hidden.bubble == plain.bubble
    first, last = truth(Job(p=2, m=4, d=2, dp_buckets=1, dp_ns=40 * MS)).steps[0].pipelines[0].ranks
    assert (first.dp, first.wait) == (0, 30 * MS)
    assert (last.dp, last.wait) == (20 * MS, 10 * MS)


@pytest.mark.parametrize("what", ["all-reduce", "reduce-scatter"])
def test_what_names_groups(what, tmp_path):
    """Everything; or the call and its sizes alone; or only the kernel's name. Peers of messages are another matter."""
    kernel = {"all-reduce": "AllReduce", "reduce-scatter": "ReduceScatter"}[what]
    for told in ("named", "sized", "none"):
        job = Job(p=2, m=2, d=2, steps=1, dp_buckets=2, dp_op=what, groups_told=told)
        content = read(write(job, tmp_path / told)[0])
        args = [row["args"] for row in reductions(content)]
        assert all(kernel in row["name"] for row in reductions(content))
        assert {"Process Group Ranks" in each for each in args} == {told == "named"}
        assert {each.get("Group size") for each in args} == {None if told == "none" else 2}
        assert ("pg_config" in content["distributedInfo"]) == (told == "named")
        text = str([row["args"] for row in rows(content, "kernel", "cpu_op", "user_annotation")])
        assert ("Process Group" in text, "Global rank start" in text) == (told == "named",) * 2
        assert "Dst Rank" in text


@pytest.mark.parametrize("payloads", ["json", "blobs"])
def test_an_older_nccl_names_no_communicator(payloads, tmp_path):
    """Its payloads hold sizes and peers, eight bytes less."""
    job = Job(p=2, m=2, d=2, steps=1, dp_buckets=2)
    for told in ("named", "sized"):
        export = exports(tmp_path / told, job, payloads=payloads, groups_told=told)[0]
        calls = {call["name"]: call["payload"] for call in export.calls()}
        assert calls["ncclAllReduce"]["Message size [bytes]"] == calls["ncclSend"]["Message size [bytes]"] == 8_388_608
        assert ("NCCL communicator ID" in calls["ncclAllReduce"]) == (told == "named")
        assert calls["ncclSend"]["Peer rank"] == 1
