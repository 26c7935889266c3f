"""Contradictions that make a report untrusted."""

from __future__ import annotations

import dataclasses
import gzip
import math

import numpy as np
import orjson
import pytest

from bubblescope.analysis.doubts import EARLY, density
from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.model.options import Options
from bubblescope.report.facts import facts
from tests.analysis.jobs import hidden, job, one_f_one_b, rank
from tests.analysis.jobs import report as reported
from tests.building import loose

SMALL = {"schedule": "1f1b", "p": 2, "m": 4, "steps": 2, "labels": "pp", "p2p_ns": 200_000}


def found(folder, **changes):
    """The report of a small job with some things changed."""
    write(Job(**(SMALL | changes)), folder)
    return analyze([str(folder)]).report


def codes(report):
    """Codes of everything but remarks."""
    return {f.code for f in report.quality.findings if f.severity != "info"}


def test_an_ordinary_job_raises_no_doubt(tmp_path):
    """Nothing is warned of, and the bubble is trusted."""
    report = found(tmp_path)
    assert (codes(report), report.quality.verdict, report.bubble.trusted) == (set(), "ok", True)


def test_clocks_hours_apart_are_noticed(tmp_path):
    """A step that was over on one rank before it began on the other: clocks, numbers or runs disagree."""
    report = found(tmp_path, skew_ns=(0, 3 * 3600 * 10**9))
    assert "clock-uncertain" in codes(report)
    assert (report.quality.verdict, report.bubble.trusted) == ("degraded", False)


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("seconds", "hosts", "noticed"), [(59, 0, True), (20, 0, False), (59, 2, False), (20, 1, True), (0, 1, False)]
)
def test_replicas_recorded_when_all_others_were_over(tmp_path, backend, seconds, hosts, noticed):
    """Are of another run, unless the clocks of hosts may be off by as much, or what they exchanged ties these."""
    shape = {
        "d": 2,
        "dp_ns": 0,
        "metadata": "none",
        "ranks_a_host": 4 // (hosts or 1),
        "backend": backend,
        "labels": "none",
    }
    made = Job(**(SMALL | shape), compress=False)
    for rank_, path in enumerate(write(made, tmp_path)):
        document = orjson.loads(path.read_bytes())
        later = made.place(rank_)[1] == 1
        document["host_name"] = f"node{int(later) if hosts == 2 else 0}" if hosts else None
        document["baseTimeNanoseconds"] = document.get("baseTimeNanoseconds", 0) + later * seconds * 10**9
        path.write_bytes(orjson.dumps(document))
    report = analyze([str(tmp_path)]).report
    said = [f.message for f in report.quality.findings if f.code == "clock-uncertain"]
    assert any("recordings of different runs" in message for message in said) == noticed
    assert noticed <= (report.quality.verdict != "ok")


def test_messages_that_arrive_before_they_are_sent_are_noticed(tmp_path):
    """By 20 ms in a window of a quarter second; as both ranks are of one host, no clock is accused."""
    report = found(tmp_path, skew_ns=(20_000_000, 0))
    (finding,) = (f for f in report.quality.findings if "arrive before they are sent" in f.message)
    assert report.quality.verdict == "degraded"
    assert (finding.code, "the one clock of their host" in finding.message) == ("unpaired-p2p", True)
    assert "clock-uncertain" not in codes(report)


def shifted(folder, moved, **shape):
    """The report of a job of which rank 1 shows the moments of some events, by `moved(event)`, off by milliseconds."""
    for rank_, path in enumerate(write(Job(**(SMALL | {"ranks_a_host": 1, "compress": False} | shape)), folder)):
        document = orjson.loads(path.read_bytes())
        events = [event for event in document["traceEvents"] if "ts" in event]
        began = min(event["ts"] for event in events)
        for event in events if rank_ == 1 else []:
            event["ts"] += 1000 * moved(event | {"ms": (event["ts"] - began) / 1000})
        path.write_bytes(orjson.dumps(document))
    return analyze([str(folder)]).report


@pytest.mark.parametrize(
    ("by", "shape"),
    [(15, {"p": 4}), (-5, {"p": 4}), (5, {"p": 6}), (5, {"p": 4, "labels": "none"})],
)
def test_a_clock_that_is_stepped_is_noticed(tmp_path, by, shape):
    """Within a used step, so that few of all messages contradict the rest; the page and the report count as many."""
    shape |= {"m": 8, "steps": 6}
    whole = found(tmp_path / "whole", **shape)
    _, second = (step.start_ns / 1e6 for step in whole.steps[:2])
    at = second + 0.17 * whole.bubble.window_ns / 1e6
    report = shifted(tmp_path / "stepped", lambda event: by * (event["ms"] > at), **shape)
    assert ("clock-uncertain" in codes(whole), "clock-uncertain" in codes(report)) == (False, True)
    assert report.quality.verdict == "degraded"
    assert f"; {report.clock.violations} pairs of" in dict(facts(report))["Clocks"]


def test_a_slip_or_two_are_no_step():
    """One message of many that arrives before it is sent, alone or beside another, tells nothing of clocks."""
    for count, said in ((1, False), (2, False), (3, True)):
        late = np.isin(np.arange(1000), 100 + np.arange(count))
        assert (density(late) > EARLY) == said


def test_a_small_disagreement_of_clocks_is_forgiven(tmp_path):
    """Half a percent of the window changes nothing that is shown."""
    assert "clock-uncertain" not in codes(found(tmp_path, skew_ns=(500_000, 0)))


def test_lost_messages_alone_raise_no_doubt(tmp_path):
    """With no receive in any file the order of the actions still fits a schedule."""
    for path in write(Job(**SMALL), tmp_path):
        document = orjson.loads(gzip.decompress(path.read_bytes()))
        document["traceEvents"] = [e for e in document["traceEvents"] if not is_receive(e)]
        path.write_bytes(gzip.compress(orjson.dumps(document)))
    report = analyze([str(tmp_path)]).report
    assert "contradiction" not in codes(report)
    assert "unpaired-p2p" in {f.code for f in report.quality.findings}


def is_receive(event):
    """Whether an event of the generator is the kernel of a receive."""
    return event.get("cat") == "kernel" and event["args"].get("Collective name") == "recv"


def test_a_layout_that_leaves_messages_alone_is_noticed(tmp_path):
    """Four stages stated to be two pipelines of two: no message has a partner, and nothing fits."""
    write(Job(**(SMALL | {"p": 4})), tmp_path)
    assert "contradiction" in codes(analyze([str(tmp_path)], Options(pp=2)).report)


@pytest.mark.parametrize(
    "more",
    [{}, {"kernels": 1}, {"optimizer_ns": 2_000_000_000}],
    ids=["inside", "at the end", "long optimizer"],
)
def test_communication_that_nobody_describes_is_told_by_what_it_does(tmp_path, more):
    """All-reduces of undescribed groups in every forward are the stage's own: the bubble is that of described ones."""
    report = found(tmp_path, t=2, pg_desc="undefined", **more)
    assert "unnamed-communication" not in codes(report)
    assert (report.layout.tp, report.quality.verdict) == (2, "ok")
    assert report.bubble.measured == pytest.approx(found(tmp_path / "told", t=2, **more).bubble.measured, abs=1e-9)


def reduces_in(event, label):
    """Whether an event launches an all-reduce inside a label, or is one's kernel."""
    inside = label["ts"] <= event.get("ts", -1) <= label["ts"] + label["dur"]
    return label.get("cat") == "user_annotation" and inside and "cudaLaunchKernelExC" in str(event.get("name", ""))


def test_communication_that_shows_no_purpose_is_noticed(tmp_path):
    """All-reduces of undescribed groups in a few forwards only may be work: the bubble is an upper bound."""
    for path in write(Job(**(SMALL | {"t": 2, "pg_desc": "undefined"})), tmp_path):
        document = orjson.loads(gzip.decompress(path.read_bytes()))
        rows = document["traceEvents"]
        bare = [row for row in rows if str(row.get("name", "")).startswith(("PP:0F0", "PP:1F0"))]
        document["traceEvents"] = [row for row in rows if not any(reduces_in(row, label) for label in bare)]
        path.write_bytes(gzip.compress(orjson.dumps(document)))
    report = analyze([str(tmp_path)]).report
    assert "unnamed-communication" in codes(report)
    assert report.quality.verdict == "degraded"


KEPT = {"External id", "Record function id", "Ev Idx", "device", "context", "stream", "correlation"}


def bare(event, which):
    """An event without what names its communication: any call's arguments, and every so many kernels' names."""
    name = str(event.get("name", ""))
    if name == "record_param_comms" or (name.startswith("ncclDevKernel") and which % 8 == 0):
        event["args"] = {key: value for key, value in event["args"].items() if key in KEPT}
        if name != "record_param_comms":
            event["name"] = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
    return event


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_a_bubble_that_a_few_nameless_kernels_spoil_is_not_calm(tmp_path, share):
    """Work of the stage that counts as bubble makes it wrong by as much."""
    job = Job(p=2, m=4, t=2, tp_share=share, steps=3)
    for path in write(job, tmp_path):
        document = orjson.loads(gzip.decompress(path.read_bytes()))
        document["traceEvents"] = [bare(event, n) for n, event in enumerate(document["traceEvents"])]
        path.write_bytes(gzip.compress(orjson.dumps(document), 1))
    report = analyze([str(tmp_path)]).report
    off = abs(report.bubble.measured - truth(job).bubble)
    assert 0.005 < off < 0.02
    assert "unnamed-communication" in codes(report)
    assert report.quality.verdict == "degraded"


def test_a_first_stage_without_backward_keeps_its_window(tmp_path):
    """Frozen layers on stage 0: its last forward is not the end of the pipeline, and no bubble is below 0."""
    for path in write(Job(**SMALL), tmp_path):
        document = orjson.loads(gzip.decompress(path.read_bytes()))
        document["traceEvents"] = [e for e in document["traceEvents"] if not str(e.get("name", "")).startswith("PP:0B")]
        path.write_bytes(gzip.compress(orjson.dumps(document)))
    bubble = analyze([str(tmp_path)]).report.bubble
    assert 0 < bubble.measured < 1
    assert bubble.measured == pytest.approx(bubble.replay, abs=0.01)


SPLIT = job(
    rank(0, [("0F0", 0, 1000), ("0I0", 3000, 4000), ("0W0", 4000, 5000)]),
    rank(1, [("1F0", 1000, 2000), ("1I0", 2000, 3000), ("1W0", 4500, 6000)]),
)
"""A window of 6000 from a moment of rank 0 to one of rank 1."""


def said(of):
    """What is said of the clocks."""
    return [f.message for f in reported(of).quality.findings if f.code == "clock-uncertain"]


TWICE = job(*SPLIT.timelines.values(), dataclasses.replace(SPLIT.timelines[1], rank=2), pipelines=[[[0], [1, 2]]])
"""The same with a tensor-parallel partner of the second rank."""


@pytest.mark.parametrize(
    ("of", "warned"),
    [
        (loose(SPLIT, (0, 1, 60)), False),
        (loose(SPLIT, (0, 1, 61)), True),
        (loose(TWICE, (1, 2, 60)), False),
        (loose(TWICE, (1, 2, 61)), True),
        (SPLIT, False),
    ],
    ids=["window good", "window bad", "others good", "others bad", "one clock"],
)
def test_clocks_known_to_less_than_a_hundredth_of_the_window_are_said(of, warned):
    """It is the window itself that may be blurred, by both of its ends, or waiting against transfer anywhere."""
    found = said(of)
    assert len(found) == warned
    assert all("are only known to 6.1e-05 ms, against a window of 0.006 ms" in message for message in found)


def test_replicas_that_are_tied_loosely_are_not_said():
    """No number compares two pipelines moment by moment, and within each the clocks are known."""
    lines = [SPLIT.timelines[0], SPLIT.timelines[1]]
    again = [dataclasses.replace(t, rank=t.rank + 2) for t in lines]
    of = job(*lines, *again, pipelines=[[[0], [1]], [[2], [3]]])
    assert said(loose(of, (0, 2, 5000), (1, 3, 5000), (0, 3, 5000), (1, 2, 5000), error=5000)) == []


def test_clocks_that_nothing_ties_together_are_said():
    """A window between two such clocks is as right as the hosts' time service; on one clock it is sure."""
    (message,) = said(loose(SPLIT, (0, 1, math.inf)))
    assert "ties the clocks of the hosts together" in message
    assert said(loose(one_f_one_b(), (0, 1, math.inf))) == []


def test_a_pipeline_with_a_stage_unseen_says_nothing_of_clocks():
    """Its bubble is an interval anyway."""
    assert said(loose(hidden(SPLIT, 0), (0, 1, math.inf), error=5000)) == []
