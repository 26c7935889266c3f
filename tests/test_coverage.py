"""Runs whose truth is known, with something taken out of their files: the shares say just how much."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from random import Random

import orjson
import pytest

from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.model.report import Report

RUN = Job(schedule="1f1b", p=4, m=8, steps=2, comm_labels=True, kernels=4, dp_ns=0, optimizer_ns=0)
"""Both of its two steps are used."""


@pytest.fixture
def edited(tmp_path):
    """A function that writes a run, lets the events of one rank be changed, and analyzes what is left."""

    def change(job: Job, rank: int, edit) -> Report:
        folder = tmp_path / "traces"
        write(job, folder, overwrite=True)
        (path,) = folder.glob(f"*rank{rank}*")
        trace = orjson.loads(gzip.decompress(path.read_bytes()))
        trace["traceEvents"] = edit(trace["traceEvents"])
        path.write_bytes(gzip.compress(orjson.dumps(trace), compresslevel=1))
        return analyze([str(folder)]).report

    return change


def kernels(events: list, *, messages: bool) -> list:
    """The kernels that are sends and receives, or those that compute."""
    return [e for e in events if e.get("cat") == "kernel" and ("SendRecv" in e["name"]) == messages]


def correlations(events: list) -> set[int]:
    """The numbers that join kernels and launches."""
    return {event["args"]["correlation"] for event in events}


def without_launches(events: list, numbers: set[int]) -> list:
    """The events without the launches of these numbers."""
    launch = ("cuda_runtime", "cuda_driver")
    return [e for e in events if not (e.get("cat") in launch and e["args"].get("correlation") in numbers)]


def verdicts(report: Report) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Verdict and reasons of each number."""
    return {each.number: (each.verdict, each.reasons) for each in report.quality.numbers}


def test_of_a_whole_run_all_is_covered(edited):
    """Every share is 1, of every rank; every number stands."""
    report = edited(RUN, 0, lambda events: events)
    covered = report.quality.coverage
    assert (covered.launched, covered.explained, covered.paired) == (1, 1, 1)
    assert {(r.launched, r.explained, r.paired, r.left_out) for r in covered.ranks} == {(1, 1, 1, None)}
    assert covered.messages == 2 * (2 * 3 * 8) * 2  # both ways over 3 borders, 8 micro-batches, 2 steps, 2 halves each
    assert {verdict for verdict, _ in verdicts(report).values()} == {"ok"}
    assert {(step.left_out, step.missing_ranks) for step in report.steps} == {(None, ())}


@pytest.mark.parametrize("lost", [1, 7, 40])
def test_lost_launches_are_counted(edited, lost):
    """The share of kernels is exact, of the rank and of the job."""

    def drop(events):
        numbers = sorted(correlations([event for event in events if event.get("cat") == "kernel"]))
        return without_launches(events, set(Random(lost).sample(numbers, lost)))  # noqa: S311

    whole = edited(RUN, 2, lambda events: events).quality.coverage
    covered = edited(RUN, 2, drop).quality.coverage
    assert covered.kernels == whole.kernels
    assert covered.launched == pytest.approx(1 - lost / whole.kernels)
    assert covered.ranks[2].launched == pytest.approx(1 - lost / whole.ranks[2].kernels)
    assert [rank.launched for rank in covered.ranks if rank.rank != 2] == [1, 1, 1]


def test_compute_without_a_launch_is_unexplained(edited):
    """By just its time: kernels in the middle of actions are left alone on the GPU."""
    taken = {}

    def drop(events):
        compute = sorted(kernels(events, messages=False), key=lambda event: event["ts"])
        alone = compute[4 + 1 : -4 : 8]  # the second of every other action, neither the first nor the last one
        taken["ns"] = round(1000 * sum(event["dur"] for event in alone))
        return without_launches(events, correlations(alone))

    whole = edited(RUN, 1, lambda events: events).quality.coverage
    covered = edited(RUN, 1, drop).quality.coverage
    assert covered.inside_ns == whole.inside_ns
    assert covered.ranks[1].explained == pytest.approx(1 - taken["ns"] / whole.ranks[1].inside_ns, abs=1e-6)
    assert covered.explained == pytest.approx(1 - taken["ns"] / whole.inside_ns, abs=1e-6)
    assert taken["ns"] > 0


def inside(event: dict, ranges: list) -> bool:
    """Whether an event of the host lies in one of the ranges."""
    return any(r["tid"] == event.get("tid") and r["ts"] <= event["ts"] <= r["ts"] + r["dur"] for r in ranges)


@pytest.mark.parametrize("lost", [1, 5, 20])
def test_messages_without_a_partner_are_counted(edited, lost):
    """Of each half that is lost, with the call that posted it, the other one stays, alone."""

    def drop(events):
        calls = [e for e in events if re.match(r"PP:\d+(SEND|RECV)", e["name"]) and e["cat"] == "user_annotation"]
        taken = Random(lost).sample(calls, lost)  # noqa: S311
        launched = [e for e in events if e.get("cat") == "cuda_runtime" and inside(e, taken)]
        kept = [e for e in events if not ("ts" in e and e.get("cat") != "kernel" and inside(e, taken))]
        gone = correlations(launched)
        return [e for e in kept if not (e.get("cat") == "kernel" and e["args"].get("correlation") in gone)]

    whole = edited(RUN, 0, lambda events: events).quality.coverage
    covered = edited(RUN, 0, drop).quality.coverage
    assert covered.messages == whole.messages - lost
    assert covered.paired == pytest.approx((whole.messages - 2 * lost) / (whole.messages - lost))
    assert covered.ranks[0].paired == 1
    assert covered.ranks[1].paired == pytest.approx(1 - lost / whole.ranks[1].messages)


def test_a_rank_without_actions_is_left_out(edited):
    """Its labels are gone, and nothing else tells its work: its messages and their partners are alone."""
    job = replace(RUN, autograd=False, backend="cpu", p2p_args="op", kernels=2)
    report = edited(job, 1, lambda events: [e for e in events if not e["name"].startswith("PP:")])
    covered = report.quality.coverage
    assert [rank.left_out for rank in covered.ranks] == [None, "no-actions", None, None]
    assert (covered.ranks[1].inside_ns, covered.ranks[1].explained) == (0, None)
    assert [rank.explained for rank in covered.ranks if rank.rank != 1] == [1, 1, 1]
    assert (covered.explained, covered.launched) == (1, None)
    assert "unlabelled" in verdicts(report)["bubble"][1]


def test_a_cut_step_says_on_which_rank(edited):
    """The last backward of the last step is lost on one rank."""

    def cut(events):
        last = max(event["ts"] for event in events if event["name"].startswith("PP:3B"))
        return [event for event in events if event.get("ts", 0) < last]

    report = edited(replace(RUN, steps=4), 3, cut)
    assert [(s.left_out, s.missing_ranks) for s in report.steps] == [
        ("first", ()),
        (None, ()),
        (None, ()),
        ("incomplete", (3,)),
    ]
    assert verdicts(report)["bubble"] == ("ok", ())


def test_a_missing_rank_leaves_its_neighbours_messages_alone(tmp_path):
    """Of three borders two have one side only; the causes are not there, and the bubble is an interval."""
    write(replace(RUN, missing=(1,)), tmp_path)
    report = analyze([str(tmp_path)]).report
    covered = report.quality.coverage
    each = 2 * 2 * 8  # halves of a border on one side: both ways, 2 steps
    assert covered.messages == 4 * each
    assert covered.paired == 0.5
    assert [rank.paired for rank in covered.ranks] == [0, 0.5, 1]
    told = verdicts(report)
    assert told["bubble"] == ("degraded", ("missing-ranks",))
    assert told["causes"] == ("unusable", ("missing-ranks",))
    assert told["communication"] == ("degraded", ("missing-ranks", "unpaired-p2p"))
    assert told["throughput"] == ("ok", ())
