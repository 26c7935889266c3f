"""Labels that count stages or micro-batches from 1."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace

import pytest

from bubblescope.align.from_one import from_zero
from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from tests.building import group, timeline

LABEL = re.compile(r'"PP:(\d+)([FBIW])(\d+)"')
GROUPS = '"Process Group'
PIPELINE = {"p": 3, "m": 4, "steps": 2}
JOBS = {
    "1f1b": Job(**PIPELINE),
    "gpipe": Job(schedule="gpipe", **PIPELINE),
    "interleaved": Job(schedule="interleaved-1f1b", p=2, m=4, v=2, steps=2),
    "tensor-parallel": Job(p=2, m=4, t=2, steps=2),
}


def from_one(folder, job, stage=1, microbatch=1, *, told=True):
    """The traces of a job with higher numbers in its labels; without metadata where not told."""

    def counted(match):
        return f'"PP:{int(match[1]) + stage}{match[2]}{int(match[3]) + microbatch}"'

    paths = write(job, folder)
    for path in paths:
        text = LABEL.sub(counted, gzip.decompress(path.read_bytes()).decode())
        events = json.loads(text)
        if not told:
            del events["distributedInfo"]
            for event in events["traceEvents"]:
                for key in ("Process Group Ranks", "Process Group Description", "Src Rank", "Dst Rank"):
                    event.get("args", {}).pop(key, None)
        path.write_bytes(gzip.compress(json.dumps(events).encode(), 1))
    return paths


def codes(report):
    """Codes of the findings of a report."""
    return [finding.code for finding in report.quality.findings]


@pytest.mark.parametrize("told", [True, False], ids=["metadata", "no metadata"])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize(("stage", "microbatch"), [(1, 0), (0, 1), (1, 1)])
def test_they_are_read_as_counted_from_0(tmp_path, job, stage, microbatch, told):
    """The schedule is found, no rank is made up, and a finding says what was moved."""
    report = analyze(from_one(tmp_path, job, stage, microbatch, told=told)).report
    assert (report.schedule.name, report.layout.pp) == (job.schedule, job.p)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-3)
    assert codes(report).count("ids-from-one") == 1


@pytest.mark.parametrize("told", [True, False], ids=["metadata", "no metadata"])
def test_stage_0_of_a_rank_that_is_missing_stays_missing(tmp_path, told):
    """The others are those of inner ranks and of the last."""
    job = Job(p=4, m=6, steps=2)
    report = analyze(from_one(tmp_path, job, 0, 0, told=told)[1:]).report
    assert (report.layout.pp, report.bubble.measured) == (4, None)
    assert "ids-from-one" not in codes(report)


def ranks(*stages, table=False, **others):
    """Timelines that hold a stage each."""
    of = "table" if table else "labels"
    rows = {rank: [(f"{stage}F0", 0, 10), (f"{stage}B0", 20, 30)] for rank, stage in enumerate(stages)}
    return {rank: replace(timeline(rank, actions=acts, **others), reconstruction=of) for rank, acts in rows.items()}


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        (ranks(1, 2, groups=[group("1", "pp", 0, 1)]), True),
        (ranks(1, 2, groups=[group("1", "pp", 0, 1, 2)]), False),
        (ranks(0, 1, groups=[group("1", "pp", 0, 1)]), False),
        (ranks(1, 3, groups=[group("1", "pp", 0, 1)]), False),
        (ranks(1, 1, groups=[group("1", "pp", 0, 1)]), False),
        (ranks(1, 2, table=True, groups=[group("1", "pp", 0, 1)]), False),
        (ranks(1, 2), False),
    ],
    ids=["all ranks", "one missing", "from 0", "a gap", "one stage", "a timeline", "nothing tells the ranks"],
)
def test_stages_are_moved_only_where_no_rank_before_them_may_be_missing(given, moved):
    """What is not moved is the same object."""
    timelines, findings = from_zero(given)
    assert bool(findings) == moved
    assert [int(t.actions.stage[0]) for t in timelines.values()] == [
        int(t.actions.stage[0]) - moved for t in given.values()
    ]
    assert moved or timelines is given
