"""Emitted jobs with one event spoilt: the bubble stays, and the report counts what was spoilt."""

from __future__ import annotations

import copy
import json
import sqlite3

import pytest

from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.ingest.chrome import read

DAY, HOUR, SECOND = 86_400_000_000, 3_600_000_000, 1_000_000  # microseconds
BASE = {"p": 2, "m": 4, "steps": 4, "kernels": 3, "jitter": 0.02, "p2p_ns": 50_000, "compress": False}
JOBS = {
    "labels": Job(**BASE),
    "numbers": Job(**BASE, labels="none", fused=True),
    "cpu": Job(**BASE, backend="cpu"),
}


def later(by):
    """Move an event."""
    return lambda event: event.update(ts=event["ts"] + by)


FAULTS = {
    "eight days": lambda event: event.update(dur=8 * DAY),
    "three hours": lambda event: event.update(dur=3 * HOUR),
    "backwards": lambda event: event.update(dur=-7),
    "zero": lambda event: event.update(ts=0),
    "nothing": lambda event: event.update(ts=0, dur=0),
    "year 60000": lambda event: event.update(ts=1.8e18),
    "2^63": lambda event: event.update(ts=2**63),
    "hours late": later(5 * HOUR),
    "days early": later(-9 * DAY),
}
OF_KERNELS = {
    "an overflow of 32 bits": lambda event: event.update(dur=2**32 / 1000),
    "seconds late": later(5 * SECOND),
    "before its launch": later(-5 * SECOND),
}


PLACES = {
    "kernel": lambda event: event.get("cat") == "kernel" and "nccl" not in event["name"],
    "message": lambda event: event.get("cat") == "kernel" and "nccl" in event["name"],
    "operator": lambda event: event.get("cat") == "cpu_op" and event["name"].startswith("aten::"),
    "action": lambda event: event.get("cat") == "user_annotation" and event["name"].startswith("PP:"),
    "step": lambda event: event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep"),
    "launch": lambda event: event.get("cat") == "cuda_runtime",
}


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    """Folder, text of the last rank's trace, and report of each job."""
    made = {}
    for name, job in JOBS.items():
        folder = tmp_path_factory.mktemp(name)
        path = write(job, folder)[-1]
        made[name] = folder, path, path.read_text(), analyze(folder).report
    return made


def findings(report, code):
    """The findings of a code."""
    return [finding for finding in report.quality.findings if finding.code == code]


def spoilt(emitted, job, change):
    """The reports before and after a change of the events of the last rank."""
    folder, path, text, before = emitted[job]
    document = json.loads(text)
    change(document["traceEvents"])
    path.write_text(json.dumps(document))
    try:
        return before, analyze(folder).report
    finally:
        path.write_text(text)


def one(place, fault):
    """Spoil one event in the middle of the recording, if there is any such."""

    def change(events):
        rows = [event for event in events if PLACES[place](event)]
        if not rows:
            pytest.skip(f"no {place}")
        fault(rows[len(rows) * 2 // 5])

    return change


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("job", JOBS)
def test_one_spoilt_event(emitted, job, place, fault):
    """Moves the bubble by no more than its own length, or costs its step; it is counted, once, in one finding."""
    before, after = spoilt(emitted, job, one(place, FAULTS[fault]))
    (found,) = findings(after, "implausible-times")
    assert found.message.startswith("1 ")
    assert abs(after.bubble.measured - before.bubble.measured) < 0.01
    lost = sum(step.used for step in before.steps) - sum(step.used for step in after.steps)
    assert lost == 0 or findings(after, "incomplete-steps")
    assert before.quality.verdict == "ok"


@pytest.mark.parametrize("fault", OF_KERNELS)
@pytest.mark.parametrize("place", ["kernel", "message"])
@pytest.mark.parametrize("job", ["labels", "numbers"])
def test_a_kernel_out_of_turn(emitted, job, place, fault):
    """Is told by its launch and its stream; if its step is used, the verdict says so."""
    before, after = spoilt(emitted, job, one(place, OF_KERNELS[fault]))
    (found,) = findings(after, "implausible-times")
    assert found.message.startswith("1 ")
    assert abs(after.bubble.measured - before.bubble.measured) < 0.01
    if [step.used for step in after.steps] == [step.used for step in before.steps]:
        assert (found.severity, after.quality.verdict) == ("warning", "degraded")
    else:
        assert (place, len(findings(after, "incomplete-steps"))) == ("message", 1)


def test_a_spoilt_first_step(emitted):
    """Is no matter for the verdict: the first step is not used."""

    def change(events):
        FAULTS["eight days"](next(event for event in events if PLACES["kernel"](event)))

    before, after = spoilt(emitted, "labels", change)
    (found,) = findings(after, "implausible-times")
    assert (found.severity, after.quality.verdict) == ("info", "ok")
    assert after.bubble.measured == before.bubble.measured


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("shift", [0, 20 * SECOND, 2 * HOUR])
def test_a_trace_joined_to_itself(emitted, job, shift):
    """Changes nothing: copies count once, and steps that come again, at another time, are later ones of one rank."""

    def change(events):
        copies = [copy.deepcopy(event) for event in events if event.get("ph") == "X"]
        for event in copies:
            event["ts"] += shift
        events += copies

    before, after = spoilt(emitted, job, change)
    (found,) = findings(after, "incomplete-steps" if shift else "doubled-events")
    trace = read(emitted[job][1])
    kept = sum(
        int((rows.end > rows.start).sum()) for rows in (trace.ops, trace.kernels, trace.launches, trace.annotations)
    )
    assert shift or found.message.startswith(f"{kept} ")
    assert abs(after.bubble.measured - before.bubble.measured) < 1e-9
    assert after.quality.verdict == "ok"


@pytest.mark.parametrize("by", [-5 * SECOND, 5 * SECOND, 2 * HOUR])
@pytest.mark.parametrize("job", JOBS)
def test_a_clock_that_jumps(emitted, job, by):
    """Never changes the bubble unnoticed: the steps do not fit those of the other ranks."""

    def change(events):
        times = sorted(event["ts"] for event in events if event.get("ph") == "X")
        for event in events:
            if event.get("ph") == "X" and event["ts"] >= times[len(times) // 2]:
                event["ts"] += by

    _, after = spoilt(emitted, job, change)
    assert after.quality.verdict == "degraded"
    assert findings(after, "clock-uncertain")


@pytest.mark.parametrize(
    "change",
    [
        "end = start + 691200000000000",
        "end = start + 4294967296",
        "start = start + 18000000000000, end = end + 18000000000000",
        "start = start + 5000000000, end = end + 5000000000",
        "start = start - 5000000000, end = end - 5000000000",
        "start = 0, end = 0",
        "end = start - 5",
        "start = 9223372036854775807, end = 9223372036854775807",
    ],
)
@pytest.mark.parametrize("labels", ["pp", "none"])
def test_a_spoilt_row_of_an_export(tmp_path, labels, change):
    """Of Nsight Systems does no more than one of Kineto."""
    path = write(Job(**BASE, recorder="nsys", labels=labels, payloads="json"), tmp_path)[-1]
    before = analyze(tmp_path).report
    rows = "SELECT k.rowid FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName"
    with sqlite3.connect(path) as file:
        ids = [row for (row,) in file.execute(f"{rows} WHERE s.value NOT LIKE '%nccl%' ORDER BY k.start")]
        chosen = ids[len(ids) * 2 // 5]
        file.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {change} WHERE rowid = {chosen}")  # noqa: S608 - literals
    file.close()
    after = analyze(tmp_path).report
    (found,) = findings(after, "implausible-times")
    assert (found.message.split()[0], found.severity, before.quality.verdict) == ("1", "warning", "ok")
    assert abs(after.bubble.measured - before.bubble.measured) < 0.01
