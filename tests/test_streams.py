"""What ran beside compute, and what says it ran too long, in emitted jobs: the bubble is that of the simulation."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.emit.names import STEP_KERNEL
from bubblescope.engine import analyze

BASE = Job(p=3, m=4, steps=4, kernels=4, jitter=0.02, p2p_ns=50_000)
SHAPES = {
    "1f1b": BASE,
    "numbers": replace(BASE, labels="none", fused=True),
    "kernels": replace(BASE, labels="none", host="none", autograd=False),
    "interleaved": replace(BASE, schedule="interleaved-1f1b", p=2, v=2, t=2),
    "zb-v": replace(BASE, schedule="zb-v", p=2, v=2),
    "export": replace(BASE, recorder="nsys"),
    "export without labels": replace(BASE, recorder="nsys", labels="none", payloads="json"),
    "gpipe with replicas": replace(BASE, schedule="gpipe", d=2, p=2),
}


def findings(report, code):
    """The findings of a code."""
    return [finding for finding in report.quality.findings if finding.code == code]


@pytest.mark.parametrize("ns", [4_000_000, 25_000_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_offloaded_activations(tmp_path, shape, ns):
    """Copies to the host and back, shorter and longer than what they run beside, are no compute and stretch nothing."""
    job = replace(SHAPES[shape], offload_ns=ns)
    known = truth(job)
    write(job, tmp_path)
    report = analyze(tmp_path).report
    assert report.bubble.measured == pytest.approx(known.bubble, abs=0.003)
    allowed = {"told-by-kernels", "purpose-assumed", "nccl-payloads"}  # which have other reasons
    assert {finding.code for finding in report.quality.findings} <= allowed
    used = known.used
    for rank in report.ranks:
        spent = [row for step in used for pipe in step.pipelines for row in pipe.ranks if row.rank == rank.rank]
        compute = sum(row.useful - row.in_stage for row in spent) / len(spent)
        assert rank.compute_ns == pytest.approx(compute, rel=0.01)
        assert rank.busy > rank.useful


def test_copies_within_an_action(tmp_path):
    """What a stage waits for while its action has begun is neither compute nor the host's: the parts still add up."""
    job = replace(BASE, p=2, steps=3)
    paths = write(replace(job, compress=False), tmp_path)
    document = json.loads(paths[1].read_text())
    events = document["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel" and event["tid"] == 7]
    kernels = sorted((each for each in kernels if each["name"] != STEP_KERNEL), key=lambda event: event["ts"])
    before = analyze(tmp_path).report.ranks[1]
    for event in kernels[1::4]:  # the second of each action is a copy from the host instead
        event["cat"], event["name"] = "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"
    paths[1].write_text(json.dumps(document))
    after = analyze(tmp_path).report.ranks[1]
    moved = before.compute_ns - after.compute_ns
    assert moved > 0
    assert after.other_ns - before.other_ns == pytest.approx(moved, rel=0.01)
    assert after.host_ns == pytest.approx(before.host_ns, abs=1000)
    assert (after.window_ns, after.busy) == (before.window_ns, before.busy)


@pytest.mark.parametrize("ns", [3_000_000, 40_000_000, 4_294_967_296])
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_that_overrun(tmp_path, shape, ns):
    """Are cut where the next of their stream begin; the bubble stays, and the verdict says that something is wrong."""
    job = replace(SHAPES[shape], overrun_ns=ns, overrun_chance=0.01, seed=1)
    known = truth(job)
    write(job, tmp_path)
    report = analyze(tmp_path).report
    assert report.bubble.measured == pytest.approx(known.bubble, abs=0.006)
    found = findings(report, "implausible-times")
    assert "warning" in {finding.severity for finding in found}
    assert all("cut where the next one of the stream had begun" in each.message for each in found)
    assert report.quality.verdict == "degraded"


def test_the_largest_overrun_is_told(tmp_path):
    """In the finding, beside how many there are; a kernel of the first step, which is not used, degrades nothing."""
    path = write(replace(BASE, recorder="nsys"), tmp_path)[1]
    with sqlite3.connect(path) as file:
        file.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 30000000 WHERE rowid IN "
            "(SELECT rowid FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE streamId = 7 ORDER BY start LIMIT 1)"
        )
    file.close()
    report = analyze(tmp_path).report
    (found,) = findings(report, "implausible-times")
    assert found.message.startswith("1 kernel cut where the next one of the stream had begun")
    assert found.message.endswith("(by up to 30.00 ms)")
    assert (found.severity, report.quality.verdict) == ("info", "ok")
