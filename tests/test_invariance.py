"""What must not change a result: the order of files, the order of events, the origin of time."""

from __future__ import annotations

import dataclasses
import gzip
import random
from pathlib import Path

import orjson
import pytest

from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.model.report import Report

JOBS = {
    "labels": Job(
        schedule="interleaved-1f1b", p=2, m=4, v=2, labels="pp", jitter=0.05, p2p_ns=200_000, host_gap_ns=100_000
    ),
    "autograd": Job(schedule="1f1b", p=3, m=6, labels="none", jitter=0.05, p2p_ns=200_000, t=2),
    "cpu": Job(schedule="gpipe", p=3, m=3, labels="torch", backend="cpu", jitter=0.05, d=2),
    "no pipeline": Job(schedule="gpipe", p=1, m=4, labels="none", d=2),
}


def found(report: Report) -> dict[str, object]:
    """All of a report but the paths and sizes of its inputs."""
    return {k: v for k, v in dataclasses.asdict(report).items() if k not in {"inputs", "quality"}}


def rewritten(paths: list[Path], folder: Path, change) -> list[str]:
    """The traces after a change of their documents, under names that tell nothing, written as plain JSON."""
    result = []
    for number, path in enumerate(paths):
        document = change(orjson.loads(gzip.decompress(path.read_bytes())))
        to = folder / f"{'abcdefghijkl'[number]}.json"
        to.write_bytes(orjson.dumps(document))
        result.append(str(to))
    return result


@pytest.fixture(params=JOBS, name="paths")
def _paths(request, tmp_path):
    """The traces of a job."""
    return write(JOBS[request.param], tmp_path)


def test_order_of_files_changes_nothing(paths):
    """Files given in any order give one report."""
    names = [str(path) for path in paths]
    shuffled = random.Random(1).sample(names, len(names))  # noqa: S311 - an order, no secret
    assert analyze(names).report == analyze(shuffled).report


def test_order_of_events_changes_nothing(paths, tmp_path):
    """Events in any order of the file, metadata before or after them, give one report."""

    def shuffle(document):
        events = document.pop("traceEvents")
        random.Random(2).shuffle(events)  # noqa: S311 - an order, no secret
        return {"traceEvents": events, **document}

    expected = found(analyze([str(path) for path in paths]).report)
    assert found(analyze(rewritten(paths, tmp_path, shuffle)).report) == expected


def test_origin_of_time_changes_nothing(paths, tmp_path):
    """All clocks an hour and a bit later give one report: its times count from the job's first moment."""

    def shift(document):
        document["baseTimeNanoseconds"] += 3_600_000_000_123
        return document

    expected = found(analyze([str(path) for path in paths]).report)
    assert found(analyze(rewritten(paths, tmp_path, shift)).report) == expected


def test_numbers_of_threads_and_streams_change_nothing(paths, tmp_path):
    """Other process, thread and stream numbers, as strings, give one report."""

    def rename(document):
        for event in document["traceEvents"]:
            for key in ("pid", "tid"):
                if key in event:
                    event[key] = f"{event[key]} renamed"
        return document

    expected = found(analyze([str(path) for path in paths]).report)
    assert found(analyze(rewritten(paths, tmp_path, rename)).report) == expected
