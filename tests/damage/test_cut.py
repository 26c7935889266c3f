"""A job whose writer was killed: for the steps that are complete, the answer is that of the whole trace."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from random import Random

import orjson
import pytest

from tests.conftest import SAMPLES
from tests.damage.mutate import plain
from tests.damage.runs import analyzed

_STEP = re.compile(r"ProfilerStep\s*#(\d+)")
TRUST = ("trusted", "reasons", "reason", "source", "evidence", "confidence", "runner_up")
"""What tells how far an answer is to be trusted, which a cut may change."""

EXACT = ("layout", "pipelines", "stages")


def begun(event):
    """When an event began, as a number; names and marks, which are of no moment, come first."""
    return float(event["ts"]) if event.get("ph") == "X" else -1.0


def pieces(document):
    """The text of a document up to its first event, and the text of each event; the metadata come first."""
    rest = {key: value for key, value in document.items() if key != "traceEvents"}
    return json.dumps(rest)[:-1].encode() + b', "traceEvents": [', [orjson.dumps(e) for e in document["traceEvents"]]


def steps_of(document):
    """The steps that ranges of the host name, with their ends."""
    found = {}
    for event in document["traceEvents"]:
        match = _STEP.fullmatch(str(event.get("name", "")))
        if match and event.get("ph") == "X" and event.get("cat") == "user_annotation":
            found[int(match[1])] = float(event["ts"]) + float(event["dur"])
    return found


def complete(document, kept):
    """The steps that stand whole among the first so many events: what is lost began after the next one ended."""
    lost = [begun(event) for event in document["traceEvents"][kept:] if event.get("ph") == "X"]
    ends = sorted(steps_of(document).items())
    return [number for (number, _), (_, after) in pairwise(ends) if after <= min(lost, default=0)]


def answer(folder, steps):
    """What is said of some steps, but for findings and the quality, which tell of the damage."""
    outcome = analyzed([folder], "--steps", f"{steps[0]}:{steps[-1]}", "--json")
    assert outcome.fault is None
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    bubble, schedule = report["bubble"], report["schedule"]
    answered = {key: bubble[key] for key in ("measured", "formula", "replay", "window_ns")}
    answered |= {key: schedule[key] for key in ("name", "microbatches")}
    return bare(
        answered | {name: report[name] for name in EXACT} | {"steps": [s for s in report["steps"] if s["used"]]}
    )


def bare(value):
    """A part of a report without what is said of how far to trust it."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key not in TRUST}
    return [bare(item) for item in value] if isinstance(value, list) else value


def differences(found, expected, where=""):
    """Where two answers differ. Clocks are fitted over all messages, and may differ by what these leave open."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            yield from differences(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            yield from differences(found[number], value, f"{where}[{number}]")
    elif isinstance(expected, float):
        if found != pytest.approx(expected, abs=0.002):
            yield where, found, expected
    elif found != expected:
        yield where, found, expected


def compare(job: Path, target: Path, seed: int) -> bool:
    """Cut one file of a job, and compare; False where no cut leaves a step whole."""
    shutil.copytree(job, target)
    rng = Random(seed)  # noqa: S311 - a seed is the point
    path = rng.choice(sorted(target.glob("*.json*")))
    document = orjson.loads(plain(path.read_bytes()))
    if not isinstance(document, dict) or "traceEvents" not in document:
        return False
    document["traceEvents"].sort(key=begun)
    head, events = pieces(document)
    kept = rng.randrange(len(events) // 2, len(events))
    steps = complete(document, kept)
    if not steps:
        return False
    expected = answer(target, steps)
    text = head + b",\n".join(events[:kept]) + b",\n" + events[kept][: rng.randrange(len(events[kept]))]
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    assert list(differences(answer(target, steps), expected)) == []
    return True


def jobs(folder):
    """The folders of a folder that hold traces of the PyTorch Profiler."""
    return sorted({path.parent for path in folder.rglob("*trace.json*")})


@pytest.mark.parametrize("job", jobs(SAMPLES), ids=lambda job: job.name)
def test_samples_that_are_cut(tmp_path, job):
    """Each of our own samples, cut once where a step before is whole."""
    assert compare(job, tmp_path / "job", 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch", "frameworks"])
def test_recorded_traces_that_are_cut(shared, tmp_path, kind):
    """Each recorded job, cut a few times."""
    for job in jobs(shared / kind):
        compared = [compare(job, tmp_path / f"{job.name}{seed}", seed) for seed in range(6)]
        assert sum(compared) >= 2, job
